//! What the threads of an OpenMP team did in a parallel region, and the record of it: for all runtimes.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use trace_format::layout::{Continuation, Slot, Team, TeamWaits};

use crate::host::counter;
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::outermost::{is_inside, within};
use crate::store::slots::{publish, put};
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

/// What a thread waits for inside a region: indices of [`ThreadBlock::region_waits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    AtBarrier,
    ForLock,
    ForTasks,
}

/// Bits of a thread's number in [`TeamSums::longest`], which leave room for two days of work.
const NUMBER_BITS: u32 = 14;
/// That number if it is not known.
pub(super) const NO_NUMBER: u64 = (1 << NUMBER_BITS) - 1;

/// Ticks of one thread: inside the region's code, and of that waiting; the rest is work.
#[derive(Clone, Copy)]
pub(super) struct Share {
    pub inside: u64,
    pub waits: [u64; 3],
}

/// Sums over the threads of a team, apart from what these only read.
#[repr(align(64))]
pub(super) struct TeamSums {
    makes_tasks: AtomicBool,
    threads: AtomicU32,
    inside: AtomicU64,
    /// Ticks and number of the thread that worked longest: the number in the lower bits.
    longest: AtomicU64,
    /// By [`Waits`].
    waits: [AtomicU64; 3],
}

impl TeamSums {
    pub const fn new() -> Self {
        Self {
            makes_tasks: AtomicBool::new(false),
            threads: AtomicU32::new(0),
            inside: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            waits: [const { AtomicU64::new(0) }; 3],
        }
    }

    /// For another region.
    pub fn clear(&self) {
        self.makes_tasks.store(false, Relaxed);
        self.threads.store(0, Relaxed);
        for sum in [&self.inside, &self.longest].into_iter().chain(&self.waits) {
            sum.store(0, Relaxed);
        }
    }

    /// A thread takes part.
    pub fn joined(&self) {
        self.threads.fetch_add(1, Relaxed);
    }

    /// So many threads take part.
    pub fn has_threads(&self, count: u32) {
        self.threads.store(count, Relaxed);
    }

    /// The region makes tasks, which threads may run wherever they wait.
    pub fn has_tasks(&self) {
        self.makes_tasks.store(true, Relaxed);
    }

    /// Adds time of a thread.
    pub fn add(&self, share: Share) {
        self.inside.fetch_add(share.inside, Relaxed);
        for (sum, ticks) in self.waits.iter().zip(share.waits) {
            if ticks != 0 {
                sum.fetch_add(ticks, Relaxed);
            }
        }
    }

    /// The thread with this number has worked so long in all.
    pub fn worked(&self, work: u64, number: u64) {
        let longest = work << NUMBER_BITS | number.min(NO_NUMBER);
        if self.longest.load(Relaxed) < longest {
            self.longest.fetch_max(longest, Relaxed);
        }
    }
}

/// Whether a region that a thread begins in a call entered at `here` is recorded: not inside another one, nor inside
/// MPI.
#[inline(always)]
pub(super) fn is_recorded(block: &ThreadBlock, here: usize) -> bool {
    state::records_openmp()
        && !block.window.get().is_null()
        && block.region.get() == 0
        && !is_inside(block, here)
}

/// Writes what a team did in a region that the thread had begun at this place, unless recording has ended meanwhile.
pub(super) fn record(block: &ThreadBlock, team: &TeamSums, site: usize, (begin, end): (u64, u64)) {
    // Another thread may have ended the recording.
    if state::is_recording() && !block.window.get().is_null() {
        within(block, || write(block, team, site, (begin, end)));
    }
}

fn write(block: &ThreadBlock, team: &TeamSums, site: usize, (begin, end): (u64, u64)) {
    let longest = team.longest.load(Relaxed);
    let inside = team.inside.load(Relaxed);
    let [barriers, locks, tasks] = [0, 1, 2].map(|of: usize| team.waits[of].load(Relaxed));
    let parts = Team {
        span: end.wrapping_sub(begin),
        inside,
        work: inside.saturating_sub(barriers + locks + tasks),
        longest: longest >> NUMBER_BITS,
    };
    let waits = match team.makes_tasks.load(Relaxed) {
        true => TeamWaits { barriers: 0, locks, tasks: tasks + barriers },
        false => TeamWaits { barriers, locks, tasks },
    };
    let number = match longest & NO_NUMBER {
        NO_NUMBER => u32::MAX,
        number => number as u32,
    };
    let threads = team.threads.load(Relaxed).min(u32::from(u16::MAX)) as u16;
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
