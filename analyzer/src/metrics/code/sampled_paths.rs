//! The samples of a run by call path and time: what flame graphs of any of its parts are made of.

use std::cmp::Reverse;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::timeline::GlobalTimeline;
use crate::trace::samples::RankSamples;
use crate::trace::{RankTrace, Run};

use super::times::{CodeMetrics, RankCode, Stretches};

/// Bins of a stretch of time, at most: finer than the samples of most runs are apart.
const MAX_BINS: u32 = 1 << 20;
/// Paths are merged rather than bins as long as there are more than this many for each bin.
const PATHS_PER_BIN: usize = 4;

/// The innermost function of a call path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathFrame {
    /// A function, by its number.
    Function(u32),
    /// In place of the outer functions of stacks that could not be read to their end.
    CutStacks,
    /// This many paths with too few samples to be told apart.
    Merged(u32),
}

/// A call path: the path of its caller, and a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PathNode {
    /// Number of the caller, smaller than its own; `None`: nothing called it.
    pub caller: Option<u32>,
    pub frame: PathFrame,
}

/// Samples of a path in a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathCell {
    pub bin: u32,
    pub node: u32,
    pub count: u32,
}

/// The samples of a thread.
#[derive(Debug, Clone)]
pub struct ThreadPaths<S> {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Its number in the rank's file; `None` if it never called MPI.
    pub thread: Option<u32>,
    /// Seconds that a sample stands for.
    pub period_s: f64,
    pub samples: Vec<S>,
}

/// The samples of a run, each with its time and path.
#[derive(Debug)]
pub struct SampledPaths {
    length_s: f64,
    nodes: Vec<PathNode>,
    /// Samples by time.
    threads: Vec<ThreadPaths<(f64, u32)>>,
}

/// The samples of a stretch of time, in equal bins.
#[derive(Debug, Clone)]
pub struct BinnedPaths {
    pub from_s: f64,
    pub to_s: f64,
    pub bins: u32,
    pub nodes: Vec<PathNode>,
    /// By bin, then by path.
    pub threads: Vec<ThreadPaths<PathCell>>,
}

/// How much may be told of a stretch of time.
#[derive(Debug, Clone, Copy)]
pub struct PathLimits {
    pub nodes: usize,
    /// Of all threads together.
    pub cells: usize,
}

impl SampledPaths {
    /// The samples that `code` counts, in the stretches of each rank; the run ends at `length_s`.
    pub fn new(
        run: &Run,
        timeline: &GlobalTimeline,
        code: &CodeMetrics,
        stretches: &[Stretches],
        length_s: f64,
    ) -> Self {
        let (mut tree, mut threads) = (Tree::default(), Vec::new());
        let all: Vec<&RankSamples> = run.ranks.par_iter().map(RankTrace::samples).collect();
        for (position, (samples, of_rank)) in all.into_iter().zip(&code.ranks).enumerate() {
            let stretches = stretches.get(position).and_then(Option::as_deref).unwrap_or_default();
            let clock = &timeline.ranks[position].clock;
            let mut nodes = vec![None; samples.stacks.len()];
            for thread in &samples.threads {
                let inside = stretches.iter().flat_map(|(begin, end)| {
                    let at = |ticks: u64| thread.samples.partition_point(|(of, _)| *of < ticks);
                    &thread.samples[at(*begin)..at(*end).max(at(*begin))]
                });
                let placed = inside.map(|(ticks, stack)| {
                    let at = &mut nodes[*stack as usize];
                    let node = *at.get_or_insert_with(|| tree.path(of_rank, *stack));
                    (clock.seconds(*ticks).clamp(0.0, length_s), node)
                });
                let placed: Vec<(f64, u32)> = placed.collect();
                let (rank, period_s) = (of_rank.rank, of_rank.period_s);
                if !placed.is_empty() {
                    let thread = thread.thread;
                    threads.push(ThreadPaths { rank, thread, period_s, samples: placed });
                }
            }
        }
        Self { length_s, nodes: tree.nodes, threads }
    }

    /// The samples between two moments; paths and moments are merged until they keep the limits.
    pub fn between(&self, (from_s, to_s): (f64, f64), limits: PathLimits) -> BinnedPaths {
        let scale = f64::from(MAX_BINS) / (to_s - from_s).max(f64::MIN_POSITIVE);
        let is_last = to_s >= self.length_s;
        let threads = self.threads.iter().map(|of| {
            let first = of.samples.partition_point(|(at_s, _)| *at_s < from_s);
            let end = of.samples.partition_point(|(at_s, _)| *at_s < to_s || is_last);
            let cells = of.samples[first..end.max(first)].iter().map(|(at_s, node)| {
                let bin = (((at_s - from_s) * scale) as u32).min(MAX_BINS - 1);
                PathCell { bin, node: *node, count: 1 }
            });
            let mut samples: Vec<PathCell> = cells.collect();
            join_equal(&mut samples);
            ThreadPaths { rank: of.rank, thread: of.thread, period_s: of.period_s, samples }
        });
        let (nodes, threads) = (self.nodes.clone(), threads.collect());
        let mut found = BinnedPaths { from_s, to_s, bins: MAX_BINS, nodes, threads };
        let mut most = limits.nodes.min(found.nodes.len());
        found.merge_paths(most);
        while found.cells() > limits.cells && (found.bins > 1 || most > 0) {
            if most > PATHS_PER_BIN * found.bins as usize || found.bins == 1 {
                most /= 2;
                found.merge_paths(most);
            } else {
                found.merge_bins();
            }
        }
        found
    }
}

impl BinnedPaths {
    fn cells(&self) -> usize {
        self.threads.iter().map(|thread| thread.samples.len()).sum()
    }

    fn merge_bins(&mut self) {
        self.bins /= 2;
        for thread in &mut self.threads {
            thread.samples.iter_mut().for_each(|cell| cell.bin /= 2);
            join_equal(&mut thread.samples);
        }
    }

    /// Keeps the paths with most samples, most first, and joins the others of the same caller.
    fn merge_paths(&mut self, most: usize) {
        let mut totals = vec![0; self.nodes.len()];
        for cell in self.threads.iter().flat_map(|thread| &thread.samples) {
            totals[cell.node as usize] += u64::from(cell.count);
        }
        for (node, PathNode { caller, .. }) in self.nodes.iter().enumerate().rev() {
            caller.iter().for_each(|caller| totals[*caller as usize] += totals[node]);
        }
        // No path has more samples than its caller, so that callers come first.
        let mut order: Vec<usize> = (0..totals.len()).filter(|node| totals[*node] > 0).collect();
        order.sort_by_key(|node| Reverse(totals[*node]));
        let mut numbers = vec![0; self.nodes.len()];
        let mut nodes: Vec<PathNode> = Vec::with_capacity(order.len().min(2 * most));
        let mut merged: FxHashMap<Option<u32>, u32> = FxHashMap::default();
        for (place, node) in order.into_iter().enumerate() {
            let PathNode { caller, frame } = self.nodes[node];
            let caller = caller.map(|caller| numbers[caller as usize]);
            let paths = if let PathFrame::Merged(paths) = frame { paths } else { 1 };
            let above = caller.map(|caller| &mut nodes[caller as usize].frame);
            numbers[node] = if let Some(PathFrame::Merged(others)) = above {
                *others += paths;
                caller.unwrap_or_default()
            } else if place < most {
                nodes.push(PathNode { caller, frame });
                nodes.len() as u32 - 1
            } else {
                let at = *merged.entry(caller).or_insert_with(|| {
                    nodes.push(PathNode { caller, frame: PathFrame::Merged(0) });
                    nodes.len() as u32 - 1
                });
                if let PathFrame::Merged(others) = &mut nodes[at as usize].frame {
                    *others += paths;
                }
                at
            };
        }
        self.nodes = nodes;
        for thread in &mut self.threads {
            thread.samples.iter_mut().for_each(|cell| cell.node = numbers[cell.node as usize]);
            join_equal(&mut thread.samples);
        }
    }
}

/// Orders cells, and joins those of the same bin and path.
fn join_equal(cells: &mut Vec<PathCell>) {
    cells.sort_unstable_by_key(|cell| (cell.bin, cell.node));
    cells.dedup_by(|next, cell| {
        let is_same = (next.bin, next.node) == (cell.bin, cell.node);
        cell.count += if is_same { next.count } else { 0 };
        is_same
    });
}

/// The call paths of all ranks.
#[derive(Debug, Default)]
struct Tree {
    nodes: Vec<PathNode>,
    numbers: FxHashMap<PathNode, u32>,
}

impl Tree {
    /// The path of a stack.
    fn path(&mut self, rank: &RankCode, stack: u32) -> u32 {
        let inner = rank.stacks.places(stack).map(|(function, _)| PathFrame::Function(function));
        let mut frames: Vec<PathFrame> = inner.collect();
        let is_complete = rank.stacks.stacks[stack as usize].is_complete;
        frames.extend((!is_complete).then_some(PathFrame::CutStacks));
        let path = frames.into_iter().rev().fold(None, |caller, frame| {
            let node = PathNode { caller, frame };
            Some(*self.numbers.entry(node).or_insert_with(|| {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }))
        });
        // Every address lies in some function, known or not.
        path.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads: 600 samples in `main > solve > deep…`, where each of 40 paths is a chain of three functions.
    fn paths() -> SampledPaths {
        let mut nodes = vec![PathNode { caller: None, frame: PathFrame::Function(0) }];
        for chain in 0..40 {
            for depth in 0..3 {
                let caller = if depth == 0 { 0 } else { nodes.len() as u32 - 1 };
                let frame = PathFrame::Function(1 + 3 * chain + depth);
                nodes.push(PathNode { caller: Some(caller), frame });
            }
        }
        let thread = |rank, thread| {
            let sample = |at: u32| {
                // The first chain has half of the samples.
                let chain = if at.is_multiple_of(2) { 0 } else { at / 2 % 40 };
                (f64::from(at) / 60.0, 3 + 3 * chain)
            };
            ThreadPaths { rank, thread, period_s: 0.01, samples: (0..600).map(sample).collect() }
        };
        SampledPaths { length_s: 9.0, nodes, threads: vec![thread(0, Some(0)), thread(1, None)] }
    }

    fn count(of: &BinnedPaths) -> u64 {
        let cells = of.threads.iter().flat_map(|thread| &thread.samples);
        cells.map(|cell| u64::from(cell.count)).sum()
    }

    #[test]
    fn every_sample_is_in_one_cell_however_few_are_allowed() {
        let all = paths();
        for (nodes, cells) in [(1000, 10_000), (1000, 300), (30, 10_000), (8, 40), (2, 4)] {
            let found = all.between((0.0, 9.0), PathLimits { nodes, cells });
            assert_eq!(count(&found), 1200, "{nodes} {cells}");
            assert!(
                found.nodes.len() <= 2 * nodes + 1 && found.cells() <= cells,
                "{nodes} {cells}"
            );
            for (number, node) in found.nodes.iter().enumerate() {
                assert!(node.caller.is_none_or(|caller| (caller as usize) < number));
            }
        }
    }

    #[test]
    fn merged_paths_are_counted_below_their_caller() {
        let found = paths().between((0.0, 9.0), PathLimits { nodes: 4, cells: 10_000 });
        let frames: Vec<_> = found.nodes.iter().map(|node| (node.caller, node.frame)).collect();
        // The functions of the other 39 chains: three each.
        assert_eq!(
            frames[..4].iter().filter(|of| matches!(of.1, PathFrame::Function(0..4))).count(),
            4
        );
        assert_eq!(frames[4..], [(Some(0), PathFrame::Merged(117))]);
    }

    #[test]
    fn a_part_has_the_samples_between_its_moments() {
        let all = paths();
        let limits = PathLimits { nodes: 1000, cells: 10_000 };
        let parts = [(0.0, 2.5), (2.5, 8.0), (8.0, 9.0)].map(|part| all.between(part, limits));
        assert_eq!(parts.each_ref().map(count), [300, 660, 240]);
        let first = &parts[1].threads[0].samples[0];
        assert_eq!(first.bin, 0);
    }
}
