//! Clock exchanges during the run (`GAMMACHI_CLOCK_EVERY`): blocking collective calls on MPI_COMM_WORLD
//! come in; every so many seconds all ranks measure before one of them.
//!
//! All ranks must agree before which call they measure, and only rank 0's clock can decide. So before
//! some of these calls rank 0 tells the others (16 bytes by MPI_Bcast) whether to measure now, and how
//! many calls later it will tell again: one in [`MOST_CALLS_BETWEEN`] where calls are frequent, each one
//! where they are rare. Only calls count that cannot return before all ranks have entered them: there,
//! waiting for rank 0 adds no dependence that the program does not have.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use std::panic::{AssertUnwindSafe, catch_unwind};

use trace_format::header::Definition;
use trace_format::markers::ToolReason;

use crate::clock::exchange::{self, Exchanger, Measured};
use crate::host::counter;
use crate::host::own_work::OwnWork;
use crate::mpi::abi;
use crate::mpi::plan::numbers;
use crate::state::thread_block::ThreadBlock;
use crate::store::trace_file::define;
use crate::store::window;

/// Most collective calls from one word of rank 0's to the next: what a word costs, some microseconds,
/// is a small part of so many calls.
const MOST_CALLS_BETWEEN: u32 = 16;
/// From one exchange to the next at least so many times as long as the last one took.
const LEAST_TIMES_ITS_COST: u32 = 50;
/// Words of rank 0's that fall into one interval, where calls are frequent enough.
const WORDS_AN_INTERVAL: u32 = 8;

/// Whether clocks are measured during this run.
static ON: AtomicBool = AtomicBool::new(false);
static WORLD: AtomicUsize = AtomicUsize::new(0);
/// Calls before rank 0's next word, this one included.
static CALLS_LEFT: AtomicU32 = AtomicU32::new(1);
static SCHEDULE: Mutex<Option<Schedule>> = Mutex::new(None);

/// What rank 0 decides by.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    every: Duration,
    /// When the last exchange ended, and how long it took.
    measured: Instant,
    took: Duration,
    told: Instant,
    /// Calls since `told`.
    calls: u32,
}

impl Schedule {
    /// Whether to measure now, and the number of calls until the next word.
    fn decide(&mut self, now: Instant) -> (bool, u32) {
        let a_call = now.saturating_duration_since(self.told) / self.calls.max(1);
        let wanted = self.every / WORDS_AN_INTERVAL;
        let calls = wanted.as_nanos() / a_call.as_nanos().max(1);
        let calls = calls.clamp(1, u128::from(MOST_CALLS_BETWEEN)) as u32;
        // Where ranks outnumber cores an exchange may take long: it must not take most of the run.
        let least = self.every.max(self.took * LEAST_TIMES_ITS_COST);
        let due = now.saturating_duration_since(self.measured) >= least;
        (self.told, self.calls) = (now, calls);
        (due, calls)
    }
}

/// Whether a function's blocking call returns on no rank before all have entered it.
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

/// Begins the schedule where rank 0 was told to measure every so many seconds. Collective.
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
        let schedule = Schedule { every, measured: now, took, told: now, calls: 1 };
        *SCHEDULE.lock().unwrap_or_else(PoisonError::into_inner) = Some(schedule);
        WORLD.store(abi::handle(exchanger.world()), Relaxed);
        ON.store(true, Relaxed);
    }
}

/// Ends the schedule.
pub fn end() {
    ON.store(false, Relaxed);
}

/// To be called before a call on `communicator` of a function that [`waits_for_all`].
///
/// # Safety
/// `block` is the calling thread's, inside an outermost call whose event has not begun.
#[inline(always)]
pub unsafe fn before_collective(block: *mut ThreadBlock, communicator: usize) {
    if ON.load(Relaxed) {
        // SAFETY: the caller's promise.
        unsafe { before_collective_when_on(block, communicator) };
    }
}

#[cold]
#[inline(never)]
unsafe fn before_collective_when_on(block: *mut ThreadBlock, communicator: usize) {
    if abi::handle(communicator) != WORLD.load(Relaxed) {
        return;
    }
    // No two threads may make collective calls on one communicator at once, so nobody else counts.
    let left = CALLS_LEFT.load(Relaxed);
    if left > 1 {
        CALLS_LEFT.store(left - 1, Relaxed);
        return;
    }
    let _own = OwnWork::begin();
    // SAFETY: the caller's promise.
    let begin = unsafe { counter::read(block) };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let measured = exchange::own().as_mut().and_then(agree_and_measure);
        if let Some(measured) = measured {
            write_down(&measured);
        }
    }));
    // SAFETY: the caller's promise.
    unsafe { window::tool_event(block, ToolReason::Clock, begin) };
}

fn agree_and_measure(exchanger: &mut Exchanger) -> Option<Measured> {
    let (due, calls) = SCHEDULE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_mut()
        .map_or((false, 1), |schedule| schedule.decide(Instant::now()));
    let Some([due, calls]) = exchanger.told_by_root([u64::from(due), u64::from(calls)]) else {
        // MPI is broken: the program will learn of it by its own call.
        end();
        return None;
    };
    CALLS_LEFT.store(calls as u32, Relaxed);
    if due == 0 {
        return None;
    }
    let start = Instant::now();
    let measured = exchanger.measure_during();
    if let Some(schedule) = SCHEDULE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        (schedule.measured, schedule.took) = (Instant::now(), start.elapsed());
    }
    measured
}

/// Puts an exchange and the bound that follows from it into the trace.
pub fn write_down(measured: &Measured) {
    // Where there is no space the run goes on without; recording ends at the next event anyway.
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
        (Schedule { every, measured: now, took, told: now, calls: 1 }, now)
    }

    #[test]
    fn frequent_calls_are_asked_now_and_then_and_rare_ones_each_time() {
        let (mut often, start) = schedule(10);
        assert_eq!(often.decide(start + Duration::from_millis(1)), (false, MOST_CALLS_BETWEEN));
        let (mut rarely, start) = schedule(10);
        assert_eq!(rarely.decide(start + Duration::from_secs(4)), (false, 1));
        assert_eq!(rarely.decide(start + Duration::from_secs(8)), (false, 1));
        assert_eq!(rarely.decide(start + Duration::from_secs(12)), (true, 1));
        rarely.measured = start + Duration::from_secs(12);
        assert_eq!(rarely.decide(start + Duration::from_secs(13)), (false, 1));
        assert_eq!(rarely.decide(start + Duration::from_secs(22)), (true, 1));
        // An exchange that took long comes less often.
        rarely.took = Duration::from_secs(1);
        assert_eq!(rarely.decide(start + Duration::from_secs(61)), (false, 1));
        assert_eq!(rarely.decide(start + Duration::from_secs(62)), (true, 1));
    }

    #[test]
    fn only_calls_that_wait_for_all_ranks_count() {
        assert!(waits_for_all(numbers::BARRIER) && waits_for_all(numbers::ALLTOALLW));
        assert!(!waits_for_all(numbers::INIT) && !waits_for_all(numbers::FINALIZE));
    }

    #[test]
    fn a_clock_that_stands_still_asks_as_rarely_as_may_be() {
        let (mut schedule, start) = schedule(10);
        assert_eq!(schedule.decide(start), (false, MOST_CALLS_BETWEEN));
        assert_eq!(schedule.decide(start), (false, MOST_CALLS_BETWEEN));
    }

    #[test]
    fn a_call_lasts_the_mean_since_the_last_word() {
        let (mut schedule, start) = schedule(8);
        // One call of 250 ms: four of them make the second that a word is wanted for.
        assert_eq!(schedule.decide(start + Duration::from_millis(250)), (false, 4));
        // Four calls of 500 ms each.
        assert_eq!(schedule.decide(start + Duration::from_millis(2250)), (false, 2));
    }
}
