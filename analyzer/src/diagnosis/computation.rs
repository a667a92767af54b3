//! What the time says that counts as computing: efficiency, balance, sleep.

use crate::metrics::{OwnTime, RankMetrics, Selection};
use crate::timeline::Ending;

use super::evidence::Evidence;
use super::finding::{Asleep, Computing, Efficiency, Finding, Loss, LostTo, NOTABLE_SHARE};
use super::one_rank::{ASLEEP_MIN_S, asleep_s};

/// Share of a rank's time in MPI from which a function is named.
const NOTABLE_CALL: f64 = 0.1;
/// Share of τ that a rank must sleep within its computing time before it is mentioned.
const ASLEEP_SHARE: f64 = 0.05;

/// Parallel efficiency, and which ranks compute longest and shortest.
pub(super) fn efficiency(of: &Evidence) -> Efficiency {
    let metrics = of.metrics;
    let participants: Vec<&RankMetrics> = metrics.participants().collect();
    let by_compute = |a: &&&RankMetrics, b: &&&RankMetrics| a.compute_s.total_cmp(&b.compute_s);
    let computing = |rank: &&RankMetrics| Computing {
        rank: rank.rank,
        seconds: rank.compute_s,
        does: own_time(rank).into(),
    };
    Efficiency {
        parallel: metrics.efficiency.map(|efficiency| efficiency.parallel),
        load_balance: metrics.efficiency.and_then(|efficiency| efficiency.load_balance),
        longest: participants.iter().max_by(by_compute).map(computing),
        shortest: participants.iter().min_by(by_compute).map(computing),
        ranks: participants.len(),
        mode: metrics.compute,
        complete: of.is_whole() && !metrics.ranks.iter().any(ends_at_last_stamp),
        blamed: false,
    }
}

/// Whether a rank ended outside MPI, at an unknown moment after its last call.
fn ends_at_last_stamp(rank: &RankMetrics) -> bool {
    rank.ending == Ending::LastStamp
}

/// The rank that loses most, if it loses a notable part of the run.
pub(super) fn loses_most(of: &Evidence) -> Option<Finding> {
    let metrics = of.metrics;
    let worst = metrics.participants().max_by(|a, b| a.lost_s.total_cmp(&b.lost_s))?;
    let notable = worst.lost_s >= NOTABLE_SHARE * metrics.elapsed_s;
    (metrics.efficiency.is_some() && notable).then(|| Finding::LosesMost(loss(worst, of)))
}

fn loss(of_rank: &RankMetrics, of: &Evidence) -> Loss {
    let outside = match of_rank.ending {
        _ if of.metrics.selection != Selection::Whole => LostTo::RestOfStretch,
        Ending::Damaged | Ending::Stopped => LostTo::NotRecorded,
        Ending::LastStamp => LostTo::AfterLastEvent,
        Ending::Finalize | Ending::LastActivity => LostTo::StartAndEnd,
    };
    let mut parts = vec![
        (LostTo::Mpi, of_rank.mpi_s),
        (LostTo::OtherCode, of_rank.other_s),
        (outside, of_rank.outside_s),
        (LostTo::Recorder, of_rank.recorder_s),
    ];
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts.retain(|(_, seconds)| *seconds >= NOTABLE_SHARE * of.metrics.elapsed_s);
    // Calls of several threads overlap: their times are no parts of the rank's.
    let calls = of_rank.top_calls.iter().filter(|_| of_rank.threads <= 1);
    let calls = calls.filter(|(_, seconds)| *seconds >= NOTABLE_CALL * of_rank.mpi_s);
    Loss {
        rank: of_rank.rank,
        seconds: of_rank.lost_s,
        parts,
        calls: calls.cloned().collect(),
        mode: of.metrics.compute,
    }
}

/// Ranks that slept for a notable part of the run in what counts as computing.
pub(super) fn asleep(of: &Evidence) -> Option<Finding> {
    let min_s = (ASLEEP_SHARE * of.metrics.elapsed_s).max(ASLEEP_MIN_S);
    let slept: Vec<_> = of.metrics.participants().filter(|rank| asleep_s(rank) > min_s).collect();
    let worst = slept.iter().max_by(|a, b| asleep_s(a).total_cmp(&asleep_s(b)))?;
    Some(Finding::Asleep(Asleep {
        rank: worst.rank,
        compute_s: worst.compute_s,
        on_cpu_s: worst.cpu_time.map_or(0.0, |cpu_time| cpu_time.compute_on_cpu_s),
        nearly_all: own_time(worst) == OwnTime::Asleep,
        ranks: slept.len(),
        all: slept.len() == of.metrics.participants().count(),
    }))
}

fn own_time(rank: &RankMetrics) -> OwnTime {
    rank.cpu_time.map_or(OwnTime::default(), |cpu_time| cpu_time.own_time(rank.compute_s))
}
