//! Which parallel regions of OpenMP programs are recorded, and their records: for all runtimes.

use trace_format::layout::{self, Continuation, Slot, TeamWaits};

use crate::host::counter;
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::outermost::{is_inside, within};
use crate::store::slots::{publish, put};
use crate::store::teams::{Share, Sums, Team};
use crate::store::window::{make_room, take_slot};

/// Bits of [`ThreadBlock::region`]: the thread is in a region; it waits there, or runs a task meanwhile; it has made
/// tasks there. They are kept with the thread, not in its frames: a program that leaves a region by longjmp leaves
/// nothing behind that points to its stack.
pub(super) const IN_REGION: u8 = 1;
pub(super) const WAITS: u8 = 2;
pub(super) const MADE_TASKS: u8 = 4;
/// It has begun a region with an interposed entry, and the runtime has not called the region's function yet.
pub(super) const STARTS: u8 = 8;
/// It is in a region of which the runtime tells.
pub(super) const IS_TOLD: u8 = 16;

/// Whether a region that a thread begins in a call entered at `here` is recorded: not inside another one, nor inside
/// MPI.
#[inline(always)]
pub(super) fn is_recorded(block: &ThreadBlock, here: usize) -> bool {
    state::records_openmp()
        && !block.window.get().is_null()
        && block.region.get() == 0
        && !is_inside(block, here)
}

/// Writes what a team did in a region of the thread's that began at this place, unless recording has ended meanwhile.
pub(super) fn record(block: &ThreadBlock, team: &Team, region: u64, end: u64) {
    let (begin, site) = team.end();
    let Some(sums) = team.sums(region) else { return state::miss_team() };
    // Another thread may have ended the recording.
    if state::is_recording() && !block.window.get().is_null() {
        within(block, || write(block, &sums, site, (begin, end)));
    }
}

fn write(block: &ThreadBlock, sums: &Sums, site: usize, (begin, end): (u64, u64)) {
    let Share { work, waits: [barriers, locks, tasks] } = sums.share;
    let (longest, number) = sums.longest;
    let span = end.wrapping_sub(begin);
    let inside = work + barriers + locks + tasks;
    let (inside, waits) = match sums.makes_tasks {
        true => {
            // Threads may run tasks until all have come to the region's end.
            let all = inside.max(span.saturating_mul(sums.threads.into()));
            (all, TeamWaits { barriers: 0, locks, tasks: all.saturating_sub(work + locks) })
        }
        false => (inside, TeamWaits { barriers, locks, tasks }),
    };
    let parts = layout::Team { span, inside, work, longest };
    let threads = sums.threads.min(u32::from(u16::MAX)) as u16;
    let window = block.window.get();
    make_room(block, 2);
    // Nothing in a window begins before the window was opened.
    let at = if block.window.get() == window { end } else { counter::now() };
    let slot = Slot { begin: at, site: site as u64, ..Slot::of_team(threads, number) };
    // SAFETY: each slot was taken, and so is the thread's own; the continuations are there before the event is published.
    unsafe {
        let event = take_slot(block);
        put(take_slot(block), Continuation::Team(parts));
        if waits != TeamWaits::default() {
            put(take_slot(block), Continuation::TeamWaits(waits));
        }
        event.write(Slot { word: 0, ..slot });
        publish(event, slot.word);
    }
}
