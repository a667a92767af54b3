//! What every floor may ask: whether calls are recorded, and the calling thread's block.
//!
//! | module | what it is for |
//! |---|---|
//! | this one | the recorder's state in one atomic, and which compute calls are recorded |
//! | `thread_block` | what a thread needs on the path of a call, found with two instructions |
//!
//! `life` moves the state on. The store does so in one case, by [`stop`]: where there is no more space.

pub mod thread_block;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

const UNSTARTED: u8 = 0;
const STARTING: u8 = 1;
const RECORDING: u8 = 2;
/// Recording could not begin or go on: events are only counted, but the rank still takes part in what ranks do
/// together at MPI_Finalize.
const STOPPED: u8 = 3;
/// MPI_Finalize was entered, or no rank records: nothing is recorded or counted.
const OVER: u8 = 4;

static STATE: AtomicU8 = AtomicU8::new(UNSTARTED);
/// Events that found no space after recording stopped.
static LOST_EVENTS: AtomicU64 = AtomicU64::new(0);
/// Which interposed compute calls are recorded: 0 none, then [`LARGER`], then [`ALL`].
static COMPUTE: AtomicU8 = AtomicU8::new(0);

/// BLAS 3 and trsv, LAPACK, FFTW.
pub const LARGER: u8 = 1;
/// Also BLAS 1 and 2.
pub const ALL: u8 = 2;

/// Whether events go to the trace.
#[inline(always)]
pub fn is_recording() -> bool {
    STATE.load(Relaxed) == RECORDING
}

/// Whether MPI_Finalize has something to complete.
pub fn has_trace() -> bool {
    matches!(STATE.load(Relaxed), RECORDING | STOPPED)
}

/// Counts an event that goes nowhere, where that is a loss.
pub fn count_lost_event() {
    if STATE.load(Relaxed) == STOPPED {
        LOST_EVENTS.fetch_add(1, Relaxed);
    }
}

/// Events that were counted as lost.
pub fn lost_events() -> u64 {
    LOST_EVENTS.load(Relaxed)
}

fn moves(from: u8, to: u8) -> bool {
    STATE.compare_exchange(from, to, Relaxed, Relaxed).is_ok()
}

/// Claims the start for the first call of MPI_Init; whether this is the one.
pub fn claim_start() -> bool {
    moves(UNSTARTED, STARTING)
}

/// MPI_Init failed: there is nothing to record, and a later call may succeed.
pub fn give_back_start() {
    moves(STARTING, UNSTARTED);
}

/// Events go to the trace from now on.
pub fn record() {
    STATE.store(RECORDING, Relaxed);
}

/// Recording could not begin; `joins` where the rank takes part at MPI_Finalize all the same.
pub fn refuse(joins: bool) {
    STATE.store(if joins { STOPPED } else { OVER }, Relaxed);
}

/// Ends recording for good; whether this call did.
pub fn stop() -> bool {
    moves(RECORDING, STOPPED)
}

/// Nothing is recorded or counted any more.
pub fn end() {
    STATE.store(OVER, Relaxed);
}

/// Chooses which interposed compute calls are recorded; called once, before recording begins.
pub fn choose_compute(compute: &str, flops: bool) {
    let recorded = match (flops, compute) {
        (true, _) => ALL,
        (false, "blas") => LARGER,
        _ => 0,
    };
    COMPUTE.store(recorded, Relaxed);
}

/// Whether compute calls of that kind were chosen.
#[inline(always)]
pub fn chose_compute(from: u8) -> bool {
    COMPUTE.load(Relaxed) >= from
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test for all: the state is the process's.
    #[test]
    fn recording_begins_once_and_never_again_after_its_end() {
        assert!(!is_recording() && !has_trace());
        count_lost_event();
        assert!(claim_start() && !claim_start());
        give_back_start();
        assert!(claim_start(), "MPI_Init may be called again where it failed");
        assert!(!stop(), "nothing is recorded yet");
        record();
        give_back_start();
        count_lost_event();
        assert!(is_recording() && has_trace() && lost_events() == 0);
        assert!(stop() && !stop(), "it is said once that recording stopped");
        assert!(!is_recording() && has_trace());
        count_lost_event();
        assert_eq!(lost_events(), 1);
        end();
        count_lost_event();
        assert!(!claim_start() && !has_trace() && lost_events() == 1);
        refuse(true);
        assert!(has_trace() && !is_recording());
        refuse(false);
        assert!(!has_trace() && !claim_start());
    }

    #[test]
    fn compute_calls_are_chosen_by_kind() {
        for (compute, flops, larger, all) in [
            ("outside", false, false, false),
            ("blas", false, true, false),
            ("regions", true, true, true),
        ] {
            choose_compute(compute, flops);
            assert_eq!((chose_compute(LARGER), chose_compute(ALL)), (larger, all), "{compute}");
        }
    }
}
