//! Finds the iterations of a run unaided: a loop in which all ranks make the same calls equally often (CAUSES,
//! section 5).
//!
//! A call that a loop makes once a turn is made as often as the loop has turns. So calls of the same number and
//! time are the body of a loop, if there is one, and the first of them begins its turns. All ranks have to
//! have a loop of as many turns. Of the loops that explain as much of the run as any, the outermost with at
//! least ten turns is taken; its turns have to be alike: most of them, and of the time, are of kinds that come often. A kind
//! is which calls are made, however often each. Loops at other times are further phases.
//!
//! | file | its idea |
//! |---|---|
//! | `symbols` | what is called how often |
//! | `turns` | when turns begin, and whether they are alike |
//! | `statistics` | slow turns, trends, periods |

mod statistics;
mod symbols;
mod turns;

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::analysis::Analysis;
use crate::trace::Run;

use super::NOWHERE;
use super::contexts::{Contexts, LocalSite, WAITING};
use super::lines::Lines;
use super::profile::{Hint, Profile};
use super::tree::Tree;
use super::waits::Wait;
use super::whole_ticks::WholeTicks;
pub use statistics::{Every, Statistics};
use symbols::{Loop, Symbols};
use turns::{Turns, TurnsOfRank};

/// The outermost loop with so many turns is taken.
const ENOUGH_TURNS: u64 = 10;
/// Shorter loops, as a part of the run, are no phase.
const LEAST_PART: f64 = 0.02;
/// What explains so much of the most explains as much.
const AS_MUCH: f64 = 0.95;
/// Loops that are looked at.
const MOST_LOOPS: usize = 8;
/// Turns times ranks of a loop that is looked at.
const MOST_TURNS: u64 = 1 << 21;
/// Iterations times ranks of which each one's computation is kept.
const MOST_EACH: usize = 1 << 17;
/// So many of a loop's turns are of usual kinds, and so much of its time lies in these.
const ALIKE: f64 = 0.7;
const TIME_ALIKE: f64 = 0.5;
/// Turns that are so many times as long as the median are of another kind.
const MUCH_LONGER: i64 = 50;

/// A stretch of the run in which all ranks repeat the same calls.
#[derive(Debug, Clone)]
pub struct Phase {
    /// The call that begins an iteration, of the rank at position 0 by its numbers.
    pub(super) anchor: LocalSite,
    /// The same as a context of the run.
    pub place: u32,
    /// By rank: when each iteration begins there, and when the last one ends.
    begins: Vec<Vec<i64>>,
    /// The latest begin of each iteration on any rank, and the latest end of the last.
    pub bounds: Vec<i64>,
    /// In order.
    pub iterations: Vec<Iteration>,
    /// Ticks outside MPI by rank, over all iterations.
    computing: Vec<i64>,
    /// Ticks outside MPI of each rank in each iteration, rank by rank; empty where there are very many.
    pub computing_of_each: Vec<i64>,
    /// The sum over the iterations of what the busiest rank computes.
    busiest: i64,
}

/// One iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Iteration {
    /// How long it took: from the latest begin to the next one's.
    pub ticks: i64,
    /// Ticks outside MPI, over all ranks.
    pub computing: i64,
    /// Ticks of waiting for a rank that is known, over all ranks.
    pub waiting: i64,
    /// The rank that computes longest, by its position.
    pub slowest: usize,
    /// The line for which the others wait longest; `None` where nobody waits.
    pub culprit: Option<u32>,
}

/// A loop that all ranks have.
struct Candidate {
    turns: u64,
    /// By rank.
    of_ranks: Vec<Loop>,
    /// From when to when, in the mean over the ranks.
    stretch: (f64, f64),
    /// Which part of the run it takes, in the mean over the ranks.
    part: f64,
}

impl Phase {
    /// Those of a run that lasts so long, the longest first; their iterations are not told yet.
    pub(super) fn find(
        analysis: &Analysis,
        (clock, lines): (&WholeTicks, &Lines),
        whole: (i64, i64),
    ) -> Vec<Self> {
        let symbols = analysis.calls(&Symbols { lines });
        let of_ranks: Vec<Vec<Loop>> = symbols.par_iter().map(|rank| rank.loops()).collect();
        drop(symbols);
        let candidates = candidates(&of_ranks, clock, whole);
        if candidates.is_empty() {
            return Vec::new();
        }
        let anchors: Vec<Vec<Loop>> = (0..of_ranks.len())
            .map(|rank| candidates.iter().map(|candidate| candidate.of_ranks[rank]).collect())
            .collect();
        let turns = analysis.calls(&Turns { lines, loops: &anchors });
        let mut taken: Vec<(f64, f64)> = Vec::new();
        let mut phases = Vec::new();
        for (number, candidate) in candidates.iter().enumerate() {
            let (begin, end) = candidate.stretch;
            let overlaps = taken.iter().any(|(from, to)| begin < *to && end > *from);
            if overlaps || !are_alike(&turns, number) {
                continue;
            }
            let phase = Self::new(candidate, &turns, number, clock);
            if phase.is_regular() {
                taken.push(candidate.stretch);
                phases.push(phase);
            }
        }
        phases.sort_by_key(|phase: &Self| std::cmp::Reverse(phase.ticks()));
        phases
    }

    fn new(
        candidate: &Candidate,
        turns: &[TurnsOfRank],
        number: usize,
        clock: &WholeTicks,
    ) -> Self {
        let begins =
            turns.iter().zip(&candidate.of_ranks).enumerate().map(|(rank, (turns, of))| {
                let begins = turns.loops[number].begins.iter().chain([&of.stretch.1]);
                begins.map(|ticks| clock.at(rank, *ticks)).collect()
            });
        let begins: Vec<Vec<i64>> = begins.collect();
        let latest = |at: usize| begins.iter().map(|of_rank| of_rank[at]).max().unwrap_or(0);
        let bounds = (0..=candidate.turns as usize).map(latest).collect();
        let anchor = candidate.of_ranks[0].anchor.of_site();
        let (iterations, computing, computing_of_each) = Default::default();
        Self {
            anchor,
            place: NOWHERE,
            begins,
            bounds,
            iterations,
            computing,
            computing_of_each,
            busiest: 0,
        }
    }

    /// Whether the time is not that of a few turns among many short ones: a function that is called here and there is
    /// no loop.
    fn is_regular(&self) -> bool {
        let lengths = self.bounds.windows(2).map(|bounds| bounds[1] - bounds[0]);
        let mut lengths: Vec<i64> = lengths.collect();
        lengths.sort_unstable();
        let long =
            lengths.partition_point(|ticks| *ticks <= MUCH_LONGER * lengths[lengths.len() / 2]);
        let (count, ticks) = (lengths.len() - long, lengths[long..].iter().sum::<i64>());
        count < 3 || count * 10 < lengths.len() || ticks * 2 < self.ticks()
    }

    /// The moments of a rank's first line that figures of iterations need.
    pub(super) fn moments(&self, position: usize) -> &[i64] {
        &self.begins[position]
    }

    /// Tells the figures of its iterations.
    pub(super) fn tell(
        &mut self,
        lines: &Lines,
        (profiles, contexts): (&[Profile], &Contexts),
        waits: &[Wait],
    ) {
        let count = self.bounds.len() - 1;
        let mut iterations = vec![Iteration::default(); count];
        let mut most = vec![0; count];
        let keeps_each = count * self.begins.len() <= MOST_EACH;
        for (position, begins) in self.begins.iter().enumerate() {
            let profile = &profiles[lines.first_of(position) as usize];
            let mut hint = Hint::default();
            let mut computing = 0;
            for (at, iteration) in iterations.iter_mut().enumerate() {
                let stretches = profile.stretches((begins[at], begins[at + 1]), &mut hint);
                let sums = profile.sums_of(stretches).iter();
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
                if of_rank > most[at] {
                    (most[at], iteration.slowest) = (of_rank, position);
                }
            }
            self.computing.push(computing);
        }
        for ((iteration, from), to) in
            iterations.iter_mut().zip(&self.bounds).zip(&self.bounds[1..])
        {
            iteration.ticks = to - from;
        }
        self.busiest = most.iter().sum();
        // Waits of a line come in order of time: the sums of an iteration's culprits, line by line.
        let mut culprits: Vec<BTreeMap<u32, i64>> = vec![BTreeMap::new(); count];
        for wait in waits.iter().filter(|wait| wait.has_culprit()) {
            if let Some(at) = self.iteration_of(lines.all[wait.line as usize].position, wait.until)
            {
                *culprits[at].entry(wait.culprit).or_default() += wait.ticks;
            }
        }
        for (iteration, culprits) in iterations.iter_mut().zip(culprits) {
            let most =
                culprits.into_iter().max_by_key(|(line, ticks)| (*ticks, std::cmp::Reverse(*line)));
            iteration.culprit = most.map(|(line, _)| line);
        }
        self.iterations = iterations;
    }

    /// In which iteration a moment of a rank, by its position, is.
    pub fn iteration_of(&self, position: usize, moment: i64) -> Option<usize> {
        let begins = &self.begins[position];
        let at = begins.partition_point(|begin| *begin <= moment);
        (1..begins.len()).contains(&at).then(|| at - 1)
    }

    /// Hands on what a rank, by its position, did in each iteration: its number, a context, ticks. A context may come
    /// several times.
    pub fn for_each_sum(
        &self,
        position: usize,
        causes: &super::Causes,
        mut take: impl FnMut(usize, u32, i64),
    ) {
        let profile = &causes.profiles[causes.lines.first_of(position) as usize];
        let mut hint = Hint::default();
        for (number, bounds) in self.begins[position].windows(2).enumerate() {
            let stretches = profile.stretches((bounds[0], bounds[1]), &mut hint);
            for (context, ticks) in profile.sums_of(stretches) {
                take(number, *context, *ticks);
            }
        }
    }

    /// From the latest begin of the first iteration to the latest end of the last.
    pub fn ticks(&self) -> i64 {
        self.bounds[self.bounds.len() - 1] - self.bounds[0]
    }

    /// The efficiency over all its iterations. T₀ is not known of a part of a run.
    pub fn tree(&self, run: &Run) -> Option<Tree> {
        let hosts = run.ranks.iter().map(|rank| rank.file.header.host.as_str());
        let ranks: Vec<(&str, i64)> = hosts.zip(self.computing.iter().copied()).collect();
        let tree = Tree::new(&ranks, self.ticks(), None)?;
        Some(Tree { moving_imbalance: self.moving_imbalance(), ..tree })
    }

    /// How much of the balance over all iterations is lost because it is another rank that computes longest from
    /// iteration to iteration: 1 where it is always the same; a factor of serialisation.
    pub fn moving_imbalance(&self) -> Option<f64> {
        let largest = self.computing.iter().max().copied().filter(|most| *most > 0)?;
        Some(largest as f64 / self.busiest as f64)
    }

    /// The efficiency of one iteration.
    pub fn tree_of(&self, number: usize, run: &Run, causes: &super::Causes) -> Option<Tree> {
        let ranks = run.ranks.iter().enumerate().map(|(position, rank)| {
            let begins = &self.begins[position];
            let profile = &causes.profiles[causes.lines.first_of(position) as usize];
            let stretch = (begins[number], begins[number + 1]);
            let stretches = profile.stretches(stretch, &mut Hint::default());
            let sums = profile.sums_of(stretches).iter();
            let computing =
                sums.filter(|(context, _)| causes.contexts.get(*context).is_computing());
            (rank.file.header.host.as_str(), computing.map(|(_, ticks)| ticks).sum())
        });
        let ranks: Vec<(&str, i64)> = ranks.collect();
        Tree::new(&ranks, self.iterations.get(number)?.ticks, None)
    }
}

/// Whether most of a loop's turns are of usual kinds, and most of its time lies in them, on the ranks together.
fn are_alike(turns: &[TurnsOfRank], number: usize) -> bool {
    let mut sums = [0.0; 4];
    for rank in turns {
        let [usual, all] = rank.loops[number].usual();
        for (sum, of) in sums.iter_mut().zip([usual.0, usual.1, all.0, all.1]) {
            *sum += of as f64;
        }
    }
    let [turns, time, all_turns, all_time] = sums;
    all_time > 0.0 && turns >= ALIKE * all_turns && time >= TIME_ALIKE * all_time
}

/// The loops that all ranks have, in the order in which they are to be taken.
fn candidates(of_ranks: &[Vec<Loop>], clock: &WholeTicks, whole: (i64, i64)) -> Vec<Candidate> {
    let ranks = of_ranks.len() as f64;
    let elapsed = (whole.1 - whole.0).max(1) as f64;
    // Loops of equally many turns are told apart by their order.
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
        loops.len() == of_ranks.len() && turns.saturating_mul(loops.len() as u64) <= MOST_TURNS
    });
    let mut all: Vec<Candidate> = all
        .map(|((turns, _), of_ranks)| {
            let mut stretch = (0.0, 0.0);
            for (rank, of) in of_ranks.iter().enumerate() {
                stretch.0 += clock.at(rank, of.stretch.0) as f64 / ranks;
                stretch.1 += clock.at(rank, of.stretch.1) as f64 / ranks;
            }
            let part = (stretch.1 - stretch.0) / elapsed;
            Candidate { turns, of_ranks, stretch, part }
        })
        .filter(|candidate| candidate.part >= LEAST_PART)
        .collect();
    let mut ordered = Vec::new();
    while !all.is_empty() && ordered.len() < MOST_LOOPS {
        let most = all.iter().map(|candidate| candidate.part).fold(0.0, f64::max);
        let as_much = (0..all.len()).filter(|at| all[*at].part >= AS_MUCH * most);
        // The outermost with enough turns, else the one with the most.
        let rank = |at: &usize| match all[*at].turns {
            turns if turns >= ENOUGH_TURNS => (0, turns),
            turns => (1, u64::MAX - turns),
        };
        let Some(next) = as_much.min_by_key(rank) else { break };
        ordered.push(all.swap_remove(next));
    }
    ordered
}
