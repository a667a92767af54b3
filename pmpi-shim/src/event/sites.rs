//! Call sites, from level 1 on.
//!
//! The word at the address where a wrapper was entered is its return address. If it belongs to a
//! language binding (Fortran's call MPI's own functions), the site is the binding's caller. How far
//! above the wrapper's return address that caller's stands is determined once per address, by
//! unwinding, and remembered.

use std::ffi::{c_int, c_void};

use trace_format::layout::{SITE_BEHIND_BINDING, Slot};

use crate::host::modules;
use crate::host::own_work::OwnWork;
use crate::state::thread_block::ThreadBlock;
use crate::store::site_table::{SiteEntry, key_of, look_at_modules};
use crate::store::window;

/// Maximum number of binding frames that are skipped.
const MAX_FRAMES: usize = 16;

/// Stores the call site in the call's slot.
///
/// # Safety
/// `block` is the calling thread's, which has a window and is inside an outermost call that took
/// `slot`.
#[inline(always)]
pub unsafe fn note(block: *mut ThreadBlock, slot: *mut Slot) {
    // SAFETY: the caller's promise.
    unsafe {
        let address = (*block).outer_return;
        let entry = *(*window::sites(block)).entry(address);
        (*slot).site = match entry {
            SiteEntry { key, above: 0 } if key == key_of(address) => address as u64,
            _ => behind_binding(block, address),
        };
    }
}

/// The site of a call whose return address belongs to a language binding or was not seen before.
///
/// # Safety
/// As for [`note`].
#[inline(never)]
unsafe fn behind_binding(block: *mut ThreadBlock, address: usize) -> u64 {
    // SAFETY: the caller's promise. The word above the entry lies in the frame of the binding,
    // which lives while it calls the wrapper.
    unsafe {
        let entered = (*block).outer_stack;
        let entry = (*window::sites(block)).entry(address);
        if entry.key != key_of(address) {
            *entry = SiteEntry { key: key_of(address), above: look_up(entered, address) };
        }
        match entry.above {
            0 => address as u64,
            above => {
                let caller = ((entered + above) as *const usize).read_volatile();
                if (*window::sites(block)).is_new_caller(caller) {
                    define_modules();
                }
                caller as u64 | SITE_BEHIND_BINDING
            }
        }
    }
}

/// Defines the module of a binding's caller, if it is a new one.
#[cold]
#[inline(never)]
fn define_modules() {
    let _own = OwnWork::begin();
    let _ = std::panic::catch_unwind(look_at_modules);
}

/// Bytes from the entry up to the return address of a language binding's caller. 0 if the address
/// does not belong to a binding.
#[cold]
#[inline(never)]
unsafe fn look_up(entered: usize, address: usize) -> usize {
    let _own = OwnWork::begin();
    std::panic::catch_unwind(|| {
        look_at_modules();
        if cfg!(not(target_arch = "x86_64")) || !modules::is_of_mpi(address) {
            return 0;
        }
        let mut walk = Walk { address, reached: false, frames: 0, return_at: 0 };
        // SAFETY: callback and argument match; the unwinder only reads frames.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
        walk.return_at.saturating_sub(entered)
    })
    .unwrap_or(0)
}

/// A walk from the wrapper outwards.
struct Walk {
    address: usize,
    reached: bool,
    frames: usize,
    /// Where the return address outside the bindings stands, or 0.
    return_at: usize,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

/// Continues (0) until the first frame outside the MPI library, beyond the one that called the
/// recorder.
unsafe extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes its context and the argument given above.
    unsafe {
        let walk = &mut *walk.cast::<Walk>();
        let at = _Unwind_GetIP(context);
        if !walk.reached {
            walk.reached = at == walk.address;
            return 0;
        }
        walk.frames += 1;
        if modules::is_of_mpi(at) {
            return c_int::from(walk.frames > MAX_FRAMES);
        }
        // The canonical frame address of the frame below is where its caller's stack stood before
        // the call.
        walk.return_at = _Unwind_GetCFA(context) - size_of::<usize>();
        1
    }
}
