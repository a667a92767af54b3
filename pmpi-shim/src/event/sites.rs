//! Where the program called MPI, from level 1 on.
//!
//! The word that stands where a wrapper was entered is the address that it returns to. Where that is a
//! language binding's (Fortran's call MPI's own functions), the binding's caller is wanted: how far above
//! its return address stands is found once for each address, by unwinding, and remembered.

use std::ffi::{c_int, c_void};

use trace_format::layout::{SITE_BEHIND_BINDING, Slot};

use crate::host::modules;
use crate::host::own_work::OwnWork;
use crate::state::thread_block::ThreadBlock;
use crate::store::site_table::{Place, look_at_modules};
use crate::store::window;

/// Frames of bindings that are looked through.
const MOST_FRAMES: usize = 16;

/// Notes the call's site in its slot.
///
/// # Safety
/// `block` is the calling thread's, which has a window and is inside an outermost call that took `slot`.
#[inline(always)]
pub unsafe fn note(block: *mut ThreadBlock, slot: *mut Slot) {
    // SAFETY: the caller's promise.
    unsafe {
        let address = (*block).outer_return;
        let place = *(*window::sites(block)).place(address);
        (*slot).site = match place {
            Place { address: known, above: 0 } if known == address => address as u64,
            _ => behind_binding(block, address),
        };
    }
}

/// The site of a call whose address is a language binding's, or was not seen before.
///
/// # Safety
/// As [`note`].
#[inline(never)]
unsafe fn behind_binding(block: *mut ThreadBlock, address: usize) -> u64 {
    // SAFETY: the caller's promise. The word above the entry lies in the binding's frame, which stands
    // while it calls us.
    unsafe {
        let entered = (*block).outer_stack;
        let place = (*window::sites(block)).place(address);
        if place.address != address {
            *place = Place { address, above: look_up(entered, address) };
        }
        match place.above {
            0 => address as u64,
            above => ((entered + above) as *const u64).read_volatile() | SITE_BEHIND_BINDING,
        }
    }
}

/// How far above the entry the caller of a language binding stands; 0 where the address is none's.
#[cold]
#[inline(never)]
unsafe fn look_up(entered: usize, address: usize) -> usize {
    let _own = OwnWork::begin();
    std::panic::catch_unwind(|| {
        look_at_modules();
        if cfg!(not(target_arch = "x86_64")) || !modules::is_of_mpi(address) {
            return 0;
        }
        let mut walk = Walk { address, reached: false, frames: 0, found: 0 };
        // SAFETY: callback and argument fit each other; the unwinder only reads frames.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
        walk.found.saturating_sub(entered)
    })
    .unwrap_or(0)
}

/// A walk from the wrapper outwards.
struct Walk {
    address: usize,
    reached: bool,
    frames: usize,
    /// Where the return address stands that lies outside the bindings, 0 none.
    found: usize,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

/// Goes on (0) until the first frame outside the MPI library behind the one that called us.
unsafe extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes its context, and what was handed over above.
    unsafe {
        let walk = &mut *walk.cast::<Walk>();
        let at = _Unwind_GetIP(context);
        if !walk.reached {
            walk.reached = at == walk.address;
            return 0;
        }
        walk.frames += 1;
        if modules::is_of_mpi(at) {
            return c_int::from(walk.frames > MOST_FRAMES);
        }
        // The canonical address of the frame below is where its caller's stack stood before the call.
        walk.found = _Unwind_GetCFA(context) - size_of::<usize>();
        1
    }
}
