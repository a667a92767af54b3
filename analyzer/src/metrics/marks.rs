//! Finds the bounds of selections on each rank, in one pass for all: occurrences of regions, and
//! the calls that bound windows.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::analysis::spans::{PlainCall, Span, SpanKind};
use crate::analysis::union::merge_overlapping;
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};

use super::selection::{Bound, Selection};

/// What has to be found in the events for a selection.
#[derive(Debug, Clone, Default)]
pub(super) struct Targets {
    /// The name of a region.
    region: Option<String>,
    /// The calls that bound a window: function, and n for its n-th call.
    calls: [Option<(String, u64)>; 2],
}

impl Targets {
    /// The needs of a selection, which combines at most one region and one window.
    pub fn for_selection(selection: &Selection) -> Self {
        let call = |bound: &Bound| match bound {
            Bound::Seconds(_) => None,
            Bound::Occurrence { function, number } => Some((function.clone(), *number)),
        };
        let mut targets = Self::default();
        for part in selection.parts() {
            match part {
                Selection::Region(name) => targets.region = Some(name.clone()),
                Selection::Window { from, to } => targets.calls = [call(from), call(to)],
                Selection::Whole | Selection::Iteration(_) | Selection::All(_) => {}
            }
        }
        targets
    }

    /// Whether the events need not be read.
    pub fn is_empty(&self) -> bool {
        self.region.is_none() && self.calls.iter().all(Option::is_none)
    }
}

/// What was found for a selection on a rank.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Found {
    /// The outermost occurrences of its region, clipped to the rank's stretch, ascending. One that
    /// never ends lasts to the rank's end. Overlapping occurrences of different threads are merged.
    pub occurrences: Vec<(u64, u64)>,
    /// The calls that bound its window.
    pub calls: [Option<Span>; 2],
}

/// Finds the bounds of selections.
pub(super) struct Marks<'s> {
    /// What to find, for each selection.
    pub targets: &'s [Targets],
}

/// The search on one rank.
pub(super) struct RankMarks<'a> {
    rank: RankView<'a>,
    each: Vec<SelectionMarks>,
    /// Functions whose calls bound a window.
    functions: BTreeSet<u16>,
}

/// The search for one selection.
struct SelectionMarks {
    regions: BTreeSet<u32>,
    /// How many of them the thread is in.
    depth: u64,
    /// Since when.
    begin_ticks: u64,
    occurrences: Vec<(u64, u64)>,
    calls: [Option<NthCall>; 2],
}

/// The n-th call of a function, over the threads of a rank.
struct NthCall {
    function: u16,
    nth: usize,
    /// Calls seen so far, on a rank with one thread.
    before: usize,
    /// The call itself on a rank with one thread, else the earliest `nth` calls so far.
    found: Vec<Span>,
}

impl NthCall {
    fn take(&mut self, span: &Span, threads: usize) {
        if threads == 1 {
            // Calls come in order.
            if self.before + 1 == self.nth {
                self.found.push(*span);
            }
            self.before += 1;
            return;
        }
        // Threads are read one after another, so any of a thread's first n calls may be the n-th of
        // all.
        let at = self.found.partition_point(|other| other.begin_ticks <= span.begin_ticks);
        if at < self.nth {
            self.found.insert(at, *span);
            self.found.truncate(self.nth);
        }
    }

    fn finish(self, threads: usize) -> Option<Span> {
        match threads {
            1 => self.found.first().copied(),
            _ => self.found.get(self.nth.checked_sub(1)?).copied(),
        }
    }
}

impl<'a> CallObserver<'a> for Marks<'_> {
    type OfRank = RankMarks<'a>;

    fn begin_rank(&self, rank: RankView<'a>) -> RankMarks<'a> {
        let of = |targets: &Targets| {
            let named = rank.trace.facts.regions.iter();
            let matches_name = |name: &String| targets.region.as_ref() == Some(name);
            let call = |targets: &Option<(String, u64)>| {
                let (name, nth) = targets.as_ref()?;
                Some(NthCall {
                    function: rank.trace.file.function_number(name)?,
                    nth: usize::try_from(*nth).unwrap_or(usize::MAX),
                    before: 0,
                    found: Vec::new(),
                })
            };
            SelectionMarks {
                regions: named.filter(|(_, name)| matches_name(name)).map(|(id, _)| *id).collect(),
                depth: 0,
                begin_ticks: 0,
                occurrences: Vec::new(),
                calls: [call(&targets.calls[0]), call(&targets.calls[1])],
            }
        };
        let each: Vec<SelectionMarks> = self.targets.iter().map(of).collect();
        let calls = each.iter().flat_map(|of| of.calls.iter().flatten());
        let functions = calls.map(|call| call.function).collect();
        RankMarks { rank, each, functions }
    }
}

impl SelectionMarks {
    fn close(&mut self, end_ticks: u64, rank: &RankView) {
        let clip = |ticks: u64| ticks.clamp(rank.time.begin_ticks, rank.time.end_ticks);
        let (begin, end) = (clip(self.begin_ticks), clip(end_ticks));
        if end > begin {
            self.occurrences.push((begin, end));
        }
    }

    fn mark(&mut self, span: &Span, rank: &RankView) {
        match span.kind {
            SpanKind::RegionBegin(id) if self.regions.contains(&id) => {
                if self.depth == 0 {
                    self.begin_ticks = span.begin_ticks;
                }
                self.depth += 1;
            }
            SpanKind::RegionEnd(id) if self.regions.contains(&id) && self.depth > 0 => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.close(span.begin_ticks, rank);
                }
            }
            SpanKind::Call(function) => {
                let threads = rank.trace.file.threads.len();
                let calls = self.calls.iter_mut().flatten();
                calls.filter(|c| c.function == function).for_each(|c| c.take(span, threads));
            }
            _ => {}
        }
    }
}

impl<'a> RankObserver<'a> for RankMarks<'a> {
    fn begin_thread(&mut self, _thread: ThreadView<'a>) {
        self.each.iter_mut().for_each(|of| of.depth = 0);
    }

    fn span(&mut self, span: &Span) {
        self.each.iter_mut().for_each(|of| of.mark(span, &self.rank));
    }

    #[inline]
    fn plain(&mut self, call: &PlainCall) {
        if !self.functions.is_empty() && self.functions.contains(&call.function()) {
            self.span(&call.span());
        }
    }

    fn end_thread(&mut self) {
        for of in self.each.iter_mut().filter(|of| of.depth > 0) {
            of.close(self.rank.time.end_ticks, &self.rank);
        }
    }
}

impl RankMarks<'_> {
    /// What was found for each selection.
    pub fn finish(self) -> Vec<Found> {
        let threads = self.rank.trace.file.threads.len();
        let found = self.each.into_iter().map(|of| {
            let mut occurrences = of.occurrences;
            merge_overlapping(&mut occurrences);
            Found { occurrences, calls: of.calls.map(|call| call?.finish(threads)) }
        });
        found.collect()
    }
}
