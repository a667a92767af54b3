//! Clock exchanges during the run (`GAMMACHI_CLOCK_EVERY`): at the requested interval, all ranks
//! measure their clocks before a blocking collective call on MPI_COMM_WORLD.
//!
//! All ranks must agree before which call they measure, and only rank 0's clock can decide. Before
//! some of these calls, rank 0 therefore broadcasts 16 bytes that say whether to measure now and
//! after how many calls it will broadcast again: up to [`MAX_CALLS_BETWEEN`] calls later where
//! calls are frequent, at every call where they are rare. Only calls that cannot return before all
//! ranks have entered them count. At those calls, waiting for rank 0 adds no dependence that the
//! program does not have already.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use std::panic::{AssertUnwindSafe, catch_unwind};

use trace_format::header::Definition;
use trace_format::markers::ToolReason;

use crate::clock::exchange::{self, Exchanger, Measured};
use crate::host::counter;
use crate::host::lock::Lock;
use crate::host::own_work::OwnWork;
use crate::mpi::abi;
use crate::mpi::plan::numbers;
use crate::state::thread_block::ThreadBlock;
use crate::store::trace_file::define;
use crate::store::window;

/// Maximum number of collective calls between two broadcasts of rank 0. A broadcast costs some
/// microseconds, a small part of the time that this many calls take.
const MAX_CALLS_BETWEEN: u32 = 16;
/// Minimum interval between two exchanges, as a multiple of the last one's duration.
const MIN_COST_MULTIPLE: u32 = 50;
/// Broadcasts of rank 0 per interval, if calls are frequent enough.
const BROADCASTS_PER_INTERVAL: u32 = 8;

/// Whether clocks are measured during this run.
static ON: AtomicBool = AtomicBool::new(false);
static WORLD: AtomicUsize = AtomicUsize::new(0);
/// Calls until rank 0's next broadcast, including the current one.
static CALLS_LEFT: AtomicU32 = AtomicU32::new(1);
static SCHEDULE: Lock<Option<Schedule>> = Lock::new(None);

/// What rank 0's decision depends on.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    every: Duration,
    /// When the last exchange ended. `took` is how long it lasted.
    measured: Instant,
    took: Duration,
    last_broadcast: Instant,
    /// Calls since `last_broadcast`.
    calls: u32,
}

impl Schedule {
    /// Whether to measure now, and the number of calls until the next broadcast.
    fn decide(&mut self, now: Instant) -> (bool, u32) {
        let a_call = now.saturating_duration_since(self.last_broadcast) / self.calls.max(1);
        let wanted = self.every / BROADCASTS_PER_INTERVAL;
        let calls = wanted.as_nanos() / a_call.as_nanos().max(1);
        let calls = calls.clamp(1, u128::from(MAX_CALLS_BETWEEN)) as u32;
        // If ranks outnumber cores, an exchange may take long. It must not use up most of the run.
        let least = self.every.max(self.took * MIN_COST_MULTIPLE);
        let due = now.saturating_duration_since(self.measured) >= least;
        (self.last_broadcast, self.calls) = (now, calls);
        (due, calls)
    }
}

/// Whether the blocking call of a function returns on no rank before all ranks have entered it.
pub const fn waits_for_all(function: u16) -> bool {
    matches!(
        function,
        numbers::BARRIER
            | numbers::ALLREDUCE
            | numbers::ALLGATHER
            | numbers::ALLGATHERV
            | numbers::ALLTOALL
            | numbers::ALLTOALLV
            | numbers::ALLTOALLW
            | numbers::REDUCE_SCATTER
            | numbers::REDUCE_SCATTER_BLOCK
    )
}

/// Starts the schedule if rank 0 has an interval to measure at. Collective.
pub fn begin(exchanger: &Exchanger, every_s: Option<f64>) {
    if !exchanger.meets_everyone() {
        return;
    }
    let wanted = every_s.unwrap_or(0.0);
    let Some([bits, _]) = exchanger.told_by_root([wanted.to_bits(), 0]) else { return };
    let every_s = f64::from_bits(bits);
    if every_s > 0.0 {
        let now = Instant::now();
        let every = Duration::from_secs_f64(every_s);
        let took = Duration::ZERO;
        let schedule = Schedule { every, measured: now, took, last_broadcast: now, calls: 1 };
        *SCHEDULE.lock() = Some(schedule);
        WORLD.store(abi::handle(exchanger.world()), Relaxed);
        ON.store(true, Relaxed);
    }
}

/// Ends the schedule.
pub fn end() {
    ON.store(false, Relaxed);
}

/// Must be called before a call on `communicator` of a function for which [`waits_for_all`] holds.
/// The thread is inside an outermost call whose event has not begun.
#[inline(always)]
pub fn before_collective(block: &ThreadBlock, communicator: usize) {
    if ON.load(Relaxed) {
        before_collective_when_on(block, communicator);
    }
}

#[cold]
#[inline(never)]
fn before_collective_when_on(block: &ThreadBlock, communicator: usize) {
    if abi::handle(communicator) != WORLD.load(Relaxed) {
        return;
    }
    // MPI forbids two threads to make collective calls on one communicator at once, so no other
    // thread counts down.
    let left = CALLS_LEFT.load(Relaxed);
    if left > 1 {
        CALLS_LEFT.store(left - 1, Relaxed);
        return;
    }
    let _own = OwnWork::begin_long();
    let begin = counter::read(block);
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let measured = exchange::own().as_mut().and_then(agree_and_measure);
        if let Some(measured) = measured {
            write_to_trace(&measured);
        }
    }));
    window::tool_event(block, ToolReason::Clock, begin);
}

fn agree_and_measure(exchanger: &mut Exchanger) -> Option<Measured> {
    let (due, calls) =
        SCHEDULE.lock().as_mut().map_or((false, 1), |schedule| schedule.decide(Instant::now()));
    let Some([due, calls]) = exchanger.told_by_root([u64::from(due), u64::from(calls)]) else {
        // MPI is broken; the program will see the error in its own call.
        end();
        return None;
    };
    CALLS_LEFT.store(calls as u32, Relaxed);
    if due == 0 {
        return None;
    }
    let start = Instant::now();
    let measured = exchanger.measure_during();
    if let Some(schedule) = SCHEDULE.lock().as_mut() {
        (schedule.measured, schedule.took) = (Instant::now(), start.elapsed());
    }
    measured
}

/// Writes an exchange and the resulting error bound to the trace.
pub fn write_to_trace(measured: &Measured) {
    // If there is no space, the run continues without them. Recording ends at the next event
    // anyway.
    let _ = define(&Definition::ClockExchange(measured.exchange));
    if let Some(bound) = measured.bound {
        let _ = define(&Definition::ClockBound(bound));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(every_s: u64) -> (Schedule, Instant) {
        let now = Instant::now();
        let (every, took) = (Duration::from_secs(every_s), Duration::ZERO);
        (Schedule { every, measured: now, took, last_broadcast: now, calls: 1 }, now)
    }

    #[test]
    fn broadcasts_occasionally_for_frequent_calls_and_always_for_rare_ones() {
        let (mut often, start) = schedule(10);
        assert_eq!(often.decide(start + Duration::from_millis(1)), (false, MAX_CALLS_BETWEEN));
        let (mut rarely, start) = schedule(10);
        assert_eq!(rarely.decide(start + Duration::from_secs(4)), (false, 1));
        assert_eq!(rarely.decide(start + Duration::from_secs(8)), (false, 1));
        assert_eq!(rarely.decide(start + Duration::from_secs(12)), (true, 1));
        rarely.measured = start + Duration::from_secs(12);
        assert_eq!(rarely.decide(start + Duration::from_secs(13)), (false, 1));
        assert_eq!(rarely.decide(start + Duration::from_secs(22)), (true, 1));
        // A slow exchange is repeated less often.
        rarely.took = Duration::from_secs(1);
        assert_eq!(rarely.decide(start + Duration::from_secs(61)), (false, 1));
        assert_eq!(rarely.decide(start + Duration::from_secs(62)), (true, 1));
    }

    #[test]
    fn counts_only_calls_that_wait_for_all_ranks() {
        assert!(waits_for_all(numbers::BARRIER) && waits_for_all(numbers::ALLTOALLW));
        assert!(!waits_for_all(numbers::INIT) && !waits_for_all(numbers::FINALIZE));
    }

    #[test]
    fn broadcasts_as_rarely_as_possible_if_clock_stands_still() {
        let (mut schedule, start) = schedule(10);
        assert_eq!(schedule.decide(start), (false, MAX_CALLS_BETWEEN));
        assert_eq!(schedule.decide(start), (false, MAX_CALLS_BETWEEN));
    }

    #[test]
    fn estimates_call_duration_from_mean_since_last_broadcast() {
        let (mut schedule, start) = schedule(8);
        // One call took 250 ms, so the second that a broadcast is due for is four of them.
        assert_eq!(schedule.decide(start + Duration::from_millis(250)), (false, 4));
        // Four calls took 500 ms each.
        assert_eq!(schedule.decide(start + Duration::from_millis(2250)), (false, 2));
    }
}
