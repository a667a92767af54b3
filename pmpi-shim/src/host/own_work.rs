//! Protects the program's thread while the recorder works in it.

use std::ffi::c_int;
use std::ptr::null_mut;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE` of Linux.
const CANCEL_DISABLE: c_int = 1;

/// Guards a section of the recorder's own work off the path of a call. `errno` stays as the program
/// left it, and the thread cannot be cancelled inside the section, as the MPI call itself would not
/// be.
pub struct OwnWork {
    errno: c_int,
    cancel_state: c_int,
}

impl OwnWork {
    /// Begins a section that ends when the guard is dropped.
    pub fn begin() -> Self {
        let mut cancel_state = 0;
        // SAFETY: both addresses are the calling thread's own.
        unsafe {
            pthread_setcancelstate(CANCEL_DISABLE, &mut cancel_state);
            Self { errno: *libc::__errno_location(), cancel_state }
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
