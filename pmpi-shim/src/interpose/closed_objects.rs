//! Objects that the program closes: what was found in them must not be called any more.
//!
//! `dlclose` is interposed for that alone. An object that is loaded again usually lies elsewhere, and pinning
//! it would keep its destructors from running and its data from beginning anew.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::host::loader::{Changes, next_in_load_order};
use crate::mpi::real_entry;
use crate::mpi::weak_references;

/// Interposes `dlclose`.
///
/// # Safety
/// The caller answers for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dlclose(handle: *mut c_void) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let mut real = REAL.load(Relaxed);
    if real.is_null() {
        let Some(found) = next_in_load_order(c"dlclose") else { return -1 };
        real = found.cast_mut();
        REAL.store(real, Relaxed);
    }
    type Close = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
    let before = Changes::now();
    // SAFETY: the C library's function of this name; the handle is the caller's.
    let result = unsafe { transmute::<*mut c_void, Close>(real)(handle) };
    let after = Changes::now();
    if after.unloaded != before.unloaded {
        let _ = std::panic::catch_unwind(|| {
            // A destructor that loads something may put it where the closed object lay.
            real_entry::forget_unloaded(after.loaded != before.loaded);
            weak_references::forget_unloaded();
        });
    }
    result
}
