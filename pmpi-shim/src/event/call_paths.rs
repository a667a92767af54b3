//! Call paths of long calls, at level 2.
//!
//! The stack is walked after the call has returned. That time is the recorder's, and the tool event
//! that records it carries the number of the path. The path belongs to the call right before that
//! event.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trace_format::markers::ToolReason;

use crate::host::counter;
use crate::host::own_stack;
use crate::host::own_work::OwnWork;
use crate::host::unwind::{self, Registers, walk};
use crate::state::thread_block::ThreadBlock;
use crate::store::interpreted;
use crate::store::paths;
use crate::store::site_table::look_at_modules;
use crate::store::window;

/// Detail level from which long calls have a path.
pub const PATHS_LEVEL: u32 = 2;
/// Maximum number of addresses in a path. The innermost are kept.
const MAX_ADDRESSES: usize = 64;

/// Minimum duration of a long call in ticks.
static FROM_TICKS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets the minimum duration of a long call in seconds and reads the modules' tables. Called before
/// anything is recorded, if paths are to be recorded.
pub fn prepare(from_s: f64) {
    let ticks = from_s * 1e9 / counter::ns_per_tick();
    // A number out of range becomes the nearest that fits.
    FROM_TICKS.store(ticks as u64, Relaxed);
    unwind::prepare();
}

/// Whether a call of this duration gets a path.
#[inline(always)]
pub fn is_long(duration: u64) -> bool {
    duration >= FROM_TICKS.load(Relaxed)
}

/// Records the path of the call that ended at `end`, the last event.
/// The event of the thread's outermost call is complete.
#[cold]
#[inline(never)]
pub fn note(block: &ThreadBlock, end: u64) {
    let from = Registers::here();
    let _own = OwnWork::begin();
    let entered = block.outer_stack.get();
    let stack = own_stack::range(block);
    let number = std::panic::catch_unwind(|| {
        look_at_modules();
        let (mut path, mut count) = ([0; MAX_ADDRESSES], 0);
        walk(from, entered, &stack, |address| {
            if let Some(entry) = path.get_mut(count) {
                *entry = address;
                count += 1;
            }
        });
        interpreted::define_new(true);
        if count == 0 { None } else { paths::number_of(&path[..count]) }
    });
    if let Ok(Some(number)) = number {
        window::tool_event_with(block, ToolReason::Path, number, end);
    }
}
