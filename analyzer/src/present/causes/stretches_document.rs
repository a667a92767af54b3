//! The document's keys on parts of a run: iterations, phases, regions.

use serde::Serialize;

use crate::causes::{Causes, Iteration, Phase, Region, Tree};
use crate::present::context::Omitted;

use super::length::Length;
use super::stretches::begins_at;
use crate::diagnosis::Why;

/// Maximum lengths of lists.
const MAX_SLOW: usize = 100;
const MAX_EACH: usize = 10_000;

/// Iterations of a loop.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct IterationsPart {
    /// Number of iterations.
    count: usize,
    /// The call that begins one.
    place: String,
    /// Median length.
    median_s: f64,
    /// Median distance from it.
    mad_s: f64,
    /// Last less first along a line; null: none.
    trend_s: Option<f64>,
    /// Regularly longer ones; null: none.
    every: Option<EveryPart>,
    /// Index of a typical one.
    representative: usize,
    /// The slowest first, at most 100.
    slow: Vec<IterationPart>,
    /// The others.
    slow_omitted: Omitted,
    /// All, at most 10,000.
    each: Vec<IterationPart>,
    /// The others.
    each_omitted: Omitted,
}

/// Iterations that are longer at regular intervals.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EveryPart {
    /// Every how many iterations.
    period: usize,
    /// Index of the first.
    first: usize,
    /// How much longer they are.
    longer_s: f64,
}

/// An iteration.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct IterationPart {
    /// From 0.
    index: usize,
    /// When it begins.
    begin_s: f64,
    #[serde(flatten)]
    length: Length,
    /// Over all ranks.
    computing_s: f64,
    /// Over all ranks.
    waiting_s: f64,
    /// The rank that computes longest.
    slowest: u32,
    /// The rank that others wait for longest.
    delayed_by: Option<u32>,
}

/// A loop.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PhasePart {
    /// Number of iterations.
    iterations: usize,
    /// Earliest begin; its length is to the latest end.
    begin_s: f64,
    #[serde(flatten)]
    length: Length,
    /// Median length of an iteration.
    median_s: f64,
    /// Median distance from it.
    mad_s: f64,
    /// The call that begins an iteration.
    place: String,
    /// Factors of its efficiency.
    tree: Option<Tree>,
}

/// A region that the program marked.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RegionPart<'a> {
    name: &'a str,
    /// Occurrences over all ranks.
    count: u64,
    #[serde(flatten)]
    length: Length,
    /// Waiting in it.
    waiting_s: f64,
    waiting_ticks: i64,
    /// Factors of its efficiency.
    tree: Option<Tree>,
}

fn iteration(causes: &Causes, phase: &Phase, index: usize) -> IterationPart {
    let s = |ticks: i64| causes.clock.seconds(ticks);
    let rank = |line: u32| causes.lines.all[line as usize].rank;
    let Iteration { ticks, computing, waiting, slowest, delayed_by } = phase.iterations[index];
    IterationPart {
        index,
        begin_s: s(phase.bounds[index]),
        length: Length::new(causes, ticks),
        computing_s: s(computing),
        waiting_s: s(waiting),
        slowest: rank(causes.lines.first_of(slowest)),
        delayed_by: delayed_by.map(rank),
    }
}

/// The iterations of the longest phase.
pub(super) fn iterations(causes: &Causes) -> Option<IterationsPart> {
    let phase = causes.phases.first()?;
    let s = |ticks: i64| causes.clock.seconds(ticks);
    let found = phase.statistics();
    let count = phase.iterations.len();
    let part = |index: usize| iteration(causes, phase, index);
    let omitted = |left_out: &[usize]| Omitted {
        count: left_out.len(),
        seconds: s(left_out.iter().map(|at| phase.iterations[*at].ticks).sum()),
    };
    let (slow, slow_left) = found.slow.split_at(found.slow.len().min(MAX_SLOW));
    let all: Vec<usize> = (0..count).collect();
    let (each, each_left) = all.split_at(count.min(MAX_EACH));
    Some(IterationsPart {
        count,
        place: begins_at(causes, phase),
        median_s: s(found.median),
        mad_s: s(found.mad),
        trend_s: found.trend.map(s),
        every: found.period.map(|period| EveryPart {
            period: period.length,
            first: period.first,
            longer_s: s(period.longer),
        }),
        representative: found.representative,
        slow: slow.iter().copied().map(part).collect(),
        slow_omitted: omitted(slow_left),
        each: each.iter().copied().map(part).collect(),
        each_omitted: omitted(each_left),
    })
}

/// The phases, the longest first.
pub(super) fn phases(why: &Why) -> Vec<PhasePart> {
    let s = |ticks: i64| why.causes.clock.seconds(ticks);
    let part = |phase: &Phase| {
        let found = phase.statistics();
        PhasePart {
            iterations: phase.iterations.len(),
            begin_s: s(phase.begin()),
            length: Length::new(why.causes, phase.ticks()),
            median_s: s(found.median),
            mad_s: s(found.mad),
            place: begins_at(why.causes, phase),
            tree: phase.tree(why.run),
        }
    };
    why.causes.phases.iter().map(part).collect()
}

/// The regions, the longest first.
pub(super) fn regions<'a>(why: &Why<'a>) -> Vec<RegionPart<'a>> {
    let s = |ticks: i64| why.causes.clock.seconds(ticks);
    let run = why.run;
    let part = |region: &'a Region| RegionPart {
        name: &region.name,
        count: region.count,
        length: Length::new(why.causes, region.ticks),
        waiting_s: s(region.waiting),
        waiting_ticks: region.waiting,
        tree: region.tree(run),
    };
    why.causes.regions.all.iter().map(part).collect()
}
