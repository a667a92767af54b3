//! Calls C functions by address, with machine words as arguments.

use std::ffi::c_void;
use std::mem::transmute;

/// Calls a C function with this many machine words.
pub trait Invoke {
    /// Calls `entry`.
    ///
    /// # Safety
    /// `entry` must be a function that takes these arguments and returns an integer, pointer or
    /// nothing.
    unsafe fn invoke(self, entry: *const c_void) -> usize;
}

include!(concat!(env!("OUT_DIR"), "/invoke.rs"));
