//! Where the program called MPI: one continuation an event, at level 2.
//!
//! The word that stands where a wrapper was entered is the address that it returns to. Where that is a
//! language binding's (Fortran's call MPI's own functions), the binding's caller is wanted: how far above
//! its return address stands is found once for each address, by unwinding, and remembered.

use std::ffi::{c_int, c_void};

use trace_format::layout::{CONTINUATION, CONTINUES_SITE, Slot, slot_word};

use crate::modules;
use crate::path::publish;
use crate::real_entry::OwnWork;
use crate::thread_block::ThreadBlock;

/// Addresses that a thread remembers.
const PLACES: usize = 64;
/// Frames of bindings that are looked through.
const MOST_FRAMES: usize = 16;

/// What a thread remembers of an address: how many bytes above the entry its binding's caller stands, 0
/// where the address is the program's own.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    address: usize,
    above: usize,
}

/// The addresses that a thread remembers.
#[derive(Debug)]
pub struct Sites {
    places: [Place; PLACES],
}

impl Default for Sites {
    fn default() -> Self {
        Self { places: [Place::default(); PLACES] }
    }
}

impl Sites {
    /// Forgets all addresses: other code may have taken their place.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Writes the call's site behind its slot.
///
/// # Safety
/// `block` is the calling thread's, which has a window and is inside an outermost call; reserved slots
/// are free behind every event.
#[inline(never)]
pub unsafe fn write(block: *mut ThreadBlock) {
    // SAFETY: the caller's promise. The word above the entry lies in the binding's frame, which stands
    // while it calls us.
    unsafe {
        let (entered, address) = ((*block).outer_stack, (*block).outer_return);
        let sites = &mut (*(*block).recorder).sites;
        let place = &mut sites.places[(address >> 2) % PLACES];
        if place.address != address {
            *place = Place { address, above: look_up(entered, address) };
        }
        let site = match place.above {
            0 => address,
            above => ((entered + above) as *const usize).read_volatile(),
        };
        let slot = (*block).cursor;
        slot.write(Slot {
            begin: site as u64,
            peer: i32::from(place.above != 0),
            ..Slot::default()
        });
        publish(slot, slot_word(CONTINUES_SITE, CONTINUATION, 0));
        (*block).cursor = slot.add(1);
    }
}

/// How far above the entry the caller of a language binding stands; 0 where the address is none's.
#[cold]
#[inline(never)]
unsafe fn look_up(entered: usize, address: usize) -> usize {
    let _own = OwnWork::begin();
    std::panic::catch_unwind(|| {
        modules::look();
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
