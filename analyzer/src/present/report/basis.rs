//! What a report's figures allow to be said; asked for by several of its parts.

use std::collections::BTreeMap;

use crate::causes::{State, Unknown};
use crate::metrics::{Competitor, ComputeMode, Oversubscription, Selection};
use crate::present::{Report, causes};

/// Share of the ranks' time off the CPU from which a lack of cores explains more than anything else.
const LACKING_CORES: f64 = 0.25;
/// Share of the ranks' time off the CPU below which only TRUST mentions it.
const NOTABLE_OFF_CPU: f64 = 0.05;
/// Share of all time in calls that never returned above which the rest of the run is not judged.
const STUCK_SHARE: f64 = 0.3;

/// Whether too little is known of the calls to tell who waited for whom.
pub(super) fn hides_waiting(report: &Report) -> bool {
    let no_partners =
        report.causes.is_some_and(|causes| causes.unknown.contains(&Unknown::NoAttributes));
    no_partners || keeps_mostly_totals(report)
}

/// Whether nearly all calls are kept only as totals.
pub(super) fn keeps_mostly_totals(report: &Report) -> bool {
    let totals = report.metrics.totals.as_ref();
    totals.is_some_and(|totals| totals.kept_calls < totals.calls / 10)
}

/// Whether efficiency and causes of waiting say nothing about the run: ranks were deadlocked, or calls that never
/// returned take much of the time.
pub(super) fn is_stuck(report: &Report) -> bool {
    let Some(unfinished) = &report.metrics.unfinished else { return false };
    let open = report.why().map_or(0.0, |why| {
        let found = why.causes;
        let open = found.groups.iter().filter(|group| group.state == State::OpenAtEnd);
        let all = found.lines.all.len() as i64 * (found.whole.1 - found.whole.0).max(1);
        open.map(|group| group.ticks).sum::<i64>() as f64 / all as f64
    });
    !unfinished.deadlocks.is_empty() || open > STUCK_SHARE
}

/// The least share of their time for which ranks waited for a core while they did not wait for other ranks: a rank
/// that waits in a loop loses nothing if others have its core. `None` if that is not known.
pub(super) fn share_held_up(report: &Report) -> Option<f64> {
    let why = report.why().filter(|_| !hides_waiting(report));
    let waiting_s: Option<BTreeMap<u32, f64>> = why.map(|why| {
        let causes = why.causes;
        let ranks = why.run.ranks.iter().zip(&causes.rank_times);
        ranks.map(|(rank, time)| (rank.rank, causes.clock.seconds(time.waiting))).collect()
    });
    let held_up_s: Option<Vec<f64>> = report
        .metrics
        .participants()
        .map(|rank| {
            let waiting_s = waiting_s.as_ref().and_then(|of| of.get(&rank.rank).copied());
            Some((rank.off_cpu_s? - waiting_s.unwrap_or(rank.overhead_s)).max(0.0))
        })
        .collect();
    let held_up_s = held_up_s.filter(|held_up| !held_up.is_empty())?;
    let elapsed_s = report.metrics.elapsed_s * held_up_s.len() as f64;
    (elapsed_s > 0.0).then(|| held_up_s.iter().sum::<f64>() / elapsed_s)
}

/// Whether the rank that waited longest for a core waited behind other programs.
pub(super) fn waits_for_other_programs(report: &Report) -> bool {
    let waited = report.metrics.oversubscription.iter().filter_map(|one| match one {
        Oversubscription::Waited { share, competitor, .. } => Some((*share, competitor)),
        _ => None,
    });
    let longest = waited.max_by(|a, b| a.0.total_cmp(&b.0));
    longest.is_some_and(|(_, behind)| matches!(behind, Competitor::OtherPrograms(_)))
}

/// Whether ranks of the run share cores.
pub(super) fn share_cores(report: &Report) -> bool {
    let share = |one: &Oversubscription| !matches!(one, Oversubscription::Waited { .. });
    report.metrics.oversubscription.iter().any(share)
}

/// Whether ranks waited for cores for much of the run, because they share them or because other programs took them,
/// so that its other figures say little.
pub(super) fn lacks_cores(report: &Report) -> bool {
    let least_held_up = if share_cores(report) { NOTABLE_OFF_CPU } else { LACKING_CORES };
    report.metrics.share_off_cpu().is_some_and(|share| share >= LACKING_CORES)
        && share_held_up(report).is_some_and(|share| share >= least_held_up)
}

/// Whether ranks waited for cores so little, or while they waited for other ranks anyway, that only TRUST mentions it.
pub(super) fn hardly_lacks_cores(report: &Report) -> bool {
    let share = match share_cores(report) {
        true => share_held_up(report),
        false => report.metrics.share_off_cpu(),
    };
    share.is_some_and(|share| share < NOTABLE_OFF_CPU)
}

/// Serialisation and transfer, whose product is the communication efficiency. `None` without a replay, and if the
/// replay and the report do not count the same time as computing.
pub(super) fn serialisation_and_transfer(report: &Report) -> Option<(f64, f64)> {
    let is_whole = report.metrics.selection == Selection::Whole;
    let why =
        report.why().filter(|_| is_whole && report.metrics.compute == ComputeMode::Outside)?;
    causes::serialisation_and_transfer(&why)
}
