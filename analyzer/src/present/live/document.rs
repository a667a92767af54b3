//! The document of `gammachi top --json`.

use serde::Serialize;

use crate::live::{Alarm, LiveRun, Moment, RankState};
use crate::present::document::{Head, text};
use crate::trace::snapshot::Reason;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    head: Head,
    /// The run directory.
    run: String,
    /// This moment, seconds since the first rank left MPI_Init; null: all ranks of this host have finished.
    at_s: Option<f64>,
    /// Mean over ranks of their `efficiency`; null: unknown.
    efficiency: Option<f64>,
    /// Iterations per second of the loop that turns most often and that all ranks take part in, over the last seconds, at
    /// most 10; null: none was seen, or calls were missed.
    iterations_per_s: Option<f64>,
    /// Mean over ranks of their `waits_for_core`; null: unknown.
    waits_for_core: Option<f64>,
    /// Ranks of this host, ascending.
    ranks: Vec<RankDocument<'a>>,
    /// What somebody should look at.
    alarms: Vec<AlarmDocument>,
    /// Hosts of ranks that cannot be followed from here, one for each of these ranks.
    elsewhere: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RankDocument<'a> {
    /// Rank in MPI_COMM_WORLD.
    rank: u32,
    /// `computing` (outside MPI), `in_mpi`, `stopped` (by a signal), `dead` (ended before MPI_Finalize) or `finished`.
    state: &'static str,
    /// The call that its first thread is inside, or polls by; null: outside MPI.
    call: Option<&'a str>,
    /// Since when it is inside or outside, on the clock of `at_s`; null: unknown.
    since_s: Option<f64>,
    /// Ranks that the call waits for; null: outside MPI, or not known.
    waits_for: Option<&'a [u32]>,
    /// Share of the last seconds, at most 10, that its first thread was outside MPI and the recorder; null: unknown.
    efficiency: Option<f64>,
    /// How many seconds that is of. Where a thread makes more calls than its window holds, some are not seen.
    observed_s: f64,
    /// Share of the time since the last look that one of its threads waited for a core; null: unknown.
    waits_for_core: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AlarmDocument {
    /// `dead`, `stopped`, `deadlock` (ranks wait for each other in a cycle; `rank` is the one whose message is missing
    /// while it is in a collective operation already, else the lowest), `no_progress` (all
    /// ranks are inside calls, and none has begun or ended one for 30 s; `rank` is the one that most others wait for in
    /// the end) or `outside` (the same, but some ranks are outside MPI, and that for three times as long as ever before
    /// while `gammachi top` looked; `rank` is the only one, or that for which most wait).
    kind: Reason,
    /// Rank in MPI_COMM_WORLD; null: unknown.
    rank: Option<u32>,
    /// Since when, on the clock of `at_s`; null: unknown.
    since_s: Option<f64>,
}

/// The name of a state in documents and metrics.
pub(super) fn state_name(state: RankState) -> &'static str {
    match state {
        RankState::Computing => "computing",
        RankState::InMpi => "in_mpi",
        RankState::Stopped => "stopped",
        RankState::Dead => "dead",
        RankState::Finished => "finished",
    }
}

/// The document.
///
/// # Errors
/// None that a run can cause.
pub fn json(run: &LiveRun, moment: &Moment, alarms: &[Alarm]) -> serde_json::Result<String> {
    let ranks = moment.ranks.iter().map(|of| RankDocument {
        rank: of.rank,
        state: state_name(of.state),
        call: of.call.as_deref(),
        since_s: of.since_s,
        waits_for: of.waits_for.as_deref(),
        efficiency: of.efficiency,
        observed_s: of.observed_s,
        waits_for_core: of.waits_for_core,
    });
    let alarms =
        alarms.iter().map(|of| AlarmDocument { kind: of.kind, rank: of.rank, since_s: of.since_s });
    text(&Document {
        head: Head::default(),
        run: run.directory.display().to_string(),
        at_s: (!moment.is_over).then_some(moment.at_s),
        efficiency: moment.efficiency(),
        iterations_per_s: moment.iterations.map(|iterations| iterations.per_s),
        waits_for_core: moment.waits_for_core(),
        ranks: ranks.collect(),
        alarms: alarms.collect(),
        elsewhere: run.elsewhere().collect(),
    })
}
