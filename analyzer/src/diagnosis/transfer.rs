//! What transfer costs.

use std::collections::BTreeMap;

use trace_format::meaning::Class;

use crate::causes::{CallSite, Context};
use crate::metrics::{CallMetrics, Metrics};
use crate::replay::{Change, Grouping, NotHidden};

use super::evidence::Evidence;
use super::finding::{Finding, NoOverlap, Placement};
use super::saves;
use super::why::Why;

/// Share of the ranks' time from which transfer is mentioned before the causes of waiting.
const NOTABLE_TRANSFER: f64 = 0.05;
/// How many times the waiting transfer must take for the causes of waiting not to matter.
const DOMINANT_TRANSFER: f64 = 3.0;

/// Calls that move at most so many bytes on average cost as much as if they moved none.
const FEW_BYTES: u64 = 64;
/// From so many of them on they are many.
const MANY_CALLS: u64 = 100_000;
/// And from so many on where half of the transfer is in them.
const SOME_CALLS: u64 = 1_000;
/// Share of the transfer from which as much uncertain waiting hides where it is.
const UNCERTAIN_PART: f64 = 0.1;
/// Share of the bytes between ranks that go from host to host from which a better placement is looked for, …
const MUCH_BETWEEN: f64 = 0.25;
/// … and the share of these bytes that it may leave there.
const LESS_BETWEEN: f64 = 0.5;

/// What calls cost apart from waiting, in order.
pub(super) fn costs(of: &Evidence, why: &Why) -> Vec<Finding> {
    let small = small_messages(why, of.metrics);
    // Messages that take most of the transfer say with their reason what it costs.
    let is_told = |transfer: &Finding| match (&small, transfer) {
        (Some(Finding::SmallMessages { share, .. }), Finding::Transfer { share: all, .. }) => {
            2.0 * share >= *all
        }
        _ => false,
    };
    let transfer = transfer(why).filter(|transfer| !is_told(transfer));
    transfer.into_iter().chain(small).chain(no_overlap(of)).chain(placement(of)).collect()
}

/// Transfer that takes more of the ranks' time than waiting does.
fn transfer(why: &Why) -> Option<Finding> {
    let found = why.causes;
    let all = found.ranks() as f64 * found.elapsed().max(1) as f64;
    let transfer: i64 = found.rank_times.iter().map(|time| time.transfer).sum();
    // Waits below the clocks' uncertainty count as transfer elsewhere; they may be either. In a part of the run
    // there are at most as many as in all of it.
    let transfer = (transfer - found.uncertain).max(0) as f64;
    let waiting = found.ranks_waited() as f64;
    (transfer > waiting && transfer >= NOTABLE_TRANSFER * all).then(|| Finding::Transfer {
        share: transfer / all,
        // What is uncertain may lie in any of them.
        at: largest(why, ticks_at(why, |_| true))
            .filter(|_| (found.uncertain as f64) < UNCERTAIN_PART * transfer),
        dominates: transfer >= DOMINANT_TRANSFER * waiting,
    })
}

/// Many messages of few bytes, if their cost is a notable part of the ranks' time.
fn small_messages(why: &Why, metrics: &Metrics) -> Option<Finding> {
    let found = why.causes;
    let small: Vec<&CallMetrics> = metrics.calls.iter().filter(|row| moves_little(row)).collect();
    let calls: u64 = small.iter().map(|row| row.count).sum();
    let bytes: u64 = small.iter().filter_map(|row| row.bytes).sum();
    let is_small = |site: &CallSite| small.iter().any(|row| row.function == site.function);
    let ticks_at = ticks_at(why, is_small);
    let ticks = ticks_at.values().sum::<i64>();
    let all: i64 = found.rank_times.iter().map(|time| time.transfer).sum();
    let elapsed = found.ranks() as f64 * found.elapsed().max(1) as f64;
    let share = ticks as f64 / elapsed;
    let are_many = calls >= MANY_CALLS || calls >= SOME_CALLS && 2 * ticks >= all;
    // Waits below the clocks' uncertainty count as transfer here.
    let is_certain = (found.uncertain as f64) < UNCERTAIN_PART * ticks as f64;
    (are_many && is_certain && share >= NOTABLE_TRANSFER).then(|| Finding::SmallMessages {
        calls,
        mean_bytes: bytes as f64 / calls as f64,
        seconds: why.seconds(ticks),
        share: share.min(1.0),
        at: largest(why, ticks_at),
        dominates: ticks as f64 >= DOMINANT_TRANSFER * found.ranks_waited() as f64,
    })
}

/// Whether the calls of a function each send or receive few bytes.
fn moves_little(of: &CallMetrics) -> bool {
    let is_message = of.class == Class::PointToPoint && of.count > 0;
    is_message && of.bytes.is_some_and(|bytes| bytes <= FEW_BYTES * of.count)
}

/// Ticks of transfer by context, at some call sites.
fn ticks_at(why: &Why, is_it: impl Fn(&CallSite) -> bool) -> BTreeMap<u32, i64> {
    let causes = why.causes;
    let mut ticks_at: BTreeMap<u32, i64> = BTreeMap::new();
    causes.for_each_sum(|number, ticks| {
        if matches!(causes.contexts.get(number), Context::Transfer(site) if is_it(site)) {
            *ticks_at.entry(number).or_default() += ticks;
        }
    });
    ticks_at
}

/// The call site with most of the transfer, and its share of all of it.
fn largest(why: &Why, ticks_at: BTreeMap<u32, i64>) -> Option<(CallSite, f64)> {
    let all: i64 = ticks_at.values().sum();
    let (number, most) = ticks_at.into_iter().max_by_key(|(_, ticks)| *ticks)?;
    let Context::Transfer(site) = why.causes.contexts.get(number) else { return None };
    (most > 0).then(|| (site.clone(), most as f64 / all as f64))
}

/// Transfers that were begun before a computation, and waited for after it, if that takes a notable part of the ranks'
/// time.
fn no_overlap(of: &Evidence) -> Option<Finding> {
    let what_if = of.replay?;
    let found = what_if.not_hidden();
    let largest = found.first()?;
    let sum = |of: fn(&NotHidden) -> f64| found.iter().map(of).sum::<f64>();
    let (calls, seconds) =
        (found.iter().map(|one| one.calls).sum::<u64>(), sum(|one| one.hideable_s));
    let lines = what_if.graph.lines.len() as f64;
    let share = seconds / (lines * what_if.graph.elapsed_s);
    (share >= NOTABLE_TRANSFER).then(|| {
        let mean = |sum: f64| sum / calls as f64;
        Finding::NoOverlap(NoOverlap {
            calls,
            of: found.iter().map(|one| one.of).sum(),
            seconds,
            share,
            mean_wait_s: mean(sum(|one| one.waited_s)),
            mean_computed_s: mean(sum(|one| one.computed_s)),
            mean_bytes: mean(sum(|one| one.bytes)),
            place: (
                what_if.graph.contexts.get(largest.context).clone(),
                largest.hideable_s / seconds,
            ),
        })
    })
}

/// Ranks that exchange much on different hosts, if another placement would save something.
fn placement(of: &Evidence) -> Option<Finding> {
    let what_if = of.replay.filter(|what_if| what_if.shows() == [true; 2])?;
    let Grouping { mapping, bytes, between, between_then } = what_if.grouping()?;
    if between < MUCH_BETWEEN * bytes || between_then > LESS_BETWEEN * between {
        return None;
    }
    let on = |host: u32| {
        let ranks = of.run.ranks.iter().enumerate();
        ranges(ranks.filter(|(at, _)| mapping.host(*at) == host).map(|(_, rank)| rank.rank))
    };
    let hosts = (0..mapping.hosts).map(on).collect();
    let answer = what_if.ask(&[Change::Placement(mapping)]);
    let saves = saves::by(what_if, &answer)?;
    Some(Finding::Placement(Placement { bytes, between, between_then, hosts, saves }))
}

/// First and last of each range of ascending numbers.
fn ranges(numbers: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => found.push((number, number)),
        }
    }
    found
}

/// What overlapping all transfers with computation would save at most: what they cost in a replay, and no more than
/// each rank spends in MPI without waiting, or computes if that is less.
pub(super) fn overlap(of: &Evidence, why: &Why) -> Option<Finding> {
    let found = why.causes;
    let overlapped = found.rank_times.iter().map(|time| time.transfer.min(time.computing));
    let bound_s = why.seconds(overlapped.min()?);
    saves::by_hiding_transfers(of.replay?, bound_s).map(Finding::Overlap)
}
