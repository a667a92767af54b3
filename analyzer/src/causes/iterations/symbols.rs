//! Counts each rank's calls and notes their first and last, to find possible loops.

use serde::{Deserialize, Serialize};

use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::Meaning;

use crate::analysis::loop_calls::may_turn_a_loop;
use crate::analysis::spans::{Span, SpanKind};
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};
use crate::trace::RankTrace;

use super::super::lines::Lines;
use super::super::local_site::{LocalSite, ReplacedModules};
use super::super::numbering::Numbering;

/// A call site of its rank. If the address is unknown, the size of the call's message takes its
/// place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(in crate::causes) struct Symbol(LocalSite);

impl Symbol {
    /// The call as a site.
    pub fn site(self) -> LocalSite {
        let address = if self.0.address & BY_SIZE == 0 { self.0.address } else { 0 };
        LocalSite { address, ..self.0 }
    }
}

/// Marks calls without an address, which have the power of two below their bytes instead.
const BY_SIZE: u64 = 1 << 63;

/// Marks the functions by which loops are recognised.
#[derive(Debug)]
pub(super) struct LoopFunctions(Vec<bool>);

impl LoopFunctions {
    /// The functions of one rank's file.
    pub fn new(trace: &RankTrace) -> Self {
        let names = trace.file.function_names().iter();
        Self(names.map(|name| may_turn_a_loop(Meaning::by_name(name))).collect())
    }
}

/// The symbol of a call of such a function; `None` for anything else.
#[inline]
pub(super) fn symbol_of(
    span: &Span,
    loop_functions: &LoopFunctions,
    replaced: &ReplacedModules,
) -> Option<Symbol> {
    let SpanKind::Call(function) = span.kind else { return None };
    let index = usize::from(function.wrapping_sub(FIRST_FUNCTION));
    if !loop_functions.0.get(index).copied().unwrap_or(false) {
        return None;
    }
    let by_size = || BY_SIZE | u64::from(64 - span.bytes.leading_zeros());
    let address = span.site.map_or_else(by_size, |(address, _)| address);
    Some(Symbol(replaced.site(function, address, span.begin_ticks)))
}

/// Recognises the symbols of one rank's first thread.
#[derive(Debug)]
pub(super) struct SymbolReader<'l> {
    lines: &'l Lines,
    position: usize,
    loop_functions: LoopFunctions,
    replaced: ReplacedModules,
    is_first_thread: bool,
}

impl<'l> SymbolReader<'l> {
    pub fn new(lines: &'l Lines, rank: RankView<'_>) -> Self {
        Self {
            lines,
            position: rank.position,
            loop_functions: LoopFunctions::new(rank.trace),
            replaced: ReplacedModules::new(rank.trace),
            is_first_thread: false,
        }
    }

    /// The next spans are this thread's.
    pub fn begin_thread(&mut self, thread: ThreadView<'_>) {
        let line = self.lines.number_of(self.position, thread.thread.number);
        self.is_first_thread = line == Some(self.lines.first_of(self.position));
    }

    /// The symbol of a call by which loops are recognised; `None` for anything else, and on other threads.
    #[inline]
    pub fn symbol(&self, span: &Span) -> Option<Symbol> {
        if !self.is_first_thread {
            return None;
        }
        symbol_of(span, &self.loop_functions, &self.replaced)
    }
}

/// Least number of turns of a loop.
const MIN_TURNS: u64 = 3;

/// Calls of one symbol; times are on the rank's counter.
#[derive(Debug, Clone, Copy)]
struct Calls {
    count: u64,
    /// Numbers of the first and the last one among the rank's calls of such functions.
    numbers: (u64, u64),
    first: u64,
    /// Begin and end of the last one.
    last: (u64, u64),
}

/// Calls that occur equally often during the same time: possibly a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::causes) struct Loop {
    /// How often they occur.
    pub turns: u64,
    /// Begin of the first call and end of the last, on the rank's counter.
    pub stretch: (u64, u64),
    /// Numbers of the first and the last call among the rank's calls, and how many these are.
    pub calls: (u64, u64),
    pub of_calls: u64,
    /// The call that occurs first.
    pub anchor: Symbol,
}

/// Observes the calls of each rank's first thread.
#[derive(Debug)]
pub(in crate::causes) struct Symbols<'l> {
    pub lines: &'l Lines,
}

#[derive(Debug)]
pub(in crate::causes) struct SymbolsOfRank<'l> {
    reader: SymbolReader<'l>,
    symbols: Numbering<Symbol>,
    /// By number of the symbol.
    calls: Vec<Calls>,
    /// Number of calls so far.
    count: u64,
}

impl SymbolsOfRank<'_> {
    /// The possible loops; those with equally many turns are in order of time.
    pub fn loops(&self) -> Vec<Loop> {
        let calls = self.symbols.all().iter().zip(&self.calls);
        let mut calls: Vec<(&Symbol, &Calls)> =
            calls.filter(|(_, calls)| calls.count >= MIN_TURNS).collect();
        calls.sort_unstable_by_key(|(symbol, calls)| (calls.count, calls.first, **symbol));
        let mut loops: Vec<Loop> = Vec::new();
        let mut last_turn = 0;
        for (symbol, calls) in calls {
            match loops.last_mut() {
                Some(known) if known.turns == calls.count && calls.first <= last_turn => {
                    known.stretch.1 = known.stretch.1.max(calls.last.1);
                    known.calls.1 = known.calls.1.max(calls.numbers.1);
                    last_turn = last_turn.max(calls.last.0);
                }
                _ => {
                    let stretch = (calls.first, calls.last.1);
                    loops.push(Loop {
                        turns: calls.count,
                        stretch,
                        calls: calls.numbers,
                        of_calls: self.count,
                        anchor: *symbol,
                    });
                    last_turn = calls.last.0;
                }
            }
        }
        loops
    }
}

impl<'a, 'l> CallObserver<'a> for Symbols<'l> {
    type OfRank = SymbolsOfRank<'l>;

    fn begin_rank(&self, rank: RankView<'a>) -> SymbolsOfRank<'l> {
        SymbolsOfRank {
            reader: SymbolReader::new(self.lines, rank),
            symbols: Numbering::default(),
            calls: Vec::new(),
            count: 0,
        }
    }
}

impl<'a> RankObserver<'a> for SymbolsOfRank<'_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        self.reader.begin_thread(thread);
    }

    fn span(&mut self, span: &Span) {
        let Some(symbol) = self.reader.symbol(span) else { return };
        let (begin, last) = (span.begin_ticks, (span.begin_ticks, span.end_ticks));
        let number = self.symbols.number(symbol) as usize;
        if number == self.calls.len() {
            let numbers = (self.count, self.count);
            self.calls.push(Calls { count: 0, numbers, first: begin, last });
        }
        let calls = &mut self.calls[number];
        calls.count += 1;
        calls.last = last;
        calls.numbers.1 = self.count;
        self.count += 1;
    }

    fn end_thread(&mut self) {}
}
