//! What made the difference: counts that changed, else the place and the ranks whose time changed most.
//!
//! A rank that computes longer makes the others wait. In the mean over the ranks most of the difference is then
//! waiting, so that the largest difference of means is not the cause. What counts here is by how much the rank that
//! changed most is longer: what the run would be shorter by, were it as before.

use super::Comparison;
use super::counts::{Change, What};
use super::parts::{Difference, Differences};
use super::place::Spot;
use super::quantities::Tested;
use super::record::Kind;

/// Ranks whose time changed by so much of the one's that changed most changed as well.
const AS_MUCH: f64 = 0.5;
/// So many of the ranks are all.
const ALL: f64 = 0.75;
/// Parts of computing that drift is looked for in take so much of it each.
const LEAST_FOR_DRIFT: f64 = 0.05;
/// They are so much of computing together.
const ENOUGH_FOR_DRIFT: f64 = 0.8;
/// Smaller changes of the machine are not told.
const LEAST_DRIFT: f64 = 0.01;
/// Factors are alike that differ from their mean by less of it.
const ALIKE: f64 = 0.3;

/// What kind of thing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseKind {
    /// Ranks exchange messages with others.
    Partners,
    /// More or fewer calls.
    Calls,
    /// Messages or collective operations of another size.
    Bytes,
    /// A place computes longer, or less long.
    Computing,
    /// A wait that no place's computing explains.
    Waiting,
    /// A call takes longer without waiting.
    Transfer,
    /// The recorder.
    Recorder,
    /// Start and end of the ranks.
    StartAndEnd,
    /// Calls of which only totals are kept.
    Other,
    /// All computing changed alike.
    Machine,
}

/// Which ranks changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichRanks {
    /// All, or nearly all of those that are there.
    All,
    /// These, first and last of groups.
    Some(Vec<(u32, u32)>),
}

/// What made the difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// What kind of thing.
    pub kind: CauseKind,
    /// Where in the program; of counts that have a site, and of times.
    pub spot: Option<Spot>,
    /// Which ranks; not known of counts.
    pub ranks: Option<WhichRanks>,
    /// By how much a rank that changed takes longer in the run, nanoseconds; not known of counts.
    pub ns: Option<f64>,
    /// Of counts: which.
    pub change: Option<Change>,
}

impl Cause {
    /// Of a comparison: counts come first, for they are certain; then, where the time differs for certain, the place.
    pub fn find(of: &Comparison) -> Option<Self> {
        if of.relation.same_ranks
            && let Some(cause) = of_counts(&of.changes)
        {
            return Some(cause);
        }
        let decisive = of.decisive();
        let is_found = of.tested.iter().any(|one| one.is_found);
        if !of.relation.same_ranks
            || !(decisive.is_certain() || of.elapsed.is_certain() || is_found)
        {
            return None;
        }
        let time = of_time(of)?;
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

/// The count that says most of what the program does otherwise.
fn of_counts(changes: &[Change]) -> Option<Cause> {
    let is_partners = |of: &&Change| matches!(of.what, What::Partners { .. });
    let relative = |of: &Change| {
        let (b, a) = (of.before as f64, of.after as f64);
        (a - b).abs() / a.max(b).max(1.0)
    };
    let largest = |is_it: &dyn Fn(&What) -> bool| {
        let of = changes.iter().filter(|change| is_it(&change.what));
        of.max_by(|x, y| relative(x).total_cmp(&relative(y)))
    };
    let calls = largest(&|what| matches!(what, What::Calls(_)));
    let reordered = changes.iter().find(|of| of.what == What::Partners { reordered: true });
    // With other calls messages and partners are others as well.
    let found = reordered
        .or(calls)
        .or_else(|| changes.iter().find(is_partners))
        .or_else(|| largest(&|what| matches!(what, What::Bytes(_))))
        .or_else(|| largest(&|what| matches!(what, What::Sizes(_) | What::MessageBytes)))
        .or_else(|| changes.first())?;
    let kind = match &found.what {
        What::Partners { .. } | What::BetweenHosts => CauseKind::Partners,
        What::Bytes(_) | What::MessageBytes | What::Sizes(_) | What::Collectives(_) => {
            CauseKind::Bytes
        }
        _ => CauseKind::Calls,
    };
    let at = |what: &What| match what {
        What::CallsAt(spot @ Spot::Inside(site)) => {
            let is_it = matches!(&found.what, What::Calls(function) if *function == site.function);
            is_it.then(|| spot.clone())
        }
        _ => None,
    };
    let spot = changes.iter().find_map(|change| at(&change.what));
    Some(Cause { kind, spot, ranks: None, ns: None, change: Some(found.clone()) })
}

/// The place whose time changed most, in the direction of the whole.
fn of_time(of: &Comparison) -> Option<Cause> {
    let sign = of.decisive().difference().signum();
    let differences = &of.differences;
    let candidates = differences.parts.iter().filter_map(|part| {
        let cost = sign * cost(part, sign);
        (cost > 0.0).then_some((part, cost))
    });
    let mut candidates: Vec<(&Difference, f64)> = candidates.collect();
    candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
    // Waiting is what others made of it, unless nothing else explains half of the whole.
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

/// Whether the mean rank changed as much as the one that takes longest, in a typical iteration: where one of several
/// ranks changes, the mean one does so by half of it at most.
fn is_on_all(part: &Difference, tested: &[Tested]) -> bool {
    let of = |most: bool| {
        let mut all = tested.iter().filter(|one| one.of_iteration && one.spot == part.key.spot);
        all.find(|one| one.most == most).map(|one| one.estimate.difference())
    };
    matches!((of(false), of(true)), (Some(mean), Some(most)) if most != 0.0 && mean / most >= ALL)
}

/// By how much the rank that changed most did, in a direction; of what is not kept by rank, the mean one.
fn cost(part: &Difference, sign: f64) -> f64 {
    let most = part.by_ranks.iter().copied().max_by(|a, b| (sign * a).total_cmp(&(sign * b)));
    most.unwrap_or(part.ns as f64)
}

/// The ranks that changed nearly as much as the one that did most.
fn ranks(part: &Difference, sign: f64, of: &Differences, ranks: u32) -> WhichRanks {
    let most = sign * cost(part, sign);
    let changed = |ns: &f64| sign * ns >= AS_MUCH * most;
    let count = part.by_ranks.iter().filter(|ns| changed(ns)).count();
    if count as f64 >= ALL * part.by_ranks.len() as f64 && part.by_ranks.len() > 1 {
        return WhichRanks::All;
    }
    let group = of.ranks_a_group;
    let numbers = part.by_ranks.iter().enumerate().filter(|(_, ns)| changed(ns));
    let stretches = numbers.map(|(at, _)| {
        let first = at as u32 * group;
        (first, (first + group - 1).min(ranks.saturating_sub(1)))
    });
    WhichRanks::Some(stretches.collect())
}

/// The factor by which all computing changed alike while no count did: another clock rate, another load, another
/// machine under the same name. `None` where parts changed differently.
pub fn drift(of: &Differences, changes: &[Change]) -> Option<f64> {
    if !changes.is_empty() {
        return None;
    }
    let computing = || of.parts.iter().filter(|part| part.key.kind == Kind::Computing);
    let whole: f64 = computing().map(|part| part.estimate.before).sum();
    let is_large = |part: &&Difference| part.estimate.before >= LEAST_FOR_DRIFT * whole;
    let large: Vec<&Difference> = computing().filter(is_large).collect();
    let together: f64 = large.iter().map(|part| part.estimate.before).sum();
    if large.len() < 2 || together < ENOUGH_FOR_DRIFT * whole {
        return None;
    }
    let changes: Vec<f64> = large.iter().map(|part| part.estimate.relative()).collect();
    let mean = changes.iter().sum::<f64>() / changes.len() as f64;
    let is_alike = |change: &f64| (change - mean).abs() <= ALIKE * mean.abs();
    (mean.abs() >= LEAST_DRIFT && changes.iter().all(is_alike)).then_some(1.0 + mean)
}
