//! Finds when each turn of the possible loops begins, and whether the turns are alike.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::analysis::spans::Span;
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};

use super::super::lines::Lines;
use super::super::numbering::Numbering;
use super::symbols::{Loop, Symbol, SymbolReader};

/// Observes the turns of the given loops; each rank has the same number of loops.
#[derive(Debug)]
pub(super) struct Turns<'l> {
    pub lines: &'l Lines,
    /// By rank.
    pub loops: &'l [Vec<Loop>],
}

/// A loop's turns on one rank, all found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FoundTurns {
    /// Begin of each turn, on the rank's counter.
    pub begins: Vec<u64>,
    /// Number and ticks of the turns of frequent kinds, and of all turns. A frequent kind has at
    /// least three turns and at least a tenth of all.
    pub frequent: [(u64, u64); 2],
}

/// A loop's turns on one rank, as far as they are read.
#[derive(Debug, Default)]
struct TurnsOfLoop {
    /// Begin of each turn, on the rank's counter.
    begins: Vec<u64>,
    /// Hash of the set of calls that the current turn has made so far.
    signature: u64,
    /// Number and ticks of the turns of each kind, without the last turn.
    kinds: FxHashMap<u64, (u64, u64)>,
}

impl TurnsOfLoop {
    fn frequent(&self) -> [(u64, u64); 2] {
        let add = |sum: (u64, u64), of: (u64, u64)| (sum.0 + of.0, sum.1 + of.1);
        let all = self.kinds.values().copied().fold((0, 0), add);
        let is_frequent = |of: &(u64, u64)| of.0 >= 3 && of.0 * 10 >= all.0;
        [self.kinds.values().copied().filter(is_frequent).fold((0, 0), add), all]
    }
}

#[derive(Debug)]
pub(super) struct TurnsOfRank<'l> {
    reader: SymbolReader<'l>,
    anchors: &'l [Loop],
    symbols: Numbering<Symbol>,
    /// For each symbol and loop the turn in which it was called last.
    called: Vec<u32>,
    loops: Vec<TurnsOfLoop>,
}

impl TurnsOfRank<'_> {
    /// The turns of each loop.
    pub fn finish(self) -> Vec<FoundTurns> {
        let loops = self.loops.into_iter();
        loops.map(|of| FoundTurns { frequent: of.frequent(), begins: of.begins }).collect()
    }
}

impl<'a, 'l> CallObserver<'a> for Turns<'l> {
    type OfRank = TurnsOfRank<'l>;

    fn begin_rank(&self, rank: RankView<'a>) -> TurnsOfRank<'l> {
        let anchors = &self.loops[rank.position];
        TurnsOfRank {
            reader: SymbolReader::new(self.lines, rank),
            anchors,
            symbols: Numbering::default(),
            called: Vec::new(),
            loops: anchors.iter().map(|_| TurnsOfLoop::default()).collect(),
        }
    }
}

impl<'a> RankObserver<'a> for TurnsOfRank<'_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        self.reader.begin_thread(thread);
    }

    fn span(&mut self, span: &Span) {
        let Some(symbol) = self.reader.symbol(span) else { return };
        let loops = self.anchors.len();
        let number = self.symbols.number(symbol) as usize;
        if number * loops == self.called.len() {
            self.called.resize((number + 1) * loops, 0);
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
                of.signature ^= mixed(number as u64 + 1);
            }
        }
    }

    fn end_thread(&mut self) {}
}

/// Mixes the bits of a number (SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
