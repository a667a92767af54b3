//! Finds the cause of a difference.

use crate::diagnosis::Figures;

use super::basis::Basis;
use super::cause::{ALL_SHARE, CHANGED_SHARE, Cause, CauseKind, WhichRanks};
use super::compared::Comparison;
use super::counts::{Change, CountKind};
use super::parts::{Difference, Differences};
use super::place::CodeLocation;
use super::quantities::Tested;
use super::record::Kind;

/// Minimum share of computing of each part that is considered for drift.
pub(super) const MIN_FOR_DRIFT: f64 = 0.05;

/// Minimum share of computing of these parts together.
pub(super) const ENOUGH_FOR_DRIFT: f64 = 0.8;

/// Minimum change of the machine that is reported.
pub(super) const MIN_DRIFT: f64 = 0.01;

/// Factors count as alike if they differ from their mean by at most this share of it.
pub(super) const ALIKE: f64 = 0.3;

/// The count that best describes how the program behaves differently.
pub(super) fn cause_in_counts(changes: &[Change]) -> Option<Cause> {
    let is_partners = |of: &&Change| matches!(of.what, CountKind::Partners { .. });
    let relative = |of: &Change| {
        let (b, a) = (of.before as f64, of.after as f64);
        (a - b).abs() / a.max(b).max(1.0)
    };
    let largest = |is_it: &dyn Fn(&CountKind) -> bool| {
        let of = changes.iter().filter(|change| is_it(&change.what));
        of.max_by(|x, y| relative(x).total_cmp(&relative(y)))
    };
    let calls = largest(&|what| matches!(what, CountKind::Calls(_)));
    let reordered = changes.iter().find(|of| of.what == CountKind::Partners { reordered: true });
    // If the number of iterations changes, so do calls; if calls change, messages and partners change as well.
    let iterations = changes.iter().find(|of| of.what == CountKind::Iterations);
    let found = reordered
        .or(iterations)
        .or(calls)
        .or_else(|| changes.iter().find(is_partners))
        .or_else(|| largest(&|what| matches!(what, CountKind::Bytes(_))))
        .or_else(|| largest(&|what| matches!(what, CountKind::Sizes(_) | CountKind::MessageBytes)))
        .or_else(|| changes.first())?;
    let kind = match &found.what {
        CountKind::Partners { .. } | CountKind::BetweenHosts => CauseKind::Partners,
        CountKind::Bytes(_)
        | CountKind::MessageBytes
        | CountKind::Sizes(_)
        | CountKind::Collectives(_) => CauseKind::Bytes,
        _ => CauseKind::Calls,
    };
    let at = |what: &CountKind| match what {
        CountKind::CallsAt(spot @ CodeLocation::Inside(site)) => {
            let is_it =
                matches!(&found.what, CountKind::Calls(function) if *function == site.function);
            is_it.then(|| spot.clone())
        }
        _ => None,
    };
    let spot = changes.iter().find_map(|change| at(&change.what));
    Some(Cause { kind, spot, ranks: None, ns: None, change: Some(found.clone()) })
}

/// The place whose time changed most in the direction of the overall difference.
pub(super) fn cause_in_time(of: &Comparison) -> Option<Cause> {
    let sign = of.decisive().difference().signum();
    let differences = &of.differences;
    let knows_waits = of.invalidated_by(Figures::Waits).is_none();
    let is_known = |part: &&Difference| knows_waits || part.key.kind != Kind::Waiting;
    let candidates = differences.parts.iter().filter(is_known).filter_map(|part| {
        let cost = sign * cost(part, sign);
        (cost > 0.0).then_some((part, cost))
    });
    let mut candidates: Vec<(&Difference, f64)> = candidates.collect();
    candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
    // Waiting is caused by other ranks, unless nothing else explains half of the difference.
    let whole = sign * of.elapsed.difference();
    let not_waiting = candidates.iter().find(|(part, _)| part.key.kind != Kind::Waiting);
    let enough =
        not_waiting.filter(|(_, cost)| *cost >= 0.5 * whole || candidates[0].1 < 2.0 * cost);
    let (part, cost) = enough.or_else(|| candidates.first())?;
    let ranks = match part.by_ranks.is_empty() {
        true => None,
        false if is_on_all(part, &of.tested) => Some(WhichRanks::All),
        false => Some(ranks(part, sign, differences, of.after[0].ranks)),
    };
    let kind = match part.key.kind {
        Kind::Computing => CauseKind::Computing,
        Kind::Waiting => CauseKind::Waiting,
        Kind::Transfer => CauseKind::Transfer,
        Kind::Other => CauseKind::Other,
        Kind::Recorder => CauseKind::Recorder,
        Kind::StartAndEnd => CauseKind::StartAndEnd,
    };
    Some(Cause { kind, spot: Some(part.shown.clone()), ranks, ns: Some(sign * cost), change: None })
}

/// Whether, in a typical iteration, the mean rank changed as much as the slowest one: if only one
/// of several ranks changes, the mean changes by half of that at most; if one does not, because it
/// was slow before, the slowest one does not change.
pub(super) fn is_on_all(part: &Difference, tested: &[Tested]) -> bool {
    let of = |most: bool| {
        let mut all = tested.iter().filter(|one| one.of_iteration && one.spot == part.key.spot);
        all.find(|one| one.most == most).map(|one| one.estimate.difference())
    };
    matches!((of(false), of(true)), (Some(mean), Some(most)) if most != 0.0 && (ALL_SHARE..=1.0 / ALL_SHARE).contains(&(mean / most)))
}

/// The change, in a direction, of the rank that changed most; the change of the mean rank if times
/// are not kept by rank.
pub(super) fn cost(part: &Difference, sign: f64) -> f64 {
    let most = part.by_ranks.iter().copied().max_by(|a, b| (sign * a).total_cmp(&(sign * b)));
    most.unwrap_or(part.ns as f64)
}

/// The ranks that changed nearly as much as the one that changed most.
pub(super) fn ranks(part: &Difference, sign: f64, of: &Differences, ranks: u32) -> WhichRanks {
    let most = sign * cost(part, sign);
    let changed = |ns: &f64| sign * ns >= CHANGED_SHARE * most;
    let count = part.by_ranks.iter().filter(|ns| changed(ns)).count();
    if count as f64 > ALL_SHARE * part.by_ranks.len() as f64 && part.by_ranks.len() > 1 {
        return WhichRanks::All;
    }
    let group = of.ranks_per_group;
    let numbers = part.by_ranks.iter().enumerate().filter(|(_, ns)| changed(ns));
    let stretches = numbers.map(|(at, _)| {
        let first = at as u32 * group;
        (first, (first + group - 1).min(ranks.saturating_sub(1)))
    });
    WhichRanks::Some(stretches.collect())
}

/// The factor by which all computing changed alike while no count did: another clock rate, another
/// load, another machine with the same name. `None` if parts changed differently.
pub fn drift(of: &Differences, changes: &[Change]) -> Option<f64> {
    if !changes.is_empty() {
        return None;
    }
    let computing = || of.parts.iter().filter(|part| part.key.kind == Kind::Computing);
    let whole: f64 = computing().map(|part| part.estimate.before).sum();
    let is_large = |part: &&Difference| part.estimate.before >= MIN_FOR_DRIFT * whole;
    let large: Vec<&Difference> = computing().filter(is_large).collect();
    let together: f64 = large.iter().map(|part| part.estimate.before).sum();
    if large.len() < 2 || together < ENOUGH_FOR_DRIFT * whole {
        return None;
    }
    let changes: Vec<f64> = large.iter().map(|part| part.estimate.relative()).collect();
    let mean = changes.iter().sum::<f64>() / changes.len() as f64;
    let is_alike = |change: &f64| (change - mean).abs() <= ALIKE * mean.abs();
    (mean.abs() >= MIN_DRIFT && changes.iter().all(is_alike)).then_some(1.0 + mean)
}

impl Cause {
    /// Finds the cause. Counts come first, because they are certain; then, if the time differs
    /// significantly, the place.
    pub fn find(of: &Comparison) -> Option<Self> {
        if of.relation.same_ranks
            && let Some(cause) = cause_in_counts(&of.changes)
        {
            return Some(cause);
        }
        let is_found = of.tested.iter().any(|one| one.is_significant);
        if !of.relation.same_ranks
            || matches!(of.basis, Basis::LackOfCores { .. })
            || !(of.is_certain() || of.elapsed.is_certain() || is_found)
        {
            return None;
        }
        let time = cause_in_time(of)?;
        match of.drift {
            Some(factor) if (factor > 1.0) == (of.decisive().difference() > 0.0) => Some(Self {
                kind: CauseKind::Machine,
                spot: None,
                ranks: Some(WhichRanks::All),
                ..time
            }),
            _ => Some(time),
        }
    }
}
