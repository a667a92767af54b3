//! When each turn of the loops that there may be begins, and whether the turns are alike.

use rustc_hash::FxHashMap;

use crate::analysis::spans::Span;
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};

use super::super::lines::Lines;
use super::symbols::{Loop, Symbol, Telling, symbol_of};

/// Sees the turns of some loops, the same number of them on each rank.
#[derive(Debug)]
pub(super) struct Turns<'l> {
    pub lines: &'l Lines,
    /// By rank.
    pub loops: &'l [Vec<Loop>],
}

/// A loop's turns on one rank.
#[derive(Debug, Default)]
pub(super) struct TurnsOfLoop {
    /// When each begins, on the rank's counter.
    pub begins: Vec<u64>,
    /// What the turn that goes on has called so far, folded.
    signature: u64,
    /// Turns with the same calls, the last one left out: how many, and their ticks.
    kinds: FxHashMap<u64, (u64, u64)>,
}

impl TurnsOfLoop {
    /// Turns of usual kinds and all, and the ticks of both. Usual is a kind of three turns and of one in ten at least.
    pub fn usual(&self) -> [(u64, u64); 2] {
        let add = |sum: (u64, u64), of: (u64, u64)| (sum.0 + of.0, sum.1 + of.1);
        let all = self.kinds.values().copied().fold((0, 0), add);
        let is_usual = |of: &(u64, u64)| of.0 >= 3 && of.0 * 10 >= all.0;
        [self.kinds.values().copied().filter(is_usual).fold((0, 0), add), all]
    }
}

/// Of one rank.
#[derive(Debug)]
pub(super) struct TurnsOfRank<'l> {
    lines: &'l Lines,
    position: usize,
    telling: Telling,
    is_first_thread: bool,
    anchors: &'l [Loop],
    symbols: FxHashMap<Symbol, usize>,
    /// For each symbol and loop the turn in which it was called last.
    called: Vec<u32>,
    pub loops: Vec<TurnsOfLoop>,
}

impl<'a, 'l> CallObserver<'a> for Turns<'l> {
    type OfRank = TurnsOfRank<'l>;

    fn begin_rank(&self, rank: RankView<'a>) -> TurnsOfRank<'l> {
        let anchors = &self.loops[rank.position];
        TurnsOfRank {
            lines: self.lines,
            position: rank.position,
            telling: Telling::new(rank.trace),
            is_first_thread: false,
            anchors,
            symbols: FxHashMap::default(),
            called: Vec::new(),
            loops: anchors.iter().map(|_| TurnsOfLoop::default()).collect(),
        }
    }
}

impl<'a> RankObserver<'a> for TurnsOfRank<'_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        let line = self.lines.of(self.position, thread.thread.number);
        self.is_first_thread = line == Some(self.lines.first_of(self.position));
    }

    fn span(&mut self, span: &Span) {
        let Some(symbol) = symbol_of(span, &self.telling).filter(|_| self.is_first_thread) else {
            return;
        };
        let loops = self.anchors.len();
        let next = self.symbols.len();
        let number = *self.symbols.entry(symbol).or_insert(next);
        if number == next {
            self.called.resize((next + 1) * loops, 0);
        }
        let called = &mut self.called[number * loops..(number + 1) * loops];
        for ((of, anchor), called) in self.loops.iter_mut().zip(self.anchors).zip(called) {
            if symbol == anchor.anchor {
                if let Some(begin) = of.begins.last() {
                    let (turns, ticks) = of.kinds.entry(of.signature).or_default();
                    *turns += 1;
                    *ticks += span.begin_ticks - begin;
                }
                of.begins.push(span.begin_ticks);
                of.signature = 0;
            }
            let turn = of.begins.len() as u32;
            if turn > 0 && *called != turn {
                *called = turn;
                of.signature ^= folded(number as u64 + 1);
            }
        }
    }

    fn end_thread(&mut self) {}
}

/// A number that has little in common with its neighbours' (SplitMix64).
fn folded(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
