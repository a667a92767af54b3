//! `libgammachi.so`, if it is there.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::positions::of_file;
use trace_format::preload::{FileRecorder, SYMBOL};

static RECORDER: AtomicPtr<FileRecorder> = AtomicPtr::new(null_mut());
/// Where the recorder's code lies: its first address and its size.
static CODE: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));
/// Bytes read and written by calls that are not recorded.
pub static ELSEWHERE: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Looks for the recorder. Called when this library is loaded.
pub fn find() {
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, SYMBOL.as_ptr()) };
    let found: *mut FileRecorder = found.cast();
    // SAFETY: the recorder's table, which has this type by its name and stays.
    let Some(recorder) = (unsafe { found.as_ref() }) else { return };
    let code = object_around(found.addr());
    CODE.0.store(code.start, Relaxed);
    CODE.1.store(code.end - code.start, Relaxed);
    (recorder.attach)(&ELSEWHERE, of_file);
    RECORDER.store(found, Release);
}

/// The recorder.
#[inline(always)]
pub fn recorder() -> Option<&'static FileRecorder> {
    // SAFETY: stored by `find`.
    unsafe { RECORDER.load(Acquire).as_ref() }
}

/// Whether the recorder itself called from this address.
#[inline(always)]
pub fn is_recorders(caller: usize) -> bool {
    caller.wrapping_sub(CODE.0.load(Relaxed)) < CODE.1.load(Relaxed)
}

/// The addresses of the loaded object that contains this one.
fn object_around(address: usize) -> Range<usize> {
    struct Search {
        address: usize,
        found: Range<usize>,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid record; `search` is passed below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: the loader's own headers.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let base = info.dlpi_addr as usize;
        let parts = loaded.map(|of| {
            let begin = base.wrapping_add(of.p_vaddr as usize);
            begin..begin.wrapping_add(of.p_memsz as usize)
        });
        let whole = parts.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        match whole.filter(|whole| whole.contains(&search.address)) {
            Some(whole) => {
                search.found = whole;
                1
            }
            None => 0,
        }
    }
    let mut search = Search { address, found: 0..0 };
    // SAFETY: callback and argument match.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}
