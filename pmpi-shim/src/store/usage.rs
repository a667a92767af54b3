//! Readings of what the process has used so far, now and then.
//!
//! A rank that is killed has no reading at its end. So one is taken during the run, by the thread
//! whose call ends first after the time for it has come. A call compares its end, which it has read
//! anyway, with that time; the system is asked at most once a second. If the program is sampled, the
//! same comparison finds what handlers leave to others.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use trace_format::header::{Definition, Phase, UsageReading};
use trace_format::markers::ToolReason;

use crate::host::counter;
use crate::host::machine;
use crate::host::own_work::OwnWork;
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::trace_file::{define, replace_definition};
use crate::store::{due, file_calls, sampling, thread_records, window};

/// Time to the first reading in nanoseconds. It doubles with each, up to [`LONGEST_NS`], so that
/// short runs have readings, too.
const FIRST_NS: u64 = 62_500_000;
/// Longest time between two readings in nanoseconds.
const LONGEST_NS: u64 = 1_000_000_000;

/// Counter from which on the next reading is due.
static READING_DUE: AtomicU64 = AtomicU64::new(u64::MAX);
/// Time to the reading after the next, nanoseconds.
static STEP_NS: AtomicU64 = AtomicU64::new(FIRST_NS);
/// Operating system's id of the thread that called MPI_Init.
static FIRST_THREAD: AtomicU32 = AtomicU32::new(0);

/// Takes the first reading. Called once, when the first thread has its window.
pub fn begin() -> Result<(), String> {
    FIRST_THREAD.store(thread_records::os_ids().first().copied().unwrap_or(0), Relaxed);
    define(&Definition::UsageReading(read(Phase::Init)))?;
    schedule_next(counter::now());
    Ok(())
}

/// Continues after the last reading.
pub fn resume() {
    schedule_next(counter::now());
}

/// Takes the last reading.
pub fn end() {
    due::set(u64::MAX);
    let _ = define(&Definition::UsageReading(read(Phase::Finalize)));
}

fn read(phase: Phase) -> UsageReading {
    machine::usage_reading(FIRST_THREAD.load(Relaxed), phase)
}

fn schedule_next(now: u64) {
    let step_ns = STEP_NS.load(Relaxed);
    STEP_NS.store((2 * step_ns).min(LONGEST_NS), Relaxed);
    let ticks = step_ns as f64 / counter::ns_per_tick();
    READING_DUE.store(now.saturating_add(ticks as u64), Relaxed);
    due::set(READING_DUE.load(Relaxed));
}

/// Does what is due when a call ends. With `as_event`, its time is an event behind those
/// of that call; among polls it is not, because an event would end their run.
/// The event of the thread's outermost call is complete.
#[cold]
#[inline(never)]
pub fn take(block: &ThreadBlock, end: u64, as_event: bool) {
    // One thread takes it; the time of the next is not known yet.
    if !due::claim(end) {
        return;
    }
    if !state::is_recording() {
        return;
    }
    file_calls::write_later(block);
    // The call may have been followed by events of its own, such as a definition's.
    let begin = counter::read(block);
    let _own = OwnWork::begin();
    let reading_due = READING_DUE.load(Relaxed);
    if end < reading_due {
        let _ = std::panic::catch_unwind(sampling::look);
        due::set(reading_due);
        return;
    }
    let _ = std::panic::catch_unwind(|| {
        let _ = replace_definition(&Definition::UsageReading(read(Phase::During)));
        sampling::look_at_threads();
    });
    schedule_next(end);
    if as_event && block.paused_at.get() == 0 {
        window::tool_event(block, ToolReason::Usage, begin);
    }
}
