//! Space of a file, by its descriptor: granting, zeroing, writing, populating.

use std::ffi::{c_int, c_void};

/// Linux 5.14: populate a mapping for writing.
const MADV_POPULATE_WRITE: c_int = 23;

/// Size of the block of zeros that granted space is filled with, and maximum number of such blocks
/// per system call.
const ZERO_BYTES: usize = 64 << 10;
const MAX_PIECES: usize = 64;
/// Number of attempts to grant space while signals interrupt it.
const ALLOCATE_TRIES: u32 = 16;

/// Writes all bytes at an offset.
pub fn write_all(descriptor: c_int, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    write_pieces(bytes.len(), |done| {
        let (rest, at) = (&bytes[done..], (offset + done as u64) as i64);
        // SAFETY: reads the slice.
        unsafe { libc::pwrite(descriptor, rest.as_ptr().cast(), rest.len(), at) }
    })
}

/// Writes that many bytes by calls that write behind what was written before, and return how much.
fn write_pieces(bytes: usize, write: impl Fn(usize) -> isize) -> std::io::Result<()> {
    let mut done = 0;
    while done < bytes {
        match write(done) {
            written @ 1.. => done += written as usize,
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            _ => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Whether a file may have that many bytes. Growing beyond the limit on file size would raise
/// SIGXFSZ.
pub fn may_grow_to(end: u64) -> Result<(), String> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is ours to write.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY && end > limit.rlim_cur {
        return Err("the trace would exceed the limit on file size (ulimit -f)".into());
    }
    Ok(())
}

/// Grants space, retrying if a signal interrupted the call. Returns an error number or 0.
pub fn allocate(descriptor: c_int, offset: u64, bytes: usize) -> c_int {
    let mut error = libc::EINTR;
    for _ in 0..ALLOCATE_TRIES {
        // SAFETY: the descriptor is ours.
        error = unsafe { libc::posix_fallocate(descriptor, offset as i64, bytes as i64) };
        if error != libc::EINTR {
            break;
        }
    }
    error
}

/// Flushes a file to its storage if that can still fail. Disks grant space when it is requested;
/// file servers (and file systems that copy on write) may refuse it when the data are written back.
pub fn synchronise(descriptor: c_int) -> std::io::Result<()> {
    // From linux/magic.h: ext2 to ext4, XFS, tmpfs, ramfs, F2FS, overlayfs.
    const GRANT_AT_ONCE: [i64; 6] =
        [0xef53, 0x5846_5342, 0x0102_1994, 0x8584_58f6, 0xf2f5_2010, 0x794c_7630];
    // SAFETY: a zeroed statfs may be written over.
    let grants_at_once = unsafe {
        let mut system: libc::statfs = std::mem::zeroed();
        libc::fstatfs(descriptor, &mut system) == 0
            && GRANT_AT_ONCE.contains(&(system.f_type as i64 & 0xffff_ffff))
    };
    loop {
        // SAFETY: takes a plain number.
        if grants_at_once || unsafe { libc::fsync(descriptor) } == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Turns off copy on write for a file on btrfs. With it, a store into a page that was granted and
/// written would still need new space, and raise SIGBUS if there is none.
pub fn refuse_copy_on_write(descriptor: c_int) -> Result<(), String> {
    const BTRFS: i64 = 0x9123_683e;
    const SET_FLAGS: libc::c_ulong = 0x4008_6602;
    const NO_COW: libc::c_long = 0x0080_0000;
    // SAFETY: a zeroed statfs may be written over; the flags are a long of ours.
    unsafe {
        let mut system: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(descriptor, &mut system) == 0
            && system.f_type == BTRFS
            && libc::ioctl(descriptor, SET_FLAGS, &NO_COW) != 0
        {
            return Err(format!(
                "copy on write cannot be turned off on btrfs: {}",
                std::io::Error::last_os_error()
            ));
        }
    }
    Ok(())
}

/// Writes zeros over granted bytes of a file.
///
/// Pages made by a write are large and cheap to map: populating them afterwards costs a twentieth
/// of faulting in granted but unwritten pages.
pub fn write_zeros(descriptor: c_int, offset: u64, bytes: usize) -> std::io::Result<()> {
    static ZEROS: [u8; ZERO_BYTES] = [0; ZERO_BYTES];
    let piece = libc::iovec { iov_base: ZEROS.as_ptr().cast_mut().cast(), iov_len: ZERO_BYTES };
    let pieces = [piece; MAX_PIECES];
    write_pieces(bytes, |done| {
        let left = bytes - done;
        let count = (left / ZERO_BYTES).clamp(1, MAX_PIECES);
        let at = (offset + done as u64) as i64;
        // SAFETY: the system only reads the pieces; the last one is shortened to what is left.
        unsafe {
            if left < ZERO_BYTES {
                libc::pwrite(descriptor, ZEROS.as_ptr().cast(), left, at)
            } else {
                libc::pwritev(descriptor, pieces.as_ptr(), count as c_int, at)
            }
        }
    })
}

/// Populates a granted mapping for writing.
pub fn populate(mapping: *mut c_void, bytes: usize) -> Result<(), String> {
    // SAFETY: our own new mapping.
    if unsafe { libc::madvise(mapping, bytes, MADV_POPULATE_WRITE) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::EINVAL) {
        // SAFETY: our own new mapping, which nobody uses yet.
        unsafe { libc::munmap(mapping, bytes) };
        return Err(format!("cannot write to the trace file: {error}"));
    }
    // Kernels before 5.14: touch each page; `posix_fallocate` granted them all.
    for page in (0..bytes).step_by(4096) {
        // SAFETY: inside our mapping, whose pages are granted.
        unsafe { mapping.cast::<u8>().add(page).write_volatile(0) };
    }
    Ok(())
}
