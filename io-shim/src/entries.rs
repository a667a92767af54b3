//! The functions on descriptors.
//!
//! `fcntl` is there for the descriptors that it makes; `mmap` counts mappings of files and takes no time.

use std::ffi::{c_int, c_long, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use trace_format::file_calls::FileCallKind;

use crate::calls::{Caller, begin, entries, on_descriptor, opened};
use crate::descriptors::{forget, forget_all, known_file_of};
use crate::positions;
use crate::real::{Arguments, Real};
use crate::recorder::recorder;

/// There is no system call with these arguments.
const NONE: c_long = -1;
#[cfg(target_arch = "x86_64")]
const OPEN: c_long = libc::SYS_open;
#[cfg(not(target_arch = "x86_64"))]
const OPEN: c_long = NONE;

unsafe fn reads(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let [descriptor, ..] = arguments;
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        moves(FileCallKind::Read, real, caller, arguments, |bytes, is_recorded| {
            positions::has_read(descriptor as c_int, bytes, is_recorded);
        })
    }
}

unsafe fn reads_at(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let [descriptor, _, _, offset, _] = arguments;
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        moves(FileCallKind::Read, real, caller, arguments, |bytes, is_recorded| {
            // An offset of -1 (preadv2) stands for where the descriptor is.
            match offset as isize {
                ..0 => positions::has_read(descriptor as c_int, bytes, is_recorded),
                _ => {
                    positions::has_read_at(descriptor as c_int, offset as u64, bytes, is_recorded);
                }
            }
        })
    }
}

unsafe fn writes(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let [descriptor, ..] = arguments;
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        moves(FileCallKind::Write, real, caller, arguments, |_, _| {
            positions::moved(descriptor as c_int);
        })
    }
}

unsafe fn writes_at(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    // SAFETY: the caller vouches for the arguments.
    unsafe { moves(FileCallKind::Write, real, caller, arguments, |_, _| {}) }
}

/// `then` is told how many bytes were moved, and whether the call is recorded.
#[inline(always)]
unsafe fn moves(
    kind: FileCallKind,
    real: &Real,
    caller: Caller,
    arguments: Arguments,
    then: impl FnOnce(u64, bool),
) -> usize {
    on_descriptor(arguments[0] as c_int, kind as u16, caller, |is_recorded| {
        // SAFETY: the caller vouches for the arguments.
        let result = unsafe { real.call(arguments) };
        let bytes = (result as isize).max(0) as u64;
        then(bytes, is_recorded);
        (result, bytes)
    })
}

unsafe fn seeks(real: &Real, _caller: Caller, arguments: Arguments) -> usize {
    // SAFETY: the caller vouches for the arguments.
    let result = unsafe { real.call(arguments) };
    positions::moved_to(arguments[0] as c_int, result as isize);
    result
}

/// `sendfile`, whose second argument is the file that it reads.
unsafe fn sends(real: &Real, _caller: Caller, arguments: Arguments) -> usize {
    // SAFETY: the caller vouches for the arguments.
    let result = unsafe { real.call(arguments) };
    positions::moved(arguments[0] as c_int);
    positions::moved(arguments[1] as c_int);
    result
}

unsafe fn synchronises(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    // SAFETY: the caller vouches for the arguments.
    unsafe { without_bytes(FileCallKind::Sync, real, caller, arguments) }
}

unsafe fn resizes(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    // SAFETY: the caller vouches for the arguments.
    unsafe { without_bytes(FileCallKind::Resize, real, caller, arguments) }
}

#[inline(always)]
unsafe fn without_bytes(
    kind: FileCallKind,
    real: &Real,
    caller: Caller,
    arguments: Arguments,
) -> usize {
    // SAFETY: the caller vouches for the arguments.
    let call = |_| (unsafe { real.call(arguments) }, 0);
    on_descriptor(arguments[0] as c_int, kind as u16, caller, call)
}

unsafe fn opens(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let begin = begin();
    // SAFETY: the caller vouches for the arguments.
    let result = unsafe { real.call(arguments) };
    forget(result as c_int);
    positions::at_start(result as c_int);
    opened(result as c_int, begin, FileCallKind::Open as u16, caller);
    result
}

unsafe fn makes_descriptor(real: &Real, _caller: Caller, arguments: Arguments) -> usize {
    // Both have one offset.
    positions::shared(arguments[0] as c_int);
    // SAFETY: the caller vouches for the arguments.
    let result = unsafe { real.call(arguments) };
    forget(result as c_int);
    result
}

unsafe fn may_make_descriptor(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        match arguments[1] as c_int {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => makes_descriptor(real, caller, arguments),
            _ => real.call(arguments),
        }
    }
}

unsafe fn closes(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let descriptor = arguments[0] as c_int;
    let Some(file) = known_file_of(descriptor) else {
        forget(descriptor);
        // SAFETY: the caller vouches for the arguments.
        return unsafe { real.call(arguments) };
    };
    let begin = begin();
    // Before another thread may get the number for another file.
    forget(descriptor);
    // SAFETY: the caller vouches for the arguments; its function returns after this one.
    unsafe {
        let result = real.call(arguments);
        if let (Some(recorder), true) = (recorder(), begin != 0) {
            let field = FileCallKind::Close as u16;
            (recorder.record)(file, field, 0, begin, caller.here, caller.site);
        }
        result
    }
}

unsafe fn closes_all(real: &Real, _caller: Caller, arguments: Arguments) -> usize {
    forget_all(arguments[0] as u32, arguments[1] as u32);
    // SAFETY: the caller vouches for the arguments.
    unsafe { real.call(arguments) }
}

unsafe fn closes_from(real: &Real, _caller: Caller, arguments: Arguments) -> usize {
    forget_all((arguments[0] as c_int).max(0) as u32, u32::MAX);
    // SAFETY: the caller vouches for the arguments.
    unsafe { real.call(arguments) }
}

entries! {
    read as read_inner, libc::SYS_read => reads;
    pread as pread_inner, libc::SYS_pread64 => reads_at;
    pread64 as pread64_inner, libc::SYS_pread64 => reads_at;
    readv as readv_inner, libc::SYS_readv => reads;
    preadv as preadv_inner, libc::SYS_preadv => reads_at;
    preadv64 as preadv64_inner, libc::SYS_preadv => reads_at;
    preadv2 as preadv2_inner, NONE => reads_at;
    preadv64v2 as preadv64v2_inner, NONE => reads_at;
    __read_chk as read_chk, NONE => reads;
    __pread_chk as pread_chk, NONE => reads_at;
    __pread64_chk as pread64_chk, NONE => reads_at;
    write as write_inner, libc::SYS_write => writes;
    pwrite as pwrite_inner, libc::SYS_pwrite64 => writes_at;
    pwrite64 as pwrite64_inner, libc::SYS_pwrite64 => writes_at;
    writev as writev_inner, libc::SYS_writev => writes;
    pwritev as pwritev_inner, libc::SYS_pwritev => writes_at;
    pwritev64 as pwritev64_inner, libc::SYS_pwritev => writes_at;
    pwritev2 as pwritev2_inner, NONE => writes;
    pwritev64v2 as pwritev64v2_inner, NONE => writes;
    lseek as lseek_inner, libc::SYS_lseek => seeks;
    lseek64 as lseek64_inner, libc::SYS_lseek => seeks;
    sendfile as sendfile_inner, libc::SYS_sendfile => sends;
    sendfile64 as sendfile64_inner, libc::SYS_sendfile => sends;
    fsync as fsync_inner, libc::SYS_fsync => synchronises;
    fdatasync as fdatasync_inner, libc::SYS_fdatasync => synchronises;
    ftruncate as ftruncate_inner, libc::SYS_ftruncate => resizes;
    ftruncate64 as ftruncate64_inner, libc::SYS_ftruncate => resizes;
    open as open_inner, OPEN => opens;
    open64 as open64_inner, OPEN => opens;
    openat as openat_inner, libc::SYS_openat => opens;
    openat64 as openat64_inner, libc::SYS_openat => opens;
    creat as creat_inner, NONE => opens;
    creat64 as creat64_inner, NONE => opens;
    __open_2 as open_2, NONE => opens;
    __open64_2 as open64_2, NONE => opens;
    __openat_2 as openat_2, NONE => opens;
    __openat64_2 as openat64_2, NONE => opens;
    mkstemp as mkstemp_inner, NONE => opens;
    mkstemp64 as mkstemp64_inner, NONE => opens;
    mkostemp as mkostemp_inner, NONE => opens;
    mkostemp64 as mkostemp64_inner, NONE => opens;
    mkstemps as mkstemps_inner, NONE => opens;
    mkstemps64 as mkstemps64_inner, NONE => opens;
    mkostemps as mkostemps_inner, NONE => opens;
    mkostemps64 as mkostemps64_inner, NONE => opens;
    dup as dup_inner, libc::SYS_dup => makes_descriptor;
    dup2 as dup2_inner, NONE => makes_descriptor;
    dup3 as dup3_inner, libc::SYS_dup3 => makes_descriptor;
    fcntl as fcntl_inner, libc::SYS_fcntl => may_make_descriptor;
    fcntl64 as fcntl64_inner, libc::SYS_fcntl => may_make_descriptor;
    close as close_inner, libc::SYS_close => closes;
    close_range as close_range_inner, NONE => closes_all;
    closefrom as closefrom_inner, NONE => closes_from;
}

/// Interposes `mmap`, to count mappings of files that are known.
///
/// # Safety
/// The caller vouches for the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mmap(
    address: usize,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: usize,
) -> usize {
    // SAFETY: the caller vouches for the arguments.
    unsafe { maps((address, length, protection, flags, descriptor, offset)) }
}

/// Interposes `mmap64`.
///
/// # Safety
/// The caller vouches for the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mmap64(
    address: usize,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: usize,
) -> usize {
    // SAFETY: the caller vouches for the arguments.
    unsafe { maps((address, length, protection, flags, descriptor, offset)) }
}

type Map = unsafe extern "C-unwind" fn(usize, usize, c_int, c_int, c_int, usize) -> usize;

static MMAP: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Looks `mmap` up. Called when the library is loaded.
pub fn find_mmap() {
    // SAFETY: a C string; RTLD_NEXT searches behind this library.
    MMAP.store(unsafe { libc::dlsym(libc::RTLD_NEXT, c"mmap".as_ptr()) }, Relaxed);
}

#[inline(always)]
unsafe fn maps(
    (address, length, protection, flags, descriptor, offset): (
        usize,
        usize,
        c_int,
        c_int,
        c_int,
        usize,
    ),
) -> usize {
    let real = MMAP.load(Relaxed);
    // SAFETY: the caller vouches for the arguments. Before this library was initialised an allocator may call.
    let mapping = unsafe {
        match real.is_null() {
            true => libc::syscall(
                libc::SYS_mmap,
                address,
                length,
                protection,
                flags,
                descriptor,
                offset,
            ) as usize,
            false => {
                let real = transmute::<*mut c_void, Map>(real);
                real(address, length, protection, flags, descriptor, offset)
            }
        }
    };
    if descriptor >= 0 && mapping != libc::MAP_FAILED.addr() {
        count_mapping(descriptor, length);
    }
    mapping
}

#[cold]
#[inline(never)]
fn count_mapping(descriptor: c_int, length: usize) {
    let (Some(recorder), Some(file)) = (recorder(), known_file_of(descriptor)) else { return };
    let begin = (recorder.begin)();
    if begin != 0 {
        let mut here = 0usize;
        let here = (&raw mut here).expose_provenance();
        // SAFETY: a word of this frame.
        unsafe {
            (recorder.record)(file, FileCallKind::Map as u16, length as u64, begin, here, 0);
        }
    }
}
