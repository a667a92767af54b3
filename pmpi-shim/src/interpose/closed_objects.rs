//! Forgets functions in objects that the program closes, so that they are not called any more, and
//! call sites there.
//!
//! `dlclose` is interposed for this purpose only. An object that is loaded again usually gets
//! another address. Pinning it instead would prevent its destructors from running and its data from
//! being initialised again.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::host::loader::{Changes, next_in_load_order};
use crate::mpi::real_entry;
use crate::mpi::weak_references;
use crate::state;
use crate::state::thread_block::thread_block;
use crate::store::paths;
use crate::store::sampling;
use crate::store::site_table;

/// Interposes `dlclose`.
///
/// # Safety
/// The caller vouches for the handle.
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
    // SAFETY: the C library's function of this name; the caller vouches for the handle.
    let close = || unsafe { transmute::<*mut c_void, Close>(real)(handle) };
    let result = sampling::unloading(thread_block(), close);
    let after = Changes::now();
    // A forked process stays out of the loader, so it does not know what was unloaded.
    if state::is_child() && result == 0 {
        let _ = std::panic::catch_unwind(|| real_entry::forget_unloaded(true));
    }
    if after.unloaded != before.unloaded {
        let _ = std::panic::catch_unwind(|| {
            // A destructor that loads an object may put it where the closed one was.
            real_entry::forget_unloaded(after.loaded != before.loaded);
            weak_references::forget_unloaded();
            site_table::forget_unloaded();
            paths::forget_unloaded();
        });
    }
    result
}
