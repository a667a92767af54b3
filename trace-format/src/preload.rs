//! What `libgammachi.so` offers to `libgammachi_io.so`, the library that sees calls on files.
//!
//! The second one is preloaded only where these calls are to be recorded: a program without it keeps its `write`. It
//! finds the first by the symbol [`SYMBOL`], and without it does nothing.

use std::ffi::{CStr, c_int};
use std::sync::atomic::AtomicU64;

use crate::file_calls::FileReads;

/// Name of the [`FileRecorder`] in `libgammachi.so`. Another layout gets another name.
pub const SYMBOL: &CStr = c"gammachi_io_v2";

/// What [`FileRecorder::number`] returns for a descriptor whose calls are not recorded: it is no regular file, or a
/// file of the kernel (/proc, /sys).
pub const NOT_RECORDED: u32 = u32::MAX;

/// Functions that may be called by any thread and in signal handlers. They leave `errno` as it is.
#[repr(C)]
pub struct FileRecorder {
    /// Says that calls are seen from now on, and where the bytes are counted that the process reads (first) and writes
    /// (second) by calls that are seen but not recorded; and by which function it is asked for the reads of a file, with
    /// its number.
    pub attach: extern "C" fn(
        elsewhere: &'static [AtomicU64; 2],
        reads: extern "C" fn(file: u32) -> FileReads,
    ),
    /// The counter, before a call; 0 if nothing is recorded now.
    pub begin: extern "C" fn() -> u64,
    /// The number of an open descriptor's file, or [`NOT_RECORDED`].
    pub number: extern "C" fn(descriptor: c_int) -> u32,
    /// Records a call that ends now: the file's number, [`crate::file_calls::FileCallKind`] with its flags, bytes,
    /// and the counter before it; then the address on the stack at which it was entered, by a function that has not
    /// returned, and the return address.
    pub record: unsafe extern "C" fn(u32, u16, u64, u64, usize, usize),
}
