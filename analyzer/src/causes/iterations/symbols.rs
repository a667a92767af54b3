//! What each rank calls, how often, and from when to when: where loops may be.

use rustc_hash::FxHashMap;

use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::{Class, Meaning};

use crate::analysis::spans::{Span, SpanKind};
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};
use crate::trace::RankTrace;

use super::super::contexts::LocalSite;
use super::super::lines::Lines;

/// A call by its rank's numbers: function, and the address that it returns to; without one how large its message
/// is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Symbol(u16, u64);

impl Symbol {
    /// The call as a site.
    pub fn of_site(self) -> LocalSite {
        (self.0, if self.1 & BY_SIZE == 0 { self.1 } else { 0 })
    }
}

/// Of calls without an address: the power of two below their bytes.
const BY_SIZE: u64 = 1 << 63;

/// Functions whose calls tell a loop's body: those that communicate. How often a test finds something is chance.
#[derive(Debug)]
pub(super) struct Telling(Vec<bool>);

impl Telling {
    /// Of a rank's file.
    pub fn new(trace: &RankTrace) -> Self {
        let tells = |name: &String| {
            let meaning = Meaning::of(name);
            let communicates = matches!(
                meaning.class,
                Class::PointToPoint
                    | Class::Collective
                    | Class::Completion
                    | Class::OneSided
                    | Class::Io
            );
            communicates && !meaning.polls
        };
        Self(trace.file.function_names().iter().map(tells).collect())
    }
}

/// The symbol of a call that tells something; `None` for anything else.
#[inline]
pub(super) fn symbol_of(span: &Span, telling: &Telling) -> Option<Symbol> {
    let SpanKind::Call(function) = span.kind else { return None };
    let index = usize::from(function.wrapping_sub(FIRST_FUNCTION));
    if !telling.0.get(index).copied().unwrap_or(false) {
        return None;
    }
    let by_size = || BY_SIZE | u64::from(64 - span.bytes.leading_zeros());
    Some(Symbol(function, span.site.map_or_else(by_size, |(address, _)| address)))
}

/// Calls that are made at least so often may be a loop's.
const LEAST_TURNS: u64 = 3;

/// Calls of one symbol, on its rank's counter.
#[derive(Debug, Clone, Copy)]
struct Calls {
    count: u64,
    first: u64,
    /// Begin and end of the last one.
    last: (u64, u64),
}

/// Calls that are made equally often, at the same time: a loop, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loop {
    /// How often.
    pub turns: u64,
    /// Begin of the first of the calls, end of the last, on the rank's counter.
    pub stretch: (u64, u64),
    /// The call that comes first.
    pub anchor: Symbol,
}

/// Sees what the first thread of each rank calls.
#[derive(Debug)]
pub(super) struct Symbols<'l> {
    pub lines: &'l Lines,
}

/// Of one rank.
#[derive(Debug)]
pub(super) struct SymbolsOfRank<'l> {
    lines: &'l Lines,
    position: usize,
    telling: Telling,
    is_first_thread: bool,
    calls: FxHashMap<Symbol, Calls>,
}

impl SymbolsOfRank<'_> {
    /// The loops that there may be, those of equally many turns in order of time.
    pub fn loops(&self) -> Vec<Loop> {
        let mut calls: Vec<(&Symbol, &Calls)> =
            self.calls.iter().filter(|(_, calls)| calls.count >= LEAST_TURNS).collect();
        calls.sort_unstable_by_key(|(symbol, calls)| (calls.count, calls.first, **symbol));
        let mut loops: Vec<Loop> = Vec::new();
        let mut last_turn = 0;
        for (symbol, calls) in calls {
            match loops.last_mut() {
                Some(known) if known.turns == calls.count && calls.first <= last_turn => {
                    known.stretch.1 = known.stretch.1.max(calls.last.1);
                    last_turn = last_turn.max(calls.last.0);
                }
                _ => {
                    let stretch = (calls.first, calls.last.1);
                    loops.push(Loop { turns: calls.count, stretch, anchor: *symbol });
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
            lines: self.lines,
            position: rank.position,
            telling: Telling::new(rank.trace),
            is_first_thread: false,
            calls: FxHashMap::default(),
        }
    }
}

impl<'a> RankObserver<'a> for SymbolsOfRank<'_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        let line = self.lines.of(self.position, thread.thread.number);
        self.is_first_thread = line == Some(self.lines.first_of(self.position));
    }

    fn span(&mut self, span: &Span) {
        let Some(symbol) = symbol_of(span, &self.telling).filter(|_| self.is_first_thread) else {
            return;
        };
        let (begin, last) = (span.begin_ticks, (span.begin_ticks, span.end_ticks));
        let calls = self.calls.entry(symbol).or_insert(Calls { count: 0, first: begin, last });
        calls.count += 1;
        calls.last = last;
    }

    fn end_thread(&mut self) {}
}
