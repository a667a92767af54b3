//! Whether ranks lacked cores, and how much that explains.

use crate::metrics::{Competitor, Oversubscription, Pinning};

use super::evidence::Evidence;
use super::finding::Finding;

/// Share of the ranks' time off the CPU from which a lack of cores explains more than anything else.
const LACKING_CORES: f64 = 0.25;
/// Share of the ranks' time off the CPU below which only a report's line on trust mentions it.
const NOTABLE_OFF_CPU: f64 = 0.05;

/// A lack of cores, if there was one that matters.
pub(super) fn lack_of_cores(of: &Evidence) -> Option<Finding> {
    let shown_by = of.metrics.oversubscription.clone();
    let decisive = is_decisive(of);
    let matters = !shown_by.is_empty() && (decisive || !hardly_matters(of));
    matters.then(|| Finding::LackOfCores {
        decisive,
        share: of.metrics.share_off_cpu(),
        held_up: share_held_up(of),
        shown_by,
    })
}

/// Ranks that may use more cores than others.
pub(super) fn unequal_pinning(of: &Evidence) -> Option<Finding> {
    match &of.metrics.pinning {
        Pinning::Unequal(groups) => Some(Finding::UnequalPinning { groups: groups.clone() }),
        Pinning::Unknown | Pinning::Equal { .. } => None,
    }
}

/// The least share of their time for which ranks waited for a core while they did not wait for other ranks: a rank
/// that waits in a loop loses nothing if others have its core. `None` if that is not known.
pub fn share_held_up(of: &Evidence) -> Option<f64> {
    let waiting_s = of.waiting_s();
    let held_up_s: Option<Vec<f64>> = of
        .metrics
        .participants()
        .map(|rank| {
            let waiting_s = waiting_s.as_ref().and_then(|of| of.get(&rank.rank).copied());
            Some((rank.off_cpu_s? - waiting_s.unwrap_or(rank.lost_s)).max(0.0))
        })
        .collect();
    let held_up_s = held_up_s.filter(|held_up| !held_up.is_empty())?;
    let elapsed_s = of.metrics.elapsed_s * held_up_s.len() as f64;
    (elapsed_s > 0.0).then(|| held_up_s.iter().sum::<f64>() / elapsed_s)
}

/// Whether the rank that waited longest for a core waited behind other programs.
pub fn waits_for_other_programs(shown_by: &[Oversubscription]) -> bool {
    let waited = shown_by.iter().filter_map(|one| match one {
        Oversubscription::Waited { share, competitor, .. } => Some((*share, competitor)),
        _ => None,
    });
    let longest = waited.max_by(|a, b| a.0.total_cmp(&b.0));
    longest.is_some_and(|(_, behind)| matches!(behind, Competitor::OtherPrograms(_)))
}

/// Whether ranks of the run share cores.
pub fn share_cores(of: &Evidence) -> bool {
    let share = |one: &Oversubscription| !matches!(one, Oversubscription::Waited { .. });
    of.metrics.oversubscription.iter().any(share)
}

/// Whether ranks waited for cores for much of the run, because they share them or because other programs took them,
/// so that its other figures say little.
fn is_decisive(of: &Evidence) -> bool {
    let least_held_up = if share_cores(of) { NOTABLE_OFF_CPU } else { LACKING_CORES };
    of.metrics.share_off_cpu().is_some_and(|share| share >= LACKING_CORES)
        && share_held_up(of).is_some_and(|share| share >= least_held_up)
}

/// Whether ranks waited for cores so little, or while they waited for other ranks anyway, that it hardly matters.
fn hardly_matters(of: &Evidence) -> bool {
    let share = match share_cores(of) {
        true => share_held_up(of),
        false => of.metrics.share_off_cpu(),
    };
    share.is_some_and(|share| share < NOTABLE_OFF_CPU)
}
