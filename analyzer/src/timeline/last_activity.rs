//! Finds the last sign of life of a job in which not every rank finished. Open calls last until
//! then.
//!
//! A rank records no time stamp while it waits inside a call. So that this wait counts, its call
//! lasts until the job's last sign of life: the moment of a snapshot, the current time if a process is still running, else
//! the end of the launcher, else the last time stamp of any rank. Modification times of files do
//! not serve: they change when the kernel writes pages back. A rank whose process `gammachi run` saw end lasts until
//! then; any other that died inside a call seems to have waited until the launcher ended.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::trace::{ProcessState, RankTrace, Run};

use super::rank_time::RankTime;
use super::stretch::Ending;

/// A system clock that is more than this many seconds (115 days) after the last stamp is not
/// trusted.
const MAX_SECONDS: f64 = 1e7;

/// The last sign of life of a job that did not finish.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastActivity {
    /// Global seconds: the current time, the end of the launcher, or the last stamp of any rank.
    pub at_s: f64,
    /// Whether it is only the last stamp, so that the run may have continued after it.
    pub at_least: bool,
    /// Whether a process of the run is known to be still running.
    pub running: bool,
}

impl LastActivity {
    /// The last sign of life of a run; `None` if every rank that left a file returned from
    /// MPI_Finalize.
    pub(super) fn find(run: &Run, ranks: &[RankTime]) -> Option<Self> {
        run.ranks.iter().find(|trace| !trace.facts.finalized())?;
        let running = run.ranks.iter().any(|trace| trace.process.runs());
        let last_s = ranks.iter().map(RankTime::end_s).fold(0.0, f64::max);
        let by_wall_clock = || {
            let moment_ns = wall_clock_ns(run, running)?;
            on_timeline(run, ranks, running, moment_ns)
        };
        let at_s = by_counter(run, ranks)
            .or_else(by_wall_clock)
            // The wall clock may have been set.
            .filter(|at_s| (last_s..last_s + MAX_SECONDS).contains(at_s));
        Some(Self { at_s: at_s.unwrap_or(last_s), at_least: at_s.is_none(), running })
    }

    /// Extends the stretches of ranks that were inside a call, or whose processes are running, to
    /// this moment.
    pub(super) fn extend(&self, run: &Run, ranks: &mut [RankTime]) {
        for (trace, time) in run.ranks.iter().zip(ranks) {
            if time.ending != Ending::LastStamp {
                continue;
            }
            let end_s = self.end_of_process(run, trace, time);
            let Some(end_s) = end_s.or_else(|| self.outlives(trace).then_some(self.at_s)) else {
                continue;
            };
            time.end_ticks = time.end_ticks.max(time.clock.ticks_at(end_s));
            time.ending = Ending::LastActivity;
            time.clock.bound_ns = time
                .clock
                .bound
                .as_ref()
                .map(|bound| bound.largest(time.begin_ticks, time.end_ticks));
        }
    }

    /// When a rank's process ended, if `gammachi run` saw it; not after the job's last sign of life.
    fn end_of_process(&self, run: &Run, trace: &RankTrace, time: &RankTime) -> Option<f64> {
        let mut ended = run.description.as_ref()?.ended_ranks.iter();
        let ended = ended.find(|ended| ended.rank == trace.rank).filter(|_| !self.at_least)?;
        let end_s = at_moment(trace, time, u128::from(ended.at.unix_ns))?;
        Some(end_s.min(self.at_s))
    }

    /// Whether a rank without an end is known to have lived after its last stamp.
    fn outlives(&self, trace: &RankTrace) -> bool {
        match trace.process {
            ProcessState::Runs(_) => true,
            // It died inside its call at an unknown moment, while others are still running.
            ProcessState::Gone if self.running => false,
            _ => trace.threads.iter().any(|t| t.last_call.as_ref().is_some_and(|call| call.open)),
        }
    }
}

/// The moment of a snapshot by the counter of a rank.
fn by_counter(run: &Run, ranks: &[RankTime]) -> Option<f64> {
    let moment = run.description.as_ref()?.snapshot.as_ref()?.counter?;
    let mut known = run.ranks.iter().zip(ranks);
    let (_, time) = known.find(|(trace, _)| trace.rank == moment.rank)?;
    Some(time.clock.seconds(moment.ticks))
}

/// Last sign of life by the wall clock, in nanoseconds since 1970; `None` if there are only stamps.
fn wall_clock_ns(run: &Run, running: bool) -> Option<u128> {
    let snapshot = run.description.as_ref().and_then(|description| description.snapshot.as_ref());
    if let Some(snapshot) = snapshot {
        return Some(u128::from(snapshot.at.unix_ns));
    }
    if running {
        return SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_nanos());
    }
    let description = run.description.as_ref()?;
    // If the command started several jobs, its end is not the end of this one.
    let alone = description.jobs.is_none_or(|jobs| jobs <= 1);
    description.end.as_ref().filter(|_| alone).map(|end| u128::from(end.unix_ns))
}

fn on_timeline(run: &Run, ranks: &[RankTime], running: bool, moment_ns: u128) -> Option<f64> {
    let (trace, time) =
        run.ranks.iter().zip(ranks).find(|(trace, _)| {
            !trace.facts.anchors.is_empty() && (!running || trace.process.runs())
        })?;
    at_moment(trace, time, moment_ns)
}

/// A moment of the wall clock of a rank's host on the timeline.
fn at_moment(trace: &RankTrace, time: &RankTime, moment_ns: u128) -> Option<f64> {
    let anchor = trace.facts.anchors.last()?;
    let since_s = (moment_ns as i128 - i128::from(anchor.realtime_ns)) as f64 * 1e-9;
    Some(time.clock.seconds(anchor.ticks) + since_s)
}
