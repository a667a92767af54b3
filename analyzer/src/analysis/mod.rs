//! Reads the events of a run once for all observers: every call of every rank, then every message and
//! collective operation.
//!
//! | file | its idea |
//! |---|---|
//! | `in_order` | the events of several ranks in order of time |
//! | `causal` | a timeline without messages that arrive before they are sent |
//! | `spans` | a thread's events with settled ends |
//! | `segments` | a thread's time without holes |
//! | `union` | how much of a selection intervals cover |
//!
//! There are two kinds of observers. A [`CallObserver`] sees the calls of each rank by itself: ranks in any
//! order, the threads of a rank one after the other. It gets back what it kept by rank, so that ranks can be
//! divided over threads. A [`MatchSink`] sees what matching finds. Tuples and options of observers are
//! observers.
//!
//! Opening a run reads the events before this (`trace::extent`), for extents and lifetimes. Whoever wants a part
//! of a thread ([`ThreadView::spans`]) or all ranks by time ([`Analysis::in_order`]) begins here, too.

mod causal;
mod in_order;
pub mod segments;
pub mod spans;
pub mod union;

use std::sync::OnceLock;

use rayon::prelude::*;
use trace_format::reader::{Event, Position, Thread};

use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{
    self, Access, ActiveOperation, CollectiveInstance, MatchSink, MatchingSummary, Message, Polls,
    Probed, Unmatched, Wants,
};
use crate::timeline::{GlobalTimeline, RankTime};
use crate::trace::{RankTrace, Run, ThreadExtent};

use spans::{PlainCall, Span, Spans, TakeSpans};

/// A run whose events observers read.
#[derive(Debug)]
pub struct Analysis<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its timeline.
    pub timeline: &'a GlobalTimeline,
    communicators: OnceLock<CommunicatorTable>,
}

/// The rank whose events are read.
#[derive(Debug, Clone, Copy)]
pub struct RankView<'a> {
    /// Its position in the run.
    pub position: usize,
    /// Its file and what is known of it.
    pub trace: &'a RankTrace,
    /// Its stretch and clock.
    pub time: &'a RankTime,
}

/// The thread whose events are read.
#[derive(Debug, Clone, Copy)]
pub struct ThreadView<'a> {
    /// Its rank.
    pub rank: RankView<'a>,
    /// Its chunks and totals.
    pub thread: &'a Thread,
    /// What the first pass found.
    pub extent: &'a ThreadExtent,
    /// Where it is known, on the rank's counter; `None` where that has no length.
    pub stretch: Option<(u64, u64)>,
}

impl<'a> RankView<'a> {
    /// Its threads, in the order of the file.
    pub fn threads(self) -> impl Iterator<Item = ThreadView<'a>> {
        let threads = self.trace.file.threads.iter().zip(&self.trace.threads);
        threads.map(move |(thread, extent)| {
            let stretch = self.time.thread_stretch(extent);
            ThreadView { rank: self, thread, extent, stretch }
        })
    }

    /// The thread of that number.
    pub fn thread(self, number: u32) -> Option<ThreadView<'a>> {
        self.threads().find(|view| view.thread.number == number)
    }
}

impl<'a> ThreadView<'a> {
    /// Its events with settled ends, from the first on, or from a position that [`Spans::position`] gave.
    pub fn spans(&self, from: Option<Position>) -> Spans<'a> {
        Spans::new(self, from)
    }

    /// Its kept events, each as one whole value, from the first on or from such a position.
    pub fn events(&self, from: Option<Position>) -> impl Iterator<Item = Event> + use<'a> {
        let (file, thread) = (&self.rank.trace.file, self.thread);
        let (before, behind) = match from {
            None => (file.events(thread), None),
            Some(position) => {
                let (events, before_totals) = file.events_from(thread, position);
                (events, before_totals.then(|| file.events_behind_totals(thread)))
            }
        };
        before.chain(behind.into_iter().flatten())
    }
}

/// Sees the calls of all ranks.
pub trait CallObserver<'a>: Sync {
    /// What sees those of one rank, and keeps what is wanted of it.
    type OfRank: RankObserver<'a> + Send;

    /// Begins with a rank.
    fn begin_rank(&self, rank: RankView<'a>) -> Self::OfRank;
}

/// Sees the calls of one rank, thread by thread, those of a thread in order of their begin.
pub trait RankObserver<'a> {
    /// Begins with a thread.
    fn begin_thread(&mut self, thread: ThreadView<'a>);

    /// Any event but a plain call.
    fn span(&mut self, span: &Span);

    /// A call that succeeded and ended before the thread's next began: most are so.
    #[inline]
    fn plain(&mut self, call: &PlainCall) {
        self.span(&call.span());
    }

    /// The thread has no more events.
    fn end_thread(&mut self);
}

/// Nobody.
impl<'a> CallObserver<'a> for () {
    type OfRank = ();

    fn begin_rank(&self, _rank: RankView<'a>) {}
}

impl<'a> RankObserver<'a> for () {
    fn begin_thread(&mut self, _thread: ThreadView<'a>) {}
    fn span(&mut self, _span: &Span) {}
    #[inline]
    fn plain(&mut self, _call: &PlainCall) {}
    fn end_thread(&mut self) {}
}

impl<'a, A: CallObserver<'a>> CallObserver<'a> for &A {
    type OfRank = A::OfRank;

    fn begin_rank(&self, rank: RankView<'a>) -> Self::OfRank {
        (*self).begin_rank(rank)
    }
}

/// Two observers are one.
impl<'a, A: CallObserver<'a>, B: CallObserver<'a>> CallObserver<'a> for (A, B) {
    type OfRank = (A::OfRank, B::OfRank);

    fn begin_rank(&self, rank: RankView<'a>) -> Self::OfRank {
        (self.0.begin_rank(rank), self.1.begin_rank(rank))
    }
}

impl<'a, A: RankObserver<'a>, B: RankObserver<'a>> RankObserver<'a> for (A, B) {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        self.0.begin_thread(thread);
        self.1.begin_thread(thread);
    }

    #[inline]
    fn span(&mut self, span: &Span) {
        self.0.span(span);
        self.1.span(span);
    }

    #[inline]
    fn plain(&mut self, call: &PlainCall) {
        self.0.plain(call);
        self.1.plain(call);
    }

    fn end_thread(&mut self) {
        self.0.end_thread();
        self.1.end_thread();
    }
}

/// An observer that only some ask for.
impl<'a, A: CallObserver<'a>> CallObserver<'a> for Option<A> {
    type OfRank = Option<A::OfRank>;

    fn begin_rank(&self, rank: RankView<'a>) -> Self::OfRank {
        self.as_ref().map(|observer| observer.begin_rank(rank))
    }
}

impl<'a, A: RankObserver<'a>> RankObserver<'a> for Option<A> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        if let Some(observer) = self {
            observer.begin_thread(thread);
        }
    }

    #[inline]
    fn span(&mut self, span: &Span) {
        if let Some(observer) = self {
            observer.span(span);
        }
    }

    #[inline]
    fn plain(&mut self, call: &PlainCall) {
        if let Some(observer) = self {
            observer.plain(call);
        }
    }

    fn end_thread(&mut self) {
        if let Some(observer) = self {
            observer.end_thread();
        }
    }
}

/// Two observers of matches side by side.
impl<A: MatchSink, B: MatchSink> MatchSink for (A, B) {
    fn message(&mut self, message: &Message) {
        self.0.message(message);
        self.1.message(message);
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        self.0.collective(instance);
        self.1.collective(instance);
    }

    fn unmatched(&mut self, unmatched: &Unmatched) {
        self.0.unmatched(unmatched);
        self.1.unmatched(unmatched);
    }

    fn active(&mut self, operation: &ActiveOperation) {
        self.0.active(operation);
        self.1.active(operation);
    }

    fn access(&mut self, access: &Access) {
        self.0.access(access);
        self.1.access(access);
    }

    fn polls(&mut self, polls: &Polls) {
        self.0.polls(polls);
        self.1.polls(polls);
    }

    fn probed(&mut self, probed: &Probed) {
        self.0.probed(probed);
        self.1.probed(probed);
    }

    fn together(&mut self, instance: &CollectiveInstance) {
        self.0.together(instance);
        self.1.together(instance);
    }

    fn wants(&self) -> Wants {
        self.0.wants().or(self.1.wants())
    }
}

/// An observer of matches that only some ask for.
impl<A: MatchSink> MatchSink for Option<A> {
    fn message(&mut self, message: &Message) {
        if let Some(sink) = self {
            sink.message(message);
        }
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        if let Some(sink) = self {
            sink.collective(instance);
        }
    }

    fn unmatched(&mut self, unmatched: &Unmatched) {
        if let Some(sink) = self {
            sink.unmatched(unmatched);
        }
    }

    fn active(&mut self, operation: &ActiveOperation) {
        if let Some(sink) = self {
            sink.active(operation);
        }
    }

    fn access(&mut self, access: &Access) {
        if let Some(sink) = self {
            sink.access(access);
        }
    }

    fn polls(&mut self, polls: &Polls) {
        if let Some(sink) = self {
            sink.polls(polls);
        }
    }

    fn probed(&mut self, probed: &Probed) {
        if let Some(sink) = self {
            sink.probed(probed);
        }
    }

    fn together(&mut self, instance: &CollectiveInstance) {
        if let Some(sink) = self {
            sink.together(instance);
        }
    }

    fn wants(&self) -> Wants {
        self.as_ref().map(MatchSink::wants).unwrap_or_default()
    }
}

/// Hands an observer the spans of a thread.
struct Handing<'o, O>(&'o mut O);

impl<'a, O: RankObserver<'a>> TakeSpans for Handing<'_, O> {
    #[inline]
    fn span(&mut self, span: Span) -> bool {
        self.0.span(&span);
        true
    }

    #[inline]
    fn plain(&mut self, call: &PlainCall) -> bool {
        self.0.plain(call);
        true
    }
}

impl<'a> Analysis<'a> {
    /// Of a run on its timeline.
    pub fn of(run: &'a Run, timeline: &'a GlobalTimeline) -> Self {
        Self { run, timeline, communicators: OnceLock::new() }
    }

    /// The run's communicators.
    pub fn communicators(&self) -> &CommunicatorTable {
        self.communicators.get_or_init(|| CommunicatorTable::new(self.run))
    }

    /// A rank by its position in the run.
    pub fn rank(&self, position: usize) -> RankView<'a> {
        let (trace, time) = (&self.run.ranks[position], &self.timeline.ranks[position]);
        RankView { position, trace, time }
    }

    /// Reads the calls of all ranks once. Returns what the observer kept of each, in the order of the ranks.
    pub fn calls<O: CallObserver<'a>>(&self, observer: &O) -> Vec<O::OfRank> {
        let of_rank = |position: usize| {
            let rank = self.rank(position);
            let mut observer = observer.begin_rank(rank);
            for thread in rank.threads() {
                observer.begin_thread(thread);
                thread.spans(None).hand_on(&mut Handing(&mut observer));
                observer.end_thread();
            }
            observer
        };
        (0..self.run.ranks.len()).into_par_iter().map(of_rank).collect()
    }

    /// Reads the events of all ranks once, each as one whole value: more than a [`CallObserver`] is told, at
    /// several times the price. `begin` makes what is kept of a rank, `None` where it is not to be read;
    /// `event` adds an event of the thread at a position. Returns what was kept, in the order of the ranks.
    pub fn events<T: Send>(
        &self,
        begin: impl Fn(RankView<'a>) -> Option<T> + Sync,
        event: impl Fn(&mut T, usize, &Event) + Sync,
    ) -> Vec<T> {
        let of_rank = |position: usize| {
            let rank = self.rank(position);
            let mut kept = begin(rank)?;
            for (at, thread) in rank.threads().enumerate() {
                thread.events(None).for_each(|e| event(&mut kept, at, &e));
            }
            Some(kept)
        };
        (0..self.run.ranks.len()).into_par_iter().filter_map(of_rank).collect()
    }

    /// As [`Analysis::matches`], by one thread, for an observer to whom the order matters: messages come as
    /// they are certain, roughly by completion, always the same for the same files.
    pub fn matches_in_order(&self, sink: &mut dyn MatchSink) -> MatchingSummary {
        matching::match_run(self.run, self.timeline, self.communicators(), sink)
    }

    /// Matches all messages and collective operations once. Returns one observer for each share of the run,
    /// for the caller to merge, or `None` when no rank recorded what its calls say.
    pub fn matches<S: MatchSink + Send>(
        &self,
        new_sink: impl Fn() -> S + Sync,
    ) -> Option<(MatchingSummary, Vec<S>)> {
        if !matching::is_possible(self.run) {
            return None;
        }
        let (run, timeline, communicators) = (self.run, self.timeline, self.communicators());
        let threads = rayon::current_num_threads();
        let shares = matching::match_in_shares(run, timeline, communicators, threads, new_sink)?;
        let mut summary = MatchingSummary::default();
        let sinks = shares.into_iter().map(|(of_share, sink)| {
            summary.add(&of_share);
            sink
        });
        let sinks = sinks.collect();
        Some((summary, sinks))
    }
}
