//! The state that every layer may query: whether calls are recorded, and the calling thread's
//! block.
//!
//! | module | what it is for |
//! |---|---|
//! | this one | the recorder's state in one atomic, and which compute calls are recorded |
//! | `thread_block` | a thread's state on the path of a call, found with two instructions |
//!
//! `life` changes the state. `store` does so in one case, by [`stop`]: when there is no more space.

pub mod thread_block;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

const UNSTARTED: u8 = 0;
const STARTING: u8 = 1;
const RECORDING: u8 = 2;
/// Recording could not begin or continue. Events are only counted, but the rank still takes part in
/// what the ranks do together at MPI_Finalize.
const STOPPED: u8 = 3;
/// The program entered MPI_Finalize, or no rank records. Nothing is recorded or counted.
const OVER: u8 = 4;
/// The program closed its last session. Nothing is recorded or counted until it opens another one.
const BETWEEN_SESSIONS: u8 = 5;

static STATE: AtomicU8 = AtomicU8::new(UNSTARTED);
/// Events that found no space after recording stopped.
static LOST_EVENTS: AtomicU64 = AtomicU64::new(0);
static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// Which interposed compute calls are recorded: 0 none, then [`LARGER`], then [`ALL`].
static COMPUTE: AtomicU8 = AtomicU8::new(0);
/// Whether OpenMP parallel regions are recorded.
static OPENMP: AtomicBool = AtomicBool::new(false);
/// Whether another tool observes an OpenMP runtime.
static OTHER_OPENMP_TOOL: AtomicBool = AtomicBool::new(false);
static MISSED_TEAMS: AtomicU64 = AtomicU64::new(0);

/// BLAS 3 and trsv, LAPACK, FFTW.
pub const LARGER: u8 = 1;
/// Also BLAS 1 and 2.
pub const ALL: u8 = 2;

/// Whether events are written to the trace.
#[inline(always)]
pub fn is_recording() -> bool {
    STATE.load(Relaxed) == RECORDING
}

/// Whether there is a trace to complete at MPI_Finalize.
pub fn has_trace() -> bool {
    matches!(STATE.load(Relaxed), RECORDING | STOPPED)
}

/// Counts an event that is not recorded, if that is a loss.
pub fn count_lost_event() {
    if STATE.load(Relaxed) == STOPPED {
        LOST_EVENTS.fetch_add(1, Relaxed);
    }
}

/// Number of lost events.
pub fn lost_events() -> u64 {
    LOST_EVENTS.load(Relaxed)
}

fn transition(from: u8, to: u8) -> bool {
    STATE.compare_exchange(from, to, Relaxed, Relaxed).is_ok()
}

/// Claims the start for the first call of MPI_Init. Returns whether the caller got it.
pub fn claim_start() -> bool {
    transition(UNSTARTED, STARTING)
}

/// Returns the start: MPI_Init failed, there is nothing to record, and a later call may succeed.
pub fn give_back_start() {
    transition(STARTING, UNSTARTED);
}

/// Begins recording.
pub fn record() {
    STATE.store(RECORDING, Relaxed);
}

/// Marks recording as impossible. With `joins`, the rank still takes part at MPI_Finalize.
pub fn refuse(joins: bool) {
    STATE.store(if joins { STOPPED } else { OVER }, Relaxed);
}

/// Ends recording for good. Returns whether this call did.
pub fn stop() -> bool {
    transition(RECORDING, STOPPED)
}

/// Ends recording and counting.
pub fn end() {
    STATE.store(OVER, Relaxed);
}

/// Ends recording until another session is opened, unless recording has stopped.
pub fn end_session() {
    if !transition(RECORDING, BETWEEN_SESSIONS) {
        end();
    }
}

/// Whether recording has ended with the last session and may resume.
pub fn is_between_sessions() -> bool {
    STATE.load(Relaxed) == BETWEEN_SESSIONS
}

/// Resumes recording with another session. Returns whether this call did.
pub fn resume() -> bool {
    transition(BETWEEN_SESSIONS, RECORDING)
}

/// Ends recording and counting in a forked child. Other threads of the parent may have held any lock.
pub fn end_in_child() {
    IS_CHILD.store(true, Relaxed);
    end();
}

/// Whether this process was forked by one that recorded.
pub fn is_child() -> bool {
    IS_CHILD.load(Relaxed)
}

/// Chooses which interposed compute calls are recorded. Called once, before recording begins.
pub fn choose_compute(compute: &str, flops: bool) {
    let recorded = match (flops, compute) {
        (true, _) => ALL,
        (false, "blas") => LARGER,
        _ => 0,
    };
    COMPUTE.store(recorded, Relaxed);
}

/// Whether compute calls of this kind were chosen.
#[inline(always)]
pub fn chose_compute(from: u8) -> bool {
    COMPUTE.load(Relaxed) >= from
}

/// Chooses whether OpenMP parallel regions are recorded. Called once, before recording begins.
pub fn choose_openmp(chosen: bool) {
    OPENMP.store(chosen, Relaxed);
}

/// Another tool observes an OpenMP runtime, whose regions are not recorded then.
pub fn found_other_openmp_tool() {
    OTHER_OPENMP_TOOL.store(true, Relaxed);
}

/// Whether another tool observes one.
pub fn has_other_openmp_tool() -> bool {
    OTHER_OPENMP_TOOL.load(Relaxed)
}

/// A parallel region could not be recorded.
pub fn miss_team() {
    MISSED_TEAMS.fetch_add(1, Relaxed);
}

/// Number of parallel regions that could not be recorded.
pub fn missed_teams() -> u64 {
    MISSED_TEAMS.load(Relaxed)
}

/// Whether OpenMP parallel regions were chosen.
pub fn chose_openmp() -> bool {
    OPENMP.load(Relaxed)
}

/// Whether a parallel region that begins now is to be recorded.
#[inline(always)]
pub fn records_openmp() -> bool {
    OPENMP.load(Relaxed) && is_recording()
}

#[cfg(test)]
mod tests {
    use super::*;

    // A single test, because the state is a global of the process.
    #[test]
    fn recording_starts_once_and_never_restarts() {
        assert!(!is_recording() && !has_trace());
        count_lost_event();
        assert!(claim_start() && !claim_start());
        give_back_start();
        assert!(claim_start(), "MPI_Init may be called again after a failure");
        assert!(!stop(), "nothing is being recorded yet");
        record();
        give_back_start();
        count_lost_event();
        assert!(is_recording() && has_trace() && lost_events() == 0);
        assert!(stop() && !stop(), "only the first call stops recording");
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
        record();
        end_session();
        assert!(is_between_sessions() && !is_recording() && !has_trace() && !claim_start());
        assert!(resume() && !resume() && is_recording());
        refuse(true);
        end_session();
        assert!(!resume(), "recording that stopped never restarts");
    }

    #[test]
    fn chooses_compute_calls_by_kind() {
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
