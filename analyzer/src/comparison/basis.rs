//! What a statement on the time rests on.

use super::counts::{Change, CountKind};
use super::record::RunRecord;
use super::statistics::Estimate;
use crate::diagnosis::cores::{blurs_time, is_more_lack};

/// Twice a lack of cores counts as at most this share of the time.
const MAX_LACK: f64 = 0.9;
/// Times as many calls, bytes or iterations, and times as long, that are no chance.
const MANIFOLD: f64 = 2.0;

/// What decides whether the time differs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Basis {
    /// How much runs scatter.
    Scatter,
    /// Counts and time both changed manifold, in the same direction.
    Counts,
    /// Nothing: ranks waited for cores, and nothing tells how much longer they took for that.
    LackOfCores {
        /// Share of the ranks' time before and after, if known.
        shares: [Option<f64>; 2],
    },
}

impl Basis {
    /// Finds it for an estimate of the time that decides.
    pub(super) fn find(
        [before, after]: [&[RunRecord]; 2],
        decisive: &Estimate,
        changes: &[Change],
    ) -> Self {
        let shares = [before, after].map(lacked_cores);
        let lacks = match decisive.is_assumed {
            // One run of each: what other programs did to it does not show.
            true => shares.iter().flatten().any(|share| blurs_time(*share)),
            // A side that does not know is taken for one with enough cores.
            false => explains(shares.map(|share| share.unwrap_or(0.0)), decisive),
        };
        let is_decided = !lacks && !decisive.is_assumed && decisive.is_certain();
        match lacks {
            _ if !is_decided && counts_decide([before, after], decisive, changes) => Self::Counts,
            true => Self::LackOfCores { shares },
            false => Self::Scatter,
        }
    }
}

/// Mean share of their time for which the ranks of a side had no core, over the runs that know it.
pub fn lacked_cores(side: &[RunRecord]) -> Option<f64> {
    let known: Vec<f64> = side.iter().filter_map(|record| record.lacked_cores).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// Whether one side lacked cores more than the other, so that it seems slower than it is, and
/// neither is the faster one all the same nor slower than twice that lack could make it.
fn explains([before, after]: [f64; 2], of: &Estimate) -> bool {
    let is_certain = |sign: f64| of.is_certain() && sign * of.difference() > 0.0;
    // The least difference that is certain, and what ranks that wait for a core for a share of their
    // time take longer by it.
    let least = of.interval.map_or(0.0, |(lo, hi)| lo.abs().min(hi.abs()));
    let times_longer = |share: f64| 1.0 / (1.0 - (2.0 * share).min(MAX_LACK));
    let is_beyond = |faster: f64, share: f64| faster + least > faster * times_longer(share);
    let after_decides = is_certain(-1.0) || is_certain(1.0) && is_beyond(of.before, after);
    let before_decides = is_certain(1.0) || is_certain(-1.0) && is_beyond(of.after, before);
    is_more_lack(after, before) && !after_decides || is_more_lack(before, after) && !before_decides
}

/// Whether the program does manifold more, or less, and takes accordingly longer, or less long.
fn counts_decide(sides: [&[RunRecord]; 2], time: &Estimate, changes: &[Change]) -> bool {
    let is_manifold = |[before, after]: [f64; 2]| match time.difference() > 0.0 {
        true => before > 0.0 && after >= MANIFOLD * before,
        false => after > 0.0 && before >= MANIFOLD * after,
    };
    let has = |is_it: fn(&CountKind) -> bool| changes.iter().any(|change| is_it(&change.what));
    let totals = |total: fn(&RunRecord) -> u64| {
        sides.map(|side| side.first().map_or(0.0, |record| total(record) as f64))
    };
    let calls: fn(&RunRecord) -> u64 = |record| record.counts.calls.values().sum();
    let bytes: fn(&RunRecord) -> u64 = |record| record.counts.bytes.values().sum();
    let iterations: fn(&RunRecord) -> u64 = |of| of.iterations.as_ref().map_or(0, |of| of.count);
    is_manifold([time.before, time.after])
        && (has(|what| matches!(what, CountKind::Calls(_))) && is_manifold(totals(calls))
            || has(|what| matches!(what, CountKind::Bytes(_))) && is_manifold(totals(bytes))
            || has(|what| *what == CountKind::Iterations) && is_manifold(totals(iterations)))
}
