//! Finds the iterations of a run without markers: a loop in which all ranks make the same calls
//! equally often.
//!
//! A call that a loop makes once per turn occurs as often as the loop turns. So calls that occur
//! equally often during the same time form the body of a loop, if there is one, and the first of
//! them begins its turns. Every rank must have a loop with the same number of turns. Of the loops
//! that cover as much of the run as any other, the outermost with at least ten turns is chosen, if
//! its turns are alike: most turns, and most of the time, are of frequent kinds. The kind of a turn
//! is the set of its calls, however often each is made. Loops at other times are further phases.
//!
//! | file | content |
//! |---|---|
//! | `symbols` | which calls each rank makes, and how often |
//! | `turns` | when turns begin, and whether they are alike |
//! | `statistics` | slow iterations, trends, periods |

mod phase;
mod statistics;
mod symbols;
mod turns;

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::analysis::Analysis;
use crate::trace::{RankTrace, Run};

use super::contexts::{Contexts, NO_CONTEXT, WAITING};
use super::hinted_search;
use super::integer_timeline::IntegerTimeline;
use super::lines::{CommonAxis, Lines};
use super::profile::{Hint, Profiles};
use super::sampled_parts::{PhaseSamples, StackCounts};
use super::tree::Tree;
use super::wait::Wait;

pub use phase::{Iteration, Phase};
pub use statistics::{Period, Statistics};
pub(super) use symbols::{Loop, Symbols, SymbolsOfRank};
use turns::{FoundTurns, Turns};

/// The outermost loop with this many turns is chosen.
const ENOUGH_TURNS: u64 = 10;
/// Least part of the run that a phase covers.
const MIN_PART: f64 = 0.02;
/// A loop covers as much as another if it covers at least this part of its calls, and not much less
/// of its time. Calls decide, because equal runs make equally many.
const EQUAL_COVERAGE: f64 = 0.95;
const SIMILAR_COVERAGE: f64 = 0.8;
/// Turns whose median is shorter than this are no iterations: what recording a call takes is a large
/// part of them.
const MIN_ITERATION_S: f64 = 1e-6;
/// Most loops that are examined.
const MAX_LOOPS: usize = 8;
/// Most turns times ranks of a loop that is examined.
const MAX_TURNS: u64 = 1 << 21;
/// Most iterations times ranks for which the computation of each is kept.
const MAX_EACH: usize = 1 << 17;
/// Least part of a loop's turns that are of frequent kinds, and least part of its time in these.
const MIN_FREQUENT_TURNS: f64 = 0.7;
const MIN_FREQUENT_TIME: f64 = 0.5;
/// Turns longer than this many times the median are outliers.
const MUCH_LONGER: i64 = 50;

/// A loop that all ranks have.
struct Candidate {
    turns: u64,
    of_ranks: Vec<Loop>,
    /// Begin and end, mean over the ranks.
    stretch: (f64, f64),
    /// Part of the run that it covers, mean over the ranks.
    part: f64,
    /// The same of the ranks' calls instead of their time.
    part_of_calls: f64,
}

impl Phase {
    /// Finds the phases of a run, longest first, among the possible loops of each rank.
    /// [`Phase::fill_iterations`] adds their iterations later. If the analysis is divided, only the first process gets
    /// them.
    pub(super) fn find(
        analysis: &Analysis,
        axis: CommonAxis,
        whole: (i64, i64),
        loops: Vec<Vec<Loop>>,
    ) -> Vec<Self> {
        Self::found(analysis, axis, whole, loops).into_iter().map(|(phase, _)| phase).collect()
    }

    /// Begin and end of an iteration of the longest phase on the counter of each rank.
    ///
    /// # Errors
    /// The number of its iterations, if it has fewer; on all but the first process.
    pub(super) fn iteration(
        analysis: &Analysis,
        axis: CommonAxis,
        whole: (i64, i64),
        number: usize,
    ) -> Result<Vec<(u64, u64)>, usize> {
        let loops = analysis.calls_then(&Symbols { lines: axis.lines }, |rank| rank.loops());
        let loops = analysis.processes.join(loops);
        let mut all = Self::found(analysis, axis, whole, loops).into_iter();
        let Some((phase, begins)) = all.next() else { return Err(0) };
        let count = phase.bounds.len() - 1;
        if number >= count {
            return Err(count);
        }
        Ok(begins.iter().map(|of_rank| (of_rank[number], of_rank[number + 1])).collect())
    }

    /// The phases with the begins of their iterations on each rank's own counter.
    fn found(
        analysis: &Analysis,
        CommonAxis { clock, lines }: CommonAxis,
        whole: (i64, i64),
        of_ranks: Vec<Vec<Loop>>,
    ) -> Vec<(Self, Vec<Vec<u64>>)> {
        let candidates = candidates(&of_ranks, clock, whole);
        if candidates.is_empty() {
            return Vec::new();
        }
        let anchors: Vec<Vec<Loop>> = (0..of_ranks.len())
            .map(|rank| candidates.iter().map(|candidate| candidate.of_ranks[rank]).collect())
            .collect();
        let turns = Turns { lines, loops: &anchors };
        let turns = analysis.calls_then(&turns, |rank| rank.finish());
        let turns: Vec<Vec<FoundTurns>> = analysis.processes.join_at_first(turns);
        if turns.is_empty() {
            return Vec::new();
        }
        let mut taken: Vec<(f64, f64)> = Vec::new();
        let mut phases = Vec::new();
        for (number, candidate) in candidates.iter().enumerate() {
            let (begin, end) = candidate.stretch;
            let overlaps = taken.iter().any(|(from, to)| begin < *to && end > *from);
            if overlaps || !are_alike(&turns, number) {
                continue;
            }
            let begins = begins(candidate, &turns, number);
            let phase = Self::new(candidate, &begins, clock);
            if phase.is_regular()
                && phase.median_length() as f64 >= MIN_ITERATION_S * clock.ticks_per_s
            {
                taken.push(candidate.stretch);
                phases.push((phase, begins));
            }
        }
        phases.sort_by_key(|(phase, _): &(Self, _)| std::cmp::Reverse(phase.ticks()));
        phases
    }

    fn new(candidate: &Candidate, begins: &[Vec<u64>], clock: &IntegerTimeline) -> Self {
        let begins = begins.iter().enumerate().map(|(rank, begins)| {
            let begins = begins.iter().map(|ticks| clock.at(rank, *ticks));
            begins.collect()
        });
        let begins: Vec<Vec<i64>> = begins.collect();
        let latest = |at: usize| begins.iter().map(|of_rank| of_rank[at]).max().unwrap_or(0);
        let bounds = (0..=candidate.turns as usize).map(latest).collect();
        let anchor = candidate.of_ranks[0].anchor.site();
        let (iterations, computing, computing_of_each) = Default::default();
        Self {
            anchor,
            context: NO_CONTEXT,
            begins,
            bounds,
            iterations,
            computing,
            computing_of_each,
            busiest: 0,
            samples: PhaseSamples::default(),
        }
    }

    /// Half of its turns are longer.
    fn median_length(&self) -> i64 {
        let lengths = self.bounds.windows(2).map(|bounds| bounds[1] - bounds[0]);
        statistics::median_of(lengths.collect())
    }

    /// False if a few long turns among many short ones take most of the time: a function that is
    /// called now and then is not a loop.
    fn is_regular(&self) -> bool {
        let lengths = self.bounds.windows(2).map(|bounds| bounds[1] - bounds[0]);
        let mut lengths: Vec<i64> = lengths.collect();
        lengths.sort_unstable();
        let long =
            lengths.partition_point(|ticks| *ticks <= MUCH_LONGER * lengths[lengths.len() / 2]);
        let (count, ticks) = (lengths.len() - long, lengths[long..].iter().sum::<i64>());
        let all: i64 = lengths.iter().sum();
        count < 3 || count * 10 < lengths.len() || ticks * 2 < all
    }

    /// The moments at which the profile of a rank's first line must be cut.
    pub(super) fn moments(&self, position: usize) -> &[i64] {
        &self.begins[position]
    }

    /// Computes the figures of the iterations from the profiles and waits.
    pub(super) fn fill_iterations(
        &mut self,
        lines: &Lines,
        (profiles, contexts): (&Profiles, &Contexts),
        waits: &[Wait],
    ) {
        let count = self.bounds.len() - 1;
        let mut iterations = vec![Iteration::default(); count];
        let mut longest = vec![0; count];
        let keeps_each = count * self.begins.len() <= MAX_EACH;
        for (position, begins) in self.begins.iter().enumerate() {
            let profile = profiles.of_rank(lines, position);
            let mut hint = Hint::default();
            let mut computing = 0;
            for (at, iteration) in iterations.iter_mut().enumerate() {
                let stretches = profile.stretches((begins[at], begins[at + 1]), &mut hint);
                let sums = profile.sums_of(stretches);
                let of_rank: i64 = sums
                    .clone()
                    .filter(|(context, _)| contexts.get(*context).is_computing())
                    .map(|(_, ticks)| ticks)
                    .sum();
                let waiting = sums.filter(|(context, _)| *context == WAITING);
                iteration.waiting += waiting.map(|(_, ticks)| ticks).sum::<i64>();
                iteration.computing += of_rank;
                if keeps_each {
                    self.computing_of_each.push(of_rank);
                }
                computing += of_rank;
                if of_rank > longest[at] {
                    (longest[at], iteration.slowest) = (of_rank, position);
                }
            }
            self.computing.push(computing);
        }
        for ((iteration, from), to) in
            iterations.iter_mut().zip(&self.bounds).zip(&self.bounds[1..])
        {
            iteration.ticks = to - from;
        }
        self.busiest = longest.iter().sum();
        // By iteration the ticks of waiting for each delaying rank.
        let mut delaying_ranks: Vec<BTreeMap<u32, i64>> = vec![BTreeMap::new(); count];
        let mut hint = 0;
        for wait in waits.iter().filter(|wait| wait.has_delaying_rank()) {
            let position = lines.all[wait.line as usize].position;
            if let Some(at) = self.iteration_near(position, wait.until, &mut hint) {
                *delaying_ranks[at].entry(wait.delayed_by).or_default() += wait.ticks;
            }
        }
        for (iteration, delaying_ranks) in iterations.iter_mut().zip(delaying_ranks) {
            let dominant = delaying_ranks
                .into_iter()
                .max_by_key(|(line, ticks)| (*ticks, std::cmp::Reverse(*line)));
            iteration.delayed_by = dominant.map(|(line, _)| line);
        }
        self.iterations = iterations;
    }

    /// Counts what was sampled in slow iterations and in the others.
    pub(super) fn fill_samples(&mut self, run: &Run, clock: &IntegerTimeline) {
        if run.ranks.iter().all(|rank| rank.samples().threads.is_empty()) {
            return;
        }
        let mut is_slow = vec![false; self.iterations.len()];
        self.statistics().slow.into_iter().for_each(|at| is_slow[at] = true);
        let of_rank = |(position, rank): (usize, &RankTrace)| {
            let (mut slow, mut others) = (StackCounts::new(), StackCounts::new());
            for thread in &rank.samples().threads {
                let mut hint = 0;
                for (ticks, stack) in &thread.samples {
                    let moment = clock.at(position, *ticks);
                    let Some(at) = self.iteration_near(position, moment, &mut hint) else {
                        continue;
                    };
                    let counts = if is_slow[at] { &mut slow } else { &mut others };
                    *counts.entry(*stack).or_default() += 1;
                }
            }
            (slow, others)
        };
        let (slow, others) =
            run.ranks.par_iter().enumerate().map(|(at, rank)| of_rank((at, rank))).unzip();
        self.samples = PhaseSamples { slow, others };
    }

    /// The iteration of a moment on the rank at a position.
    pub fn iteration_of(&self, position: usize, moment: i64) -> Option<usize> {
        self.iteration_near(position, moment, &mut 0)
    }

    /// The same; the search starts at a hint, which receives the result.
    fn iteration_near(&self, position: usize, moment: i64, hint: &mut usize) -> Option<usize> {
        let begins = &self.begins[position];
        let at = hinted_search::partition_point(begins, hint, |begin| *begin <= moment);
        (1..begins.len()).contains(&at).then(|| at - 1)
    }

    /// Passes on what the rank at a position did: number of the iteration, context, ticks. A
    /// context may occur several times in an iteration.
    pub fn for_each_sum(
        &self,
        position: usize,
        (profiles, lines): (&Profiles, &Lines),
        mut take: impl FnMut(usize, u32, i64),
    ) {
        let profile = profiles.of_rank(lines, position);
        let mut hint = Hint::default();
        for (number, bounds) in self.begins[position].windows(2).enumerate() {
            let stretches = profile.stretches((bounds[0], bounds[1]), &mut hint);
            let sums = profile.sums_of(stretches);
            sums.for_each(|(context, ticks)| take(number, context, ticks));
        }
    }

    /// Begin of the first iteration on the rank where that is earliest.
    pub fn begin(&self) -> i64 {
        self.begins.iter().filter_map(|begins| begins.first()).min().copied().unwrap_or(0)
    }

    /// Length from the earliest begin of the first iteration to the latest end of the last, so that
    /// what any rank does in its iterations lies inside.
    pub fn ticks(&self) -> i64 {
        self.bounds[self.bounds.len() - 1] - self.begin()
    }

    /// The efficiency over all its iterations, without T₀, which is known only for whole runs.
    pub fn tree(&self, run: &Run) -> Option<Tree> {
        let hosts = run.ranks.iter().map(|rank| rank.file.header.host.as_str());
        let ranks: Vec<(&str, i64)> = hosts.zip(self.computing.iter().copied()).collect();
        let tree = Tree::new(&ranks, self.ticks(), None)?;
        Some(Tree { moving_imbalance: self.moving_imbalance(), ..tree })
    }

    /// A factor of serialisation: what is lost because the busiest rank changes from iteration to
    /// iteration; 1 if it is always the same rank.
    pub fn moving_imbalance(&self) -> Option<f64> {
        let largest = self.computing.iter().max().copied().filter(|most| *most > 0)?;
        Some(largest as f64 / self.busiest as f64)
    }
}

/// Begin of each turn of a loop and end of the last one, by rank and on its counter.
fn begins(candidate: &Candidate, turns: &[Vec<FoundTurns>], number: usize) -> Vec<Vec<u64>> {
    let of_ranks = turns.iter().zip(&candidate.of_ranks);
    let begins = of_ranks.map(|(turns, of)| {
        let begins = turns[number].begins.iter().chain([&of.stretch.1]);
        begins.copied().collect()
    });
    begins.collect()
}

/// Whether most of a loop's turns are of frequent kinds, and most of its time lies in them, over
/// all ranks.
fn are_alike(turns: &[Vec<FoundTurns>], number: usize) -> bool {
    let mut sums = [0.0; 4];
    for rank in turns {
        let [usual, all] = rank[number].frequent;
        for (sum, of) in sums.iter_mut().zip([usual.0, usual.1, all.0, all.1]) {
            *sum += of as f64;
        }
    }
    let [turns, time, all_turns, all_time] = sums;
    all_time > 0.0
        && turns >= MIN_FREQUENT_TURNS * all_turns
        && time >= MIN_FREQUENT_TIME * all_time
}

/// The loops that all ranks have, in order of preference.
fn candidates(
    of_ranks: &[Vec<Loop>],
    clock: &IntegerTimeline,
    whole: (i64, i64),
) -> Vec<Candidate> {
    let ranks = of_ranks.len() as f64;
    let elapsed = (whole.1 - whole.0).max(1) as f64;
    // Loops with equally many turns are matched by their order.
    let mut numbered: BTreeMap<(u64, usize), Vec<Loop>> = BTreeMap::new();
    for of_rank in of_ranks {
        let mut number = 0;
        let mut before = 0;
        for of in of_rank {
            number = if of.turns == before { number + 1 } else { 0 };
            before = of.turns;
            numbered.entry((of.turns, number)).or_default().push(*of);
        }
    }
    let all = numbered.into_iter().filter(|((turns, _), loops)| {
        loops.len() == of_ranks.len() && turns.saturating_mul(loops.len() as u64) <= MAX_TURNS
    });
    let mut all: Vec<Candidate> = all
        .map(|((turns, _), of_ranks)| {
            let mut stretch = (0.0, 0.0);
            for (rank, of) in of_ranks.iter().enumerate() {
                stretch.0 += clock.at(rank, of.stretch.0) as f64 / ranks;
                stretch.1 += clock.at(rank, of.stretch.1) as f64 / ranks;
            }
            let part = (stretch.1 - stretch.0) / elapsed;
            let of_calls = of_ranks
                .iter()
                .map(|of| (of.calls.1 + 1 - of.calls.0) as f64 / of.of_calls.max(1) as f64);
            let part_of_calls = of_calls.sum::<f64>() / ranks;
            Candidate { turns, of_ranks, stretch, part, part_of_calls }
        })
        .filter(|candidate| candidate.part >= MIN_PART)
        .collect();
    let mut ordered = Vec::new();
    while !all.is_empty() && ordered.len() < MAX_LOOPS {
        let Some(largest) = all.iter().max_by(|a, b| a.part.total_cmp(&b.part)) else { break };
        let (part, calls) = (largest.part, largest.part_of_calls);
        let covers_as_much = |of: &Candidate| {
            of.part >= SIMILAR_COVERAGE * part && of.part_of_calls >= EQUAL_COVERAGE * calls
        };
        let as_long = (0..all.len()).filter(|at| covers_as_much(&all[*at]));
        // The outermost with enough turns, else the one with the most turns.
        let rank = |at: &usize| match all[*at].turns {
            turns if turns >= ENOUGH_TURNS => (0, turns),
            turns => (1, u64::MAX - turns),
        };
        let Some(next) = as_long.min_by_key(rank) else { break };
        ordered.push(all.swap_remove(next));
    }
    ordered
}
