//! Forgets functions in objects that the program closes, so that they are not called any more, and
//! call sites there.
//!
//! `dlclose` is interposed for this purpose only. An object that is loaded again usually gets
//! another address. Pinning it instead would prevent its destructors from running and its data from
//! being initialised again.

use std::ffi::{c_int, c_void};

use crate::host::loader::{Behind, Changes};
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
    // SAFETY: the C library's function of this name has this type.
    static REAL: Behind<unsafe extern "C-unwind" fn(*mut c_void) -> c_int> =
        unsafe { Behind::new(c"dlclose") };
    let Some(real) = REAL.get() else { return -1 };
    let before = Changes::now();
    // SAFETY: the caller vouches for the handle.
    let result = sampling::unloading(thread_block(), || unsafe { real(handle) });
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
