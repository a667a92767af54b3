//! Call paths of calls that lasted long, at level 2.
//!
//! The stack is walked when the call has returned; the time that it takes is the recorder's, and the slot
//! that says so carries the path's number. It is that of the call right before it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trace_format::markers::ToolReason;

use crate::host::counter;
use crate::host::own_stack;
use crate::host::own_work::OwnWork;
use crate::host::unwind::{self, Registers, walk};
use crate::state::thread_block::ThreadBlock;
use crate::store::paths;
use crate::store::site_table::look_at_modules;
use crate::store::window;

/// Level from which on long calls tell their path.
pub const PATHS_LEVEL: u32 = 2;
/// Addresses of a path at most, the innermost.
const MOST_ADDRESSES: usize = 64;

/// Ticks from which on a call is long.
static FROM_TICKS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Chooses from how many seconds on a call is long, and reads the modules' tables; called before anything is
/// recorded, where paths are.
pub fn prepare(from_s: f64) {
    let ticks = from_s * 1e9 / counter::ns_per_tick();
    // A number that does not fit becomes the nearest that does.
    FROM_TICKS.store(ticks as u64, Relaxed);
    unwind::prepare();
}

/// Whether a call that took so long tells its path.
#[inline(always)]
pub fn is_long(duration: u64) -> bool {
    duration >= FROM_TICKS.load(Relaxed)
}

/// Writes down the path of the call that ended at `end`, the last event.
///
/// # Safety
/// `block` is the calling thread's, inside its outermost call, whose event is complete.
#[cold]
#[inline(never)]
pub unsafe fn note(block: *mut ThreadBlock, end: u64) {
    let from = Registers::here();
    let _own = OwnWork::begin();
    // SAFETY: the caller's promise.
    unsafe {
        let entered = (*block).outer_stack;
        if (*block).own_stack.is_empty() {
            (*block).own_stack = own_stack::find();
        }
        let stack = (*block).own_stack.clone();
        let number = std::panic::catch_unwind(|| {
            look_at_modules();
            let (mut path, mut count) = ([0; MOST_ADDRESSES], 0);
            walk(from, entered, &stack, |address| {
                if let Some(place) = path.get_mut(count) {
                    *place = address;
                    count += 1;
                }
            });
            if count == 0 { None } else { paths::number_of(&path[..count]) }
        });
        if let Ok(Some(number)) = number {
            window::tool_event_with(block, ToolReason::Path, number, end);
        }
    }
}
