//! Finds the last sign of life of a job whose ranks did not all finish; calls that were open last to it.
//!
//! A rank inside a call leaves no stamp while it waits. It did not wait for nothing: its call counts up to
//! the last sign of life of the job, which is the moment of looking while a process runs, else the
//! launcher's end, else the last stamp of any rank.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::trace::{ProcessState, RankTrace, Run};

use super::{Ending, RankTime};

/// Seconds behind the last stamp from which on the system's clock is not believed: 115 days.
const MOST_SECONDS: f64 = 1e7;

/// The last sign of life of a job that did not finish.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastSign {
    /// Global seconds: the moment of looking, the end of the launcher, or the last stamp of all ranks.
    pub at_s: f64,
    /// Whether it is but the last stamp: the run may have gone on behind it.
    pub at_least: bool,
    /// Whether a process of the run is known to run still.
    pub running: bool,
}

impl LastSign {
    /// Of a run; `None` where every rank that left a file returned from MPI_Finalize.
    pub(super) fn of(run: &Run, ranks: &[RankTime]) -> Option<Self> {
        run.ranks.iter().find(|trace| !trace.facts.finalized())?;
        let running = run.ranks.iter().any(|trace| trace.process.runs());
        let last_s = ranks.iter().map(RankTime::end_s).fold(0.0, f64::max);
        let at_s = wall_clock_ns(run, running)
            .and_then(|moment_ns| on_timeline(run, ranks, running, moment_ns))
            // A wall clock that was set may say anything.
            .filter(|at_s| (last_s..last_s + MOST_SECONDS).contains(at_s));
        Some(Self { at_s: at_s.unwrap_or(last_s), at_least: at_s.is_none(), running })
    }

    /// Lets the stretches of ranks last to it that were inside a call, or whose processes run.
    pub(super) fn extend(&self, run: &Run, ranks: &mut [RankTime]) {
        for (trace, time) in run.ranks.iter().zip(ranks) {
            if time.ending != Ending::LastStamp || !self.outlives(trace) {
                continue;
            }
            time.end_ticks = time.end_ticks.max(time.clock.ticks_at(self.at_s));
            time.ending = Ending::LastSign;
            time.clock.bound_ns = time
                .clock
                .bound
                .as_ref()
                .map(|bound| bound.largest(time.begin_ticks, time.end_ticks));
        }
    }

    /// Whether a rank without an end is known to have lived after its last stamp.
    fn outlives(&self, trace: &RankTrace) -> bool {
        match trace.process {
            ProcessState::Runs(_) => true,
            // It died inside its call, at a moment that nobody knows, while others run on.
            ProcessState::Gone if self.running => false,
            _ => trace.threads.iter().any(|t| t.last_call.as_ref().is_some_and(|call| call.open)),
        }
    }
}

/// The last sign of life by the wall clock, nanoseconds since 1970, where there is one beside the stamps.
fn wall_clock_ns(run: &Run, running: bool) -> Option<u128> {
    if running {
        return SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_nanos());
    }
    let description = run.description.as_ref()?;
    // Where the launcher's command started several jobs its end is not this one's.
    let alone = description.jobs.is_none_or(|jobs| jobs <= 1);
    description.end.as_ref().filter(|_| alone).map(|end| u128::from(end.unix_ns))
}

fn on_timeline(run: &Run, ranks: &[RankTime], running: bool, moment_ns: u128) -> Option<f64> {
    let (trace, time) =
        run.ranks.iter().zip(ranks).find(|(trace, _)| {
            !trace.facts.anchors.is_empty() && (!running || trace.process.runs())
        })?;
    let anchor = trace.facts.anchors.last()?;
    let since_s = (moment_ns as i128 - i128::from(anchor.realtime_ns)) as f64 * 1e-9;
    Some(time.clock.seconds(anchor.ticks) + since_s)
}
