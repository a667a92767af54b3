//! What transfer costs.

use std::collections::BTreeMap;

use crate::causes::{CallSite, Context};

use super::finding::Finding;
use super::why::Why;

/// Share of the ranks' time from which transfer is mentioned before the causes of waiting.
const NOTABLE_TRANSFER: f64 = 0.05;
/// How many times the waiting transfer must take for the causes of waiting not to matter.
const DOMINANT_TRANSFER: f64 = 3.0;

/// Share of the transfer from which as much uncertain waiting hides where it is.
const UNCERTAIN_PART: f64 = 0.1;

/// Transfer that takes more of the ranks' time than waiting does.
pub(super) fn transfer(why: &Why) -> Option<Finding> {
    let found = why.causes;
    let ranks = why.run.ranks.len();
    let all = ranks as f64 * (found.whole.1 - found.whole.0).max(1) as f64;
    let transfer: i64 = found.rank_times.iter().map(|time| time.transfer).sum();
    // Waits below the clocks' uncertainty count as transfer elsewhere; they may be either.
    let transfer = (transfer - found.uncertain).max(0) as f64;
    let waiting = found.ranks_waited() as f64;
    (transfer > waiting && transfer >= NOTABLE_TRANSFER * all).then(|| Finding::Transfer {
        share: transfer / all,
        // What is uncertain may lie in any of them.
        at: largest(why).filter(|_| (found.uncertain as f64) < UNCERTAIN_PART * transfer),
        dominates: transfer >= DOMINANT_TRANSFER * waiting,
    })
}

/// The call site with most of the transfer, and its share of all of it.
fn largest(why: &Why) -> Option<(CallSite, f64)> {
    let causes = why.causes;
    let mut ticks_at: BTreeMap<u32, i64> = BTreeMap::new();
    for (number, ticks) in causes.profiles.of_lines.iter().flat_map(|profile| profile.all()) {
        if matches!(causes.contexts.get(*number), Context::Transfer(_)) {
            *ticks_at.entry(*number).or_default() += ticks;
        }
    }
    let all: i64 = ticks_at.values().sum();
    let (number, most) = ticks_at.into_iter().max_by_key(|(_, ticks)| *ticks)?;
    let Context::Transfer(site) = causes.contexts.get(number) else { return None };
    (most > 0).then(|| (site.clone(), most as f64 / all as f64))
}

/// An upper bound on what overlapping all transfers with computation would save: the smallest share, over all ranks,
/// of time inside MPI that is not waiting, or of computation if that is less.
pub(super) fn overlap(why: &Why) -> Option<Finding> {
    let found = why.causes;
    let overlapped = found.rank_times.iter().map(|time| time.transfer.min(time.computing));
    let share = overlapped.min()? as f64 / (found.whole.1 - found.whole.0).max(1) as f64;
    (share >= super::NOTABLE_SHARE).then_some(Finding::Overlap { share })
}
