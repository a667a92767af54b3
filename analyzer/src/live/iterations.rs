//! The iterations of a run that is going on, and which of them are slow.
//!
//! A call that a loop makes once per turn occurs as often as the loop turns. So calls are counted until all ranks have
//! one that occurred equally often: the anchor. An iteration ends when the last rank has begun it. The rank that took
//! longer outside MPI than it usually does delays the others; whether it only waited for a core, the kernel's accounts
//! tell.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use super::new_calls::{NewCall, Symbol};
use super::rank::LiveRank;
use super::run::LiveRun;
use super::seconds::SPAN_S;

/// A call is an anchor after so many turns, if a turn takes so long in the mean.
const TURNS: u64 = 30;
const LEAST_TURN_S: f64 = 1e-3;
/// What is usual is judged by so many iterations.
const USUAL: usize = 64;
/// An iteration is slow only if it exceeds the median by this many spreads (1.4826 times the median deviation), and at
/// most this share of the usual ones is as long: more are no exceptions.
const SPREADS: f64 = 5.0;
const MAX_SHARE: f64 = 0.1;
/// Without an anchor for so many iterations, and so long, the program may be in another loop.
const LOST_TURNS: f64 = 10.0;
const LOST_S: f64 = 2.0;
/// A rank explains a slow iteration by at least this share of what it took longer.
const EXPLAINS: f64 = 0.5;
/// After so many times that calls were missed, there are too many to be followed.
const MOST_MISSED: u32 = 4;

/// An iteration that took far longer than usual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowIteration {
    /// Its end, on the counter.
    pub at: u64,
    pub length_s: f64,
    /// Median of those before.
    pub usual_s: f64,
    /// The rank that took longer outside MPI; `None`: no single one did.
    pub rank: Option<u32>,
    /// Whether that rank waited for a core meanwhile.
    pub waited_for_core: bool,
}

/// How a run iterates at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IterationsNow {
    /// Iterations that were followed.
    pub count: u64,
    /// How many a second of the last ones, those of 10 seconds at most.
    pub per_s: f64,
}

/// The iterations of a run.
#[derive(Debug)]
pub struct Iterations {
    /// How many times as long as usual an iteration has to be to be slow.
    factor: f64,
    ranks: BTreeMap<u32, RankTurns>,
    /// When the last iteration ended, by the counter; `None` if none is known.
    ended: Option<u64>,
    /// Ticks of the last ones, oldest first.
    lengths: VecDeque<u64>,
    count: u64,
    missed: u32,
}

/// The turns of a rank.
#[derive(Debug, Default)]
struct RankTurns {
    seen: FxHashMap<Symbol, Seen>,
    anchor: Option<Symbol>,
    /// Anchors to pass over, because the other ranks are ahead.
    skip: u64,
    /// Begins of turns that have not begun on all ranks, and ticks inside MPI in the turn before each.
    begins: VecDeque<(u64, u64)>,
    in_mpi: u64,
    /// Begin of the last turn that has begun on all ranks.
    begun: Option<u64>,
    /// Ticks outside MPI of the last turns.
    computing: VecDeque<u64>,
    /// Nanoseconds for which its first thread has waited for a core so far, by the counter.
    queued: VecDeque<(u64, u64)>,
}

/// How often a call occurred, and when first and last.
#[derive(Debug, Clone, Copy)]
struct Seen {
    count: u64,
    first: u64,
    last: u64,
}

impl Seen {
    fn turn_ticks(&self) -> f64 {
        (self.last - self.first) as f64 / (self.count.max(2) - 1) as f64
    }
}

impl Iterations {
    /// None is slow.
    pub fn counted() -> Self {
        Self::slow_at(f64::INFINITY)
    }

    /// Iterations are slow that take so many times as long as usual.
    pub fn slow_at(factor: f64) -> Self {
        Self {
            factor,
            ranks: BTreeMap::new(),
            ended: None,
            lengths: VecDeque::new(),
            count: 0,
            missed: 0,
        }
    }

    /// How many there were, and how fast they come; `None` if no loop is known of which all ranks take part.
    pub fn now(&self, run: &LiveRun) -> Option<IterationsNow> {
        let now = run.ranks().map(LiveRank::now).max()?;
        let per_s = self.per_s(now, run.ticks_per_s())?;
        Some(IterationsNow { count: self.count, per_s })
    }

    fn per_s(&self, now: u64, ticks_per_s: f64) -> Option<f64> {
        let since = now.saturating_sub(self.ended?) as f64;
        let (mut count, mut ticks) = (0.0, 0.0);
        for length in self.lengths.iter().rev().map(|length| *length as f64) {
            if count > 0.0 && ticks + length > SPAN_S * ticks_per_s {
                break;
            }
            (count, ticks) = (count + 1.0, ticks + length);
        }
        // As long as the next one is not late, time since the last one says nothing.
        let late = if since > 2.0 * ticks / count { since } else { 0.0 };
        (count > 0.0).then(|| count * ticks_per_s / (ticks + late))
    }

    /// Whether the ranks make more calls than can be followed.
    pub fn is_given_up(&self) -> bool {
        self.missed >= MOST_MISSED
    }

    /// Takes the calls that the ranks have made since the last look. Returns the slow iterations that ended since.
    pub fn look(&mut self, run: &mut LiveRun) -> Vec<SlowIteration> {
        if self.is_given_up() {
            return Vec::new();
        }
        let ticks_per_s = run.ticks_per_s();
        let mut missed = false;
        let mut now = 0;
        for rank in run.ranks_mut() {
            let turns = self.ranks.entry(rank.rank).or_default();
            now = now.max(rank.now());
            if let Some(queued_ns) = rank.queued_ns() {
                turns.note_queue(rank.now(), queued_ns);
            }
            match rank.take_calls() {
                Some(calls) => calls.iter().for_each(|call| turns.add(call)),
                None => missed = true,
            }
        }
        if missed {
            self.missed += 1;
            self.begin_anew();
            if self.is_given_up() {
                run.ranks_mut().for_each(LiveRank::leave_calls);
            }
            return Vec::new();
        }
        self.follow(now, ticks_per_s)
    }

    fn begin_anew(&mut self) {
        self.ranks.values_mut().for_each(|turns| {
            let queued = std::mem::take(&mut turns.queued);
            *turns = RankTurns { queued, ..RankTurns::default() };
        });
        (self.ended, self.lengths) = (None, VecDeque::new());
    }

    fn follow(&mut self, now: u64, ticks_per_s: f64) -> Vec<SlowIteration> {
        let is_lost = match (self.ended, self.ranks.values().all(|turns| turns.anchor.is_some())) {
            (_, false) => true,
            (Some(ended), _) => {
                let usual = median(&self.lengths) as f64;
                now.saturating_sub(ended) as f64 > (LOST_TURNS * usual).max(LOST_S * ticks_per_s)
            }
            (None, _) => false,
        };
        if is_lost {
            self.find_anchor(ticks_per_s);
        }
        let mut slow = Vec::new();
        while !self.ranks.is_empty() && self.ranks.values().all(|turns| !turns.begins.is_empty()) {
            slow.extend(self.end_iteration(ticks_per_s));
        }
        slow
    }

    /// Chooses the call that occurred most often, equally often on all ranks.
    fn find_anchor(&mut self, ticks_per_s: f64) {
        let possible = |turns: &RankTurns| -> Vec<(Symbol, Seen)> {
            let long = |of: &Seen| of.turn_ticks() >= LEAST_TURN_S * ticks_per_s;
            let all = turns.seen.iter().filter(|(_, of)| of.count >= TURNS && long(of));
            all.map(|(symbol, of)| (*symbol, *of)).collect()
        };
        let of_ranks: Vec<Vec<(Symbol, Seen)>> = self.ranks.values().map(possible).collect();
        let Some(first) = of_ranks.first() else { return };
        let mut first: Vec<(Symbol, Seen)> = first.clone();
        first.sort_by_key(|(symbol, of)| {
            (std::cmp::Reverse((of.count, symbol.is_collective)), symbol.address)
        });
        let found = first.iter().find_map(|(symbol, of)| {
            // The lowest address: that of the same call on all ranks, if they run the same program.
            let like = |all: &Vec<(Symbol, Seen)>| {
                let like = all.iter().filter(|(other, seen)| {
                    other.function == symbol.function && seen.count.abs_diff(of.count) <= 1
                });
                like.min_by_key(|(other, _)| other.address).copied()
            };
            of_ranks.iter().map(like).collect::<Option<Vec<_>>>()
        });
        let Some(anchors) = found else { return };
        let latest = anchors.iter().map(|(_, of)| of.last).max().unwrap_or(0);
        for (turns, (symbol, of)) in self.ranks.values_mut().zip(anchors) {
            let behind = (latest - of.last) as f64 / of.turn_ticks().max(1.0);
            let (anchor, skip) = (Some(symbol), behind.round() as u64);
            let queued = std::mem::take(&mut turns.queued);
            *turns = RankTurns { anchor, skip, queued, ..RankTurns::default() };
        }
        (self.ended, self.lengths) = (None, VecDeque::new());
    }

    /// Ends the iteration whose end has begun on all ranks. Returns it if it is slow.
    fn end_iteration(&mut self, ticks_per_s: f64) -> Option<SlowIteration> {
        let begins = self.ranks.values().filter_map(|turns| turns.begins.front());
        let at = begins.map(|(begin, _)| *begin).max()?;
        let before = self.ended.replace(at);
        let excess: Vec<(u32, f64)> =
            self.ranks.iter_mut().map(|(rank, turns)| (*rank, turns.end_turn())).collect();
        let length = at.saturating_sub(before?);
        self.count += 1;
        let usual = median(&self.lengths);
        let is_slow = self.is_slow(length, usual);
        self.lengths.push_back(length);
        if self.lengths.len() > USUAL {
            self.lengths.pop_front();
        }
        if !is_slow {
            return None;
        }
        let longer = (length - usual) as f64;
        let since = at.saturating_sub(length);
        let delaying = excess.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let delaying = delaying.filter(|(_, excess)| *excess >= EXPLAINS * longer);
        let waited = |turns: &RankTurns| turns.waited_more(since..at) * 1e-9 * ticks_per_s;
        // Ranks that wait for the delaying one in MPI wait for cores, too, if others want these.
        let (rank, waited_for_core) = match delaying {
            Some((rank, excess)) => {
                let waited = self.ranks.get(&rank).map_or(0.0, waited);
                (Some(rank), waited >= EXPLAINS * excess)
            }
            None => {
                let waited = self.ranks.iter().map(|(rank, turns)| (*rank, waited(turns)));
                let most = waited.max_by(|a, b| a.1.total_cmp(&b.1));
                let most = most.filter(|(_, waited)| *waited >= EXPLAINS * longer);
                (most.map(|(rank, _)| rank), most.is_some())
            }
        };
        Some(SlowIteration {
            at,
            length_s: length as f64 / ticks_per_s,
            usual_s: usual as f64 / ticks_per_s,
            rank,
            waited_for_core,
        })
    }

    fn is_slow(&self, length: u64, usual: u64) -> bool {
        if (self.lengths.len() as u64) < TURNS {
            return false;
        }
        let deviations: VecDeque<u64> = self.lengths.iter().map(|of| of.abs_diff(usual)).collect();
        let spread = 1.4826 * median(&deviations) as f64;
        let limit = (self.factor * usual as f64).max(usual as f64 + SPREADS * spread);
        let longer = self.lengths.iter().filter(|of| **of as f64 > limit).count();
        length as f64 > limit && longer as f64 <= MAX_SHARE * self.lengths.len() as f64
    }
}

impl RankTurns {
    fn add(&mut self, call: &NewCall) {
        if let Some(symbol) = call.symbol {
            let new = Seen { count: 0, first: call.begin, last: call.begin };
            let seen = self.seen.entry(symbol).or_insert(new);
            (seen.count, seen.last) = (seen.count + 1, call.begin);
            if self.anchor == Some(symbol) {
                let in_mpi = std::mem::take(&mut self.in_mpi);
                match self.skip {
                    0 => self.begins.push_back((call.begin, in_mpi)),
                    _ => self.skip -= 1,
                }
            }
        }
        self.in_mpi += call.ticks;
    }

    /// Ends the turn whose end has begun on all ranks. Returns by how many ticks it took longer outside MPI than usual.
    fn end_turn(&mut self) -> f64 {
        let Some((begin, in_mpi)) = self.begins.pop_front() else { return 0.0 };
        self.seen.clear();
        let Some(before) = self.begun.replace(begin) else { return 0.0 };
        let computing = begin.saturating_sub(before).saturating_sub(in_mpi);
        let longer = computing as f64 - median(&self.computing) as f64;
        self.computing.push_back(computing);
        if self.computing.len() > USUAL {
            self.computing.pop_front();
        }
        longer
    }

    fn note_queue(&mut self, now: u64, queued_ns: u64) {
        /// Readings that are kept: some ten a second.
        const READINGS: usize = 1200;
        self.queued.push_back((now, queued_ns));
        if self.queued.len() > READINGS {
            self.queued.pop_front();
        }
    }

    /// Nanoseconds that it waited for a core between two moments, beyond what it waits usually.
    fn waited_more(&self, between: std::ops::Range<u64>) -> f64 {
        let before = self.queued.iter().rev().find(|(at, _)| *at <= between.start);
        let after = self.queued.iter().find(|(at, _)| *at >= between.end).or(self.queued.back());
        let (Some(first), Some(last), Some(before), Some(after)) =
            (self.queued.front(), self.queued.back(), before, after)
        else {
            return 0.0;
        };
        let waited = |from: &(u64, u64), to: &(u64, u64)| to.1.saturating_sub(from.1) as f64;
        let ticks = |from: &(u64, u64), to: &(u64, u64)| to.0.saturating_sub(from.0) as f64;
        let inside = waited(before, after);
        let (others, time) =
            (waited(first, last) - inside, (ticks(first, last) - ticks(before, after)).max(1.0));
        inside - others / time * ticks(before, after)
    }
}

fn median(values: &VecDeque<u64>) -> u64 {
    let mut values: Vec<u64> = values.iter().copied().collect();
    let middle = values.len() / 2;
    if values.is_empty() { 0 } else { *values.select_nth_unstable(middle).1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS_PER_S: f64 = 1e9;
    const MS: u64 = 1_000_000;

    /// Iterations of two ranks: each computes, and then reduces (address 5) and exchanges (address 7).
    struct Program {
        iterations: Iterations,
        at: u64,
    }

    impl Program {
        fn new(factor: f64) -> Self {
            let mut iterations = Iterations::slow_at(factor);
            iterations.ranks.extend([(0, RankTurns::default()), (1, RankTurns::default())]);
            Self { iterations, at: 1000 * MS }
        }

        /// An iteration in which the ranks compute for so long. Returns what is slow.
        fn turn(&mut self, computing: [u64; 2]) -> Vec<SlowIteration> {
            let end = self.at + computing[0].max(computing[1]);
            for (turns, computing) in self.iterations.ranks.values_mut().zip(computing) {
                let begin = self.at + computing;
                for (address, begin, ticks) in [(5, begin, end - begin + MS), (7, end + MS, MS)] {
                    let symbol = Symbol { function: 20, address, is_collective: true };
                    turns.add(&NewCall { symbol: Some(symbol), begin, ticks });
                }
            }
            self.at = end + 2 * MS;
            self.iterations.follow(self.at, TICKS_PER_S)
        }

        fn queue(&mut self, rank: u32, queued_ns: u64) {
            let turns = self.iterations.ranks.get_mut(&rank).unwrap();
            turns.note_queue(self.at, queued_ns);
        }
    }

    #[test]
    fn names_slow_iteration_and_the_rank_that_took_longer() {
        let mut program = Program::new(2.0);
        for turn in 0..100 {
            assert_eq!(program.turn([150 * MS + turn % 7 * MS, 140 * MS]), []);
        }
        assert!(program.iterations.count > 60, "{}", program.iterations.count);
        let slow = program.turn([150 * MS, 450 * MS]);
        let [SlowIteration { length_s, usual_s, rank: Some(1), waited_for_core: false, .. }] =
            slow[..]
        else {
            panic!("{slow:?}")
        };
        assert!((0.44..0.46).contains(&length_s) && (0.15..0.16).contains(&usual_s), "{slow:?}");
        assert_eq!(program.turn([150 * MS, 140 * MS]), []);
        assert_eq!(program.turn([150 * MS, 250 * MS]), [], "less than twice as long");
    }

    #[test]
    fn rank_without_a_core_is_told_apart() {
        let mut program = Program::new(2.0);
        for turn in 0..100 {
            program.turn([150 * MS, 140 * MS]);
            program.queue(1, turn * MS);
        }
        let slow = program.turn([150 * MS, 450 * MS]);
        assert!(!slow[0].waited_for_core);
        program.queue(1, 100 * MS);
        // The reading comes before the iteration is judged.
        program.at += 450 * MS;
        program.queue(1, 400 * MS);
        program.at -= 450 * MS;
        let slow = program.turn([150 * MS, 450 * MS]);
        assert_eq!((slow[0].rank, slow[0].waited_for_core), (Some(1), true), "{slow:?}");
    }

    #[test]
    fn long_iterations_that_come_often_are_usual() {
        let mut program = Program::new(2.0);
        let slow: usize = (0..400)
            .map(|turn| program.turn([if turn % 5 == 0 { 500 * MS } else { 100 * MS }; 2]).len())
            .sum();
        assert_eq!(slow, 0);
    }

    #[test]
    fn rate_is_that_of_the_last_iterations_and_falls_when_they_end() {
        let mut program = Program::new(f64::INFINITY);
        assert_eq!(program.iterations.per_s(program.at, TICKS_PER_S), None);
        for turn in 0..200 {
            program.turn([if turn < 100 { 8 * MS } else { 18 * MS }; 2]);
        }
        let per_s = |at| program.iterations.per_s(at, TICKS_PER_S).unwrap();
        assert!((per_s(program.at) - 50.0).abs() < 1e-6, "{}", per_s(program.at));
        // 64 iterations in 1.28 s, and none for 1.28 s.
        let later = per_s(program.at + 1_278 * MS);
        assert!((later - 25.0).abs() < 1.0, "{later}");
    }

    #[test]
    fn another_loop_is_learnt() {
        let mut program = Program::new(2.0);
        for _ in 0..60 {
            program.turn([10 * MS; 2]);
        }
        let before = program.iterations.count;
        for turn in 0..400 {
            program.at += 10 * MS;
            for turns in program.iterations.ranks.values_mut() {
                let symbol = Symbol { function: 21, address: 9, is_collective: false };
                turns.add(&NewCall { symbol: Some(symbol), begin: program.at, ticks: MS });
            }
            assert_eq!(program.iterations.follow(program.at, TICKS_PER_S), [], "{turn}");
        }
        assert!(program.iterations.count > before + 100, "{}", program.iterations.count);
    }
}
