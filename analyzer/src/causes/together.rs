//! What the threads of a rank did together: one sequence of stretches for a rank with several.
//!
//! A rank computes while any of its threads computes. It waits while none computes and at least one
//! waits, transfers in the rest of the time that any is inside MPI, and is in the recorder in what
//! is left. If several threads do the same, the moment is the first one's, with its context and
//! wait.

use std::collections::{BTreeMap, VecDeque};

use crate::analysis::RankView;
use crate::analysis::segments::Functions;
use crate::analysis::spans::Spans;

use super::contexts::{
    LocalContext, LocalContexts, RECORDER, TOTALS, WAITING, WAITING_FOR_UNKNOWN,
};
use super::integer_timeline::IntegerTimeline;
use super::line_contexts::{LineContexts, SpanReader, Stretch};
use super::lines::Lines;
use super::local_site::ReplacedModules;
use super::profile::{ProfileBuilder, Together};
use super::waits::Waits;

/// What a rank does, in order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Does {
    Compute,
    Wait,
    Transfer,
    Record,
}

impl Does {
    fn in_context(context: LocalContext) -> Self {
        match context {
            LocalContext::Region(_) | LocalContext::Between(..) => Self::Compute,
            LocalContext::Fixed(WAITING | WAITING_FOR_UNKNOWN) => Self::Wait,
            LocalContext::Fixed(RECORDER) => Self::Record,
            LocalContext::Fixed(TOTALS..)
            | LocalContext::Transfer(_)
            | LocalContext::OnPath(..) => Self::Transfer,
        }
    }
}

/// What was found of the whole run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis<'c> {
    pub clock: &'c IntegerTimeline<'c>,
    pub lines: &'c Lines,
    pub waits: &'c Waits,
}

/// A thread whose stretches are read as they are needed.
#[derive(Debug)]
struct Thread<'a> {
    spans: Option<Spans<'a>>,
    contexts: LineContexts,
    end: i64,
    /// Stretches that are known, after the current one.
    known: VecDeque<Stretch>,
    /// Begin of the current stretch, the stretch, and what the thread does in it.
    current: Option<(i64, Stretch, Does)>,
    /// End of the last stretch.
    at: i64,
}

impl Thread<'_> {
    fn advance(&mut self, reader: &SpanReader, contexts: &mut LocalContexts) {
        while self.known.is_empty()
            && let Some(spans) = &mut self.spans
        {
            let known = &mut self.known;
            let mut take = |stretch| known.push_back(stretch);
            match spans.next() {
                Some(span) => {
                    self.contexts.span(&span, reader, contexts, &mut take);
                }
                None => {
                    self.contexts.finish(self.end, contexts, &mut take);
                    self.spans = None;
                }
            }
        }
        self.current = self.known.pop_front().map(|stretch| {
            let from = std::mem::replace(&mut self.at, stretch.to);
            (from, stretch, Does::in_context(contexts.get(stretch.context)))
        });
    }
}

/// Passes on what the threads of a rank do together, in order of time: begin, stretch, and what the
/// rank does in it. A thread counts from its first event on, because when it was created is not
/// recorded.
pub(super) fn for_each_stretch(
    rank: RankView<'_>,
    axis: Axis,
    contexts: &mut LocalContexts,
    mut take: impl FnMut(i64, Stretch, Does),
) {
    let Axis { clock, lines, waits } = axis;
    let position = rank.position;
    let functions = Functions::new(rank.trace);
    let reader =
        SpanReader { clock, position, functions, replaced: ReplacedModules::new(rank.trace) };
    let (mut at, end) = lines.stretch_of(position);
    let thread = |number: u32, (from, to): (i64, i64), spans| {
        let line = lines.number_of(position, number);
        let of_line = line.map_or(&[][..], |line| waits.on_line(line));
        let waits = (line.map_or(0, |line| waits.first_of(line))..).zip(of_line.iter().copied());
        let contexts = LineContexts::new((from, to), waits);
        Thread { spans, contexts, end: to, known: VecDeque::new(), current: None, at: from }
    };
    let mut threads: Vec<Thread> = Vec::new();
    if rank.thread(0).is_none() {
        let mut first = thread(0, (at, end), None);
        first.contexts.finish(end, contexts, &mut |stretch| first.known.push_back(stretch));
        threads.push(first);
    }
    for view in rank.threads() {
        let Some((from, to)) = view.stretch else { continue };
        let from = clock.at(position, from);
        let stretch = (from, clock.at(position, to).max(from));
        threads.push(thread(view.thread.number, stretch, Some(view.spans(None))));
    }
    threads.iter_mut().for_each(|thread| thread.advance(&reader, contexts));
    while at < end {
        let mut until = end;
        let mut first: Option<(Does, Stretch)> = None;
        for thread in &mut threads {
            while thread.current.is_some_and(|(_, stretch, _)| stretch.to <= at) {
                thread.advance(&reader, contexts);
            }
            let Some((from, stretch, does)) = thread.current else { continue };
            if from > at {
                until = until.min(from);
                continue;
            }
            until = until.min(stretch.to);
            if first.is_none_or(|(before, _)| does < before) {
                first = Some((does, stretch));
            }
        }
        if let Some((does, stretch)) = first {
            take(at, Stretch { to: until, ..stretch }, does);
        }
        at = until;
    }
}

impl Together {
    /// The profile of a rank with several threads, cut at the given moments. Its contexts are added
    /// to those of the rank.
    pub fn new(
        rank: RankView<'_>,
        axis: Axis,
        moments: Vec<i64>,
        contexts: &mut LocalContexts,
    ) -> Self {
        let stretch = axis.lines.stretch_of(rank.position);
        let mut profile = ProfileBuilder::new(stretch, moments);
        // Those that other threads hide altogether are listed, too.
        let of_rank = axis.lines.of_rank(rank.position).flat_map(|line| {
            let all = (axis.waits.first_of(line)..).zip(axis.waits.on_line(line));
            all.filter(|(_, wait)| !wait.state.is_at_the_ends()).map(|(number, _)| (number, 0))
        });
        let mut waited: BTreeMap<u32, i64> = of_rank.collect();
        for_each_stretch(rank, axis, contexts, |from, stretch, _| {
            profile.add(stretch.context, stretch.to);
            if let Some(wait) = stretch.wait {
                *waited.entry(wait).or_default() += stretch.to - from;
            }
        });
        Self { profile: profile.finish(), waited: waited.into_iter().collect() }
    }
}
