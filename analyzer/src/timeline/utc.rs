//! Places a run in UTC, so that several jobs can share one time axis.

use trace_format::header::ClockAnchor;

use crate::trace::{RankTrace, Run};

use super::alignment::Alignment;
use super::rank_time::RankTime;

/// The global timeline in UTC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utc {
    /// Nanoseconds since 1970 at global second 0, by the system clock of the reference rank's host.
    pub zero_ns: i128,
    /// Error bound of that clock against UTC, nanoseconds; `None` if it is not synchronised.
    pub bound_ns: Option<u64>,
    /// Largest difference between the system clocks of the aligned ranks' hosts, nanoseconds.
    pub spread_ns: f64,
}

/// Uses the first aligned rank; `None` if no aligned rank has an anchor.
pub(super) fn of_run(run: &Run, ranks: &[RankTime]) -> Option<Utc> {
    let aligned = run.ranks.iter().zip(ranks);
    let aligned = aligned.filter(|(_, time)| time.clock.alignment != Alignment::Unaligned);
    let zeros: Vec<(&RankTrace, i128)> =
        aligned.filter_map(|(trace, time)| Some((trace, zero_ns(trace, time)?))).collect();
    let &(reference, zero_ns) = zeros.first()?;
    let apart = zeros.iter().map(|(_, other)| (other - zero_ns) as f64);
    let (low, high) = apart.fold((0.0f64, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
    let system_clock = reference.facts.system_clock.filter(|clock| clock.synchronised);
    Some(Utc {
        zero_ns,
        bound_ns: system_clock.map(|clock| clock.most_error_ns),
        spread_ns: high - low,
    })
}

fn zero_ns(trace: &RankTrace, time: &RankTime) -> Option<i128> {
    // The nearest anchor: the first was taken before MPI_Init, which may have taken long.
    let near = |anchor: &&ClockAnchor| anchor.ticks.abs_diff(time.begin_ticks);
    let anchor = trace.facts.anchors.iter().min_by_key(near)?;
    let since_zero_ns = time.clock.seconds(anchor.ticks) * 1e9;
    Some(i128::from(anchor.realtime_ns) - since_zero_ns.round() as i128)
}
