//! Numbers of the files that the program works on.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use trace_format::header::{Definition, File};
use trace_format::preload::NOT_RECORDED;

use crate::host::lock::Lock;
use crate::store::trace_file::define;

/// Largest number of a file. All further ones share the number 0.
pub const MAX_FILES: u32 = 4096;

/// File systems whose files the kernel makes while they are read: /proc, /sys, control groups.
const OF_KERNEL: [u64; 4] = [0x9fa0, 0x6265_6572, 0x0027_e0eb, 0x6367_7270];

/// What makes a file the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    device: u64,
    inode: u64,
    /// When it was made, nanoseconds; 0: unknown. File systems give the inode of a deleted file to the next one.
    born_ns: u64,
}

static FILES: Lock<BTreeMap<Identity, u32>> = Lock::new(BTreeMap::new());
static KEEPS_NAMES: AtomicBool = AtomicBool::new(false);

/// Chooses whether names are kept. Called once, before recording begins.
pub fn choose_names(kept: bool) {
    KEEPS_NAMES.store(kept, Relaxed);
}

/// The largest number that a file has.
pub fn last_number() -> u32 {
    FILES.lock().len() as u32
}

/// The number of an open descriptor's file, which is defined if it is new; [`NOT_RECORDED`] for anything but regular
/// files.
/// The recorder is at its own work.
pub fn number_of(descriptor: c_int) -> u32 {
    let Some(identity) = regular_file(descriptor) else { return NOT_RECORDED };
    let file_system = file_system_of(descriptor);
    if OF_KERNEL.contains(&file_system) {
        return NOT_RECORDED;
    }
    let mut files = FILES.lock();
    if let Some(number) = files.get(&identity) {
        return *number;
    }
    if files.len() == MAX_FILES as usize {
        return 0;
    }
    let number = files.len() as u32 + 1;
    files.insert(identity, number);
    let name = if KEEPS_NAMES.load(Relaxed) { name_of(descriptor) } else { String::new() };
    let Identity { device, inode, born_ns } = identity;
    let file = File { number, device, inode, born_ns, file_system, name };
    let _ = define(&Definition::File(file));
    number
}

/// The regular file that a descriptor refers to.
fn regular_file(descriptor: c_int) -> Option<Identity> {
    let is_regular = |mode: libc::mode_t| mode & libc::S_IFMT == libc::S_IFREG;
    let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
    // SAFETY: zeroed records may be written over. The C library has had statx for some years only, the kernel longer.
    unsafe {
        let mut more: libc::statx = std::mem::zeroed();
        let path = c"".as_ptr();
        let flags = libc::AT_EMPTY_PATH;
        if libc::syscall(libc::SYS_statx, descriptor, path, flags, mask, &raw mut more) == 0 {
            let is_known = more.stx_mask & libc::STATX_BTIME != 0;
            let born = more.stx_btime;
            let born_ns =
                (born.tv_sec as u64).wrapping_mul(1_000_000_000) + u64::from(born.tv_nsec);
            return is_regular(more.stx_mode.into()).then_some(Identity {
                device: u64::from(more.stx_dev_major) << 32 | u64::from(more.stx_dev_minor),
                inode: more.stx_ino,
                born_ns: if is_known { born_ns } else { 0 },
            });
        }
        let mut status: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &mut status) == 0 && is_regular(status.st_mode))
            .then_some(Identity { device: status.st_dev, inode: status.st_ino, born_ns: 0 })
    }
}

fn file_system_of(descriptor: c_int) -> u64 {
    // SAFETY: a zeroed record may be written over.
    unsafe {
        let mut status: libc::statfs = std::mem::zeroed();
        match libc::fstatfs(descriptor, &mut status) {
            0 => status.f_type as u64 & 0xffff_ffff,
            _ => 0,
        }
    }
}

fn name_of(descriptor: c_int) -> String {
    let path = fs::read_link(format!("/proc/self/fd/{descriptor}"));
    path.map(|path| String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned())
        .unwrap_or_default()
}
