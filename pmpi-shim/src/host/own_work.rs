//! Protects the program's thread while the recorder works in it.

use std::ffi::c_int;
use std::ptr::null_mut;

use crate::host::signals::HeldOff;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE` of Linux.
const CANCEL_DISABLE: c_int = 1;

/// Guards a section of the recorder's own work off the path of a call. `errno` stays as the program
/// left it. The thread cannot be cancelled inside the section, as the MPI call itself would not be,
/// and no signal handler runs, because it might leave the work half done by a jump.
pub struct OwnWork {
    errno: c_int,
    cancel_state: c_int,
    /// Dropped last, after `Drop` has restored the others.
    _signals: Option<HeldOff>,
}

impl OwnWork {
    /// Begins a section that ends when the guard is dropped.
    pub fn begin() -> Self {
        Self::with(Some(HeldOff::begin()))
    }

    /// Begins a section that may wait long, for other ranks or for files. Signal handlers run in
    /// it: a program that waits must hear its signals. If a handler leaves it by a jump, no lock
    /// stays taken; a clock exchange that it left is not repeated.
    pub fn begin_long() -> Self {
        Self::with(None)
    }

    fn with(signals: Option<HeldOff>) -> Self {
        let mut cancel_state = 0;
        // SAFETY: both addresses are the calling thread's own.
        unsafe {
            pthread_setcancelstate(CANCEL_DISABLE, &mut cancel_state);
            Self { errno: *libc::__errno_location(), cancel_state, _signals: signals }
        }
    }
}

impl Drop for OwnWork {
    fn drop(&mut self) {
        // SAFETY: both addresses are the calling thread's own, because the guard never leaves it.
        unsafe {
            *libc::__errno_location() = self.errno;
            pthread_setcancelstate(self.cancel_state, null_mut());
        }
    }
}
