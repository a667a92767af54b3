//! Call sites, from level 1 on.
//!
//! The word at the address where a wrapper was entered is its return address. If it belongs to a
//! language binding (Fortran's call MPI's own functions), the site is the binding's caller, and a
//! binding may call another (Open MPI's `mpi_f08` calls the functions of `mpif.h`). How far above a
//! return address in a binding the next one stands is determined once per address, by unwinding,
//! and remembered.

use std::ffi::{c_int, c_void};

use trace_format::layout::{SITE_BEHIND_BINDING, Slot};

use crate::host::modules;
use crate::host::own_work::OwnWork;
use crate::state::thread_block::ThreadBlock;
use crate::store::site_table::{SiteEntry, key_of, look_at_modules};
use crate::store::window;

/// Maximum number of binding frames that are skipped.
const MAX_FRAMES: usize = 16;
/// Maximum number of the recorder's own frames.
const MAX_OWN_FRAMES: usize = 64;

/// Stores the call site in the call's slot.
///
/// # Safety
/// The thread has a window and is inside an outermost call that took `slot`.
#[inline(always)]
pub unsafe fn note(block: &ThreadBlock, slot: *mut Slot) {
    // SAFETY: the thread's own table and slot.
    unsafe {
        let address = block.outer_return.get();
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
unsafe fn behind_binding(block: &ThreadBlock, address: usize) -> u64 {
    // SAFETY: the thread's own table. The words above the entry lie in the frames of the bindings,
    // which live while they call the wrapper.
    unsafe {
        let (mut position, mut address) = (block.outer_stack.get(), address);
        let mut behind = 0;
        for _ in 0..MAX_FRAMES {
            let entry = (*window::sites(block)).entry(address);
            if entry.key != key_of(address) {
                *entry = SiteEntry { key: key_of(address), above: look_up(position, address) };
            }
            if entry.above == 0 {
                break;
            }
            position += entry.above;
            address = (position as *const usize).read_volatile();
            behind = SITE_BEHIND_BINDING;
        }
        address as u64 | behind
    }
}

/// Bytes from a return address in a language binding, which stands at `position`, up to that of the
/// binding's caller. 0 if the address does not belong to a binding.
#[cold]
#[inline(never)]
unsafe fn look_up(position: usize, address: usize) -> usize {
    let _own = OwnWork::begin();
    std::panic::catch_unwind(|| {
        look_at_modules();
        if cfg!(not(target_arch = "x86_64")) || !modules::is_of_mpi(address) {
            return 0;
        }
        let mut walk = Walk { address, reached: false, frames: 0, return_at: 0 };
        // SAFETY: callback and argument match; the unwinder only reads frames.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
        walk.return_at.saturating_sub(position)
    })
    .unwrap_or(0)
}

/// A walk from the wrapper outwards.
struct Walk {
    address: usize,
    reached: bool,
    frames: usize,
    /// Where the return address of the frame with that address stands, or 0.
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

/// Continues (0) until the frame beyond the one with the address.
unsafe extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes its context and the argument given above.
    unsafe {
        let walk = &mut *walk.cast::<Walk>();
        let at = _Unwind_GetIP(context);
        if !walk.reached {
            walk.frames += 1;
            walk.reached = at == walk.address;
            return c_int::from(walk.frames > MAX_OWN_FRAMES + MAX_FRAMES);
        }
        // The canonical frame address of the frame below is where its caller's stack stood before
        // the call.
        walk.return_at = _Unwind_GetCFA(context) - size_of::<usize>();
        1
    }
}
