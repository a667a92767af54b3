//! What `libgammachi_io.so` calls: calls on files, as that library sees them.

use std::ffi::c_int;
use std::panic::catch_unwind;

use trace_format::preload::{FileRecorder, NOT_RECORDED};

use crate::host::counter;
use crate::host::own_work::OwnWork;
use crate::state;
use crate::state::thread_block::thread_block;
use crate::store::file_calls::{self, FileCall};
use crate::store::file_recording;
use crate::store::known_files;
use crate::store::outermost::within;

extern "C" fn begin() -> u64 {
    match state::is_recording() {
        true => counter::anywhere(),
        false => 0,
    }
}

extern "C" fn number(descriptor: c_int) -> u32 {
    if !state::is_recording() {
        return NOT_RECORDED;
    }
    let _own = OwnWork::begin();
    let find = || catch_unwind(|| known_files::number_of(descriptor)).unwrap_or(NOT_RECORDED);
    within(thread_block(), find)
}

unsafe extern "C" fn record(
    file: u32,
    field: u16,
    bytes: u64,
    begin: u64,
    here: usize,
    site: usize,
) {
    let block = thread_block();
    let call = FileCall { file, field, bytes, begin, end: counter::anywhere(), site };
    // SAFETY: the caller vouches that a function entered at `here` has not returned.
    unsafe { file_calls::record(block, here, call) };
}

/// Found by `libgammachi_io.so`.
#[allow(non_upper_case_globals)] // A symbol's name.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub static gammachi_io_v2: FileRecorder =
    FileRecorder { attach: file_recording::attach, begin, number, record };
