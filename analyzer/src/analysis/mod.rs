//! Reads the events of a run once for all observers: every call of every rank, then every message
//! and collective operation.
//!
//! | file | what it does |
//! |---|---|
//! | `in_order` | orders the events of several ranks by time |
//! | `causal` | corrects a timeline on which messages arrive before they are sent |
//! | `loop_calls` | by which calls loops are recognised |
//! | `spans` | resolves the ends of a thread's events |
//! | `segments` | divides a thread's time without gaps |
//! | `union` | sums how much of a selection intervals cover |
//!
//! There are two kinds of observers. A [`CallObserver`] sees the calls of each rank separately:
//! ranks in any order, and the threads of a rank one after another. It produces one result per
//! rank, so that ranks can be divided among threads. A [`MatchSink`] sees what matching finds.
//! Tuples and options of observers are observers.
//!
//! A [`ReadsAlong`] is both, in the passes that somebody else makes.
//!
//! Opening a run has already read the events once (`trace::extent`), for extents and lifetimes.
//! Code that needs a part of a thread ([`ThreadView::spans`]) or all ranks ordered by time
//! ([`Analysis::in_order`]) also starts here.

mod causal;
mod in_order;
pub mod loop_calls;
pub mod segments;
pub mod spans;
pub mod union;
mod views;

use std::ops::Range;
use std::sync::OnceLock;

use rayon::prelude::*;
use trace_format::reader::{Event, Position};

use crate::processes::Processes;
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{self, MatchSink, MatchingSummary, ProcessShare};
use crate::trace::Run;

use spans::{PlainCall, Span, SpanObserver, Spans};
pub use views::{Analysis, RankView, ThreadView};

impl<'a> RankView<'a> {
    /// Its threads, in the order of the file.
    pub fn threads(self) -> impl Iterator<Item = ThreadView<'a>> {
        let threads = self.trace.file.threads.iter().zip(&self.trace.threads);
        threads.map(move |(thread, extent)| {
            let stretch = self.time.thread_stretch(extent);
            ThreadView { rank: self, thread, extent, stretch }
        })
    }

    pub fn thread(self, number: u32) -> Option<ThreadView<'a>> {
        self.threads().find(|view| view.thread.number == number)
    }
}

impl<'a> ThreadView<'a> {
    /// Its events as spans, from the first or from a position given by [`Spans::position`].
    pub fn spans(&self, from: Option<Position>) -> Spans<'a> {
        Spans::new(self, from)
    }

    /// Its kept events in full, from the first or from such a position.
    pub fn events(&self, from: Option<Position>) -> impl Iterator<Item = Event> + use<'a> {
        let (file, thread) = (&self.rank.trace.file, self.thread);
        let (before, after) = match from {
            None => (file.events(thread), None),
            Some(position) => {
                let (events, before_totals) = file.events_from(thread, position);
                (events, before_totals.then(|| file.events_behind_totals(thread)))
            }
        };
        before.chain(after.into_iter().flatten())
    }
}

/// Observes the calls of all ranks.
pub trait CallObserver<'a>: Sync {
    /// Observes the calls of one rank, and is its result.
    type OfRank: RankObserver<'a> + Send;

    fn begin_rank(&self, rank: RankView<'a>) -> Self::OfRank;
}

/// Observes the calls of one rank, thread by thread, and within a thread in order of their start.
pub trait RankObserver<'a> {
    fn begin_thread(&mut self, thread: ThreadView<'a>);

    /// Any event but a plain call.
    fn span(&mut self, span: &Span);

    /// A call that succeeded and ended before the thread's next call began, as most calls do.
    #[inline]
    fn plain(&mut self, call: &PlainCall) {
        self.span(&call.span());
    }

    /// The thread has no more events.
    fn end_thread(&mut self);
}

/// The observer that ignores everything.
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

/// Two observers as one.
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

/// Somebody who needs the calls and what matching finds, but makes no passes of their own.
pub trait ReadsAlong<'a>: Sync {
    type Calls: CallObserver<'a>;
    /// What is kept of a rank's calls.
    type OfRank: Send;
    type Sink: MatchSink + Send;

    /// Observes the calls.
    fn calls(&self) -> Self::Calls;
    /// What is kept of a rank's observer.
    fn of_rank(&self, calls: <Self::Calls as CallObserver<'a>>::OfRank) -> Self::OfRank;
    /// Takes what matching finds in a share of the run; `None` if nothing of it is needed.
    fn sink(&self) -> Option<Self::Sink>;
}

/// What was read along.
pub struct ReadTogether<'a, R: ReadsAlong<'a>> {
    /// Of each rank whose calls were read here.
    pub of_ranks: Vec<R::OfRank>,
    /// Of each share that was matched here; `None` if no rank recorded the arguments of calls.
    pub sinks: Option<Vec<R::Sink>>,
}

/// Nobody reads along.
impl<'a> ReadsAlong<'a> for () {
    type Calls = ();
    type OfRank = ();
    type Sink = ();

    fn calls(&self) {}
    fn of_rank(&self, (): ()) {}
    fn sink(&self) -> Option<Self::Sink> {
        None
    }
}

/// By reference.
impl<'a, A: ReadsAlong<'a>> ReadsAlong<'a> for &A {
    type Calls = A::Calls;
    type OfRank = A::OfRank;
    type Sink = A::Sink;

    fn calls(&self) -> Self::Calls {
        (*self).calls()
    }

    fn of_rank(&self, calls: <Self::Calls as CallObserver<'a>>::OfRank) -> Self::OfRank {
        (*self).of_rank(calls)
    }

    fn sink(&self) -> Option<Self::Sink> {
        (*self).sink()
    }
}

/// Two read along.
impl<'a, A: ReadsAlong<'a>, B: ReadsAlong<'a>> ReadsAlong<'a> for (A, B) {
    type Calls = (A::Calls, B::Calls);
    type OfRank = (A::OfRank, B::OfRank);
    type Sink = (Option<A::Sink>, Option<B::Sink>);

    fn calls(&self) -> Self::Calls {
        (self.0.calls(), self.1.calls())
    }

    fn of_rank(&self, (a, b): <Self::Calls as CallObserver<'a>>::OfRank) -> Self::OfRank {
        (self.0.of_rank(a), self.1.of_rank(b))
    }

    fn sink(&self) -> Option<Self::Sink> {
        let sinks = (self.0.sink(), self.1.sink());
        (sinks.0.is_some() || sinks.1.is_some()).then_some(sinks)
    }
}

impl<'a, A: ReadsAlong<'a>, B: ReadsAlong<'a>> ReadTogether<'a, (A, B)> {
    /// What each of the two has read.
    pub fn apart(self) -> (ReadTogether<'a, A>, ReadTogether<'a, B>) {
        let (of_ranks, others_of_ranks) = self.of_ranks.into_iter().unzip();
        let sinks: Option<(Vec<_>, Vec<_>)> = self.sinks.map(|sinks| sinks.into_iter().unzip());
        let (sinks, others) = sinks.unzip();
        let first = ReadTogether { of_ranks, sinks: sinks.map(given) };
        (first, ReadTogether { of_ranks: others_of_ranks, sinks: others.map(given) })
    }
}

fn given<T>(all: Vec<Option<T>>) -> Vec<T> {
    all.into_iter().flatten().collect()
}

/// An optional observer.
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

/// Forwards the spans of a thread to an observer.
struct ForwardSpans<'o, O>(&'o mut O);

impl<'a, O: RankObserver<'a>> SpanObserver for ForwardSpans<'_, O> {
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
    /// The analysis of a run on its timeline, in this process alone.
    pub fn new(run: &'a Run, timeline: &'a GlobalTimeline) -> Self {
        let (processes, own) = (Processes::alone(), 0..run.ranks.len());
        Self { run, timeline, processes, own, communicators: OnceLock::new() }
    }

    /// The analysis of a run, divided among the processes that opened it: each reads the events of
    /// its own ranks. [`Analysis::calls`], [`Analysis::events`] and [`Analysis::matches`] then
    /// return what this process read, and the caller merges it by means of
    /// [`Analysis::processes`].
    pub fn divided(run: &'a Run, timeline: &'a GlobalTimeline) -> Self {
        let (processes, own) = (run.processes.clone(), run.own.clone());
        Self { processes, own, ..Self::new(run, timeline) }
    }

    /// Like [`Analysis::divided`], but this process reads the ranks at these positions. The ranges
    /// of all processes, in their order, cover all ranks once.
    pub fn divided_at(run: &'a Run, timeline: &'a GlobalTimeline, own: Range<usize>) -> Self {
        Self { own, ..Self::divided(run, timeline) }
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

    /// Positions of the ranks whose events this process reads.
    pub fn own_ranks(&self) -> Range<usize> {
        self.own.clone()
    }

    /// Reads the calls of all ranks once, or of this process's ranks if the analysis is divided.
    /// Returns the observer's result for each rank, in order.
    pub fn calls<O: CallObserver<'a>>(&self, observer: &O) -> Vec<O::OfRank> {
        self.calls_then(observer, |of_rank| of_rank)
    }

    /// Like [`Analysis::calls`], but keeps of each rank's observer only what `finish` makes of it: what
    /// a rank needs while it is read is far more than its result.
    pub fn calls_then<O: CallObserver<'a>, T: Send>(
        &self,
        observer: &O,
        finish: impl Fn(O::OfRank) -> T + Sync,
    ) -> Vec<T> {
        let of_rank = |position: usize| {
            let rank = self.rank(position);
            let mut observer = observer.begin_rank(rank);
            for thread in rank.threads() {
                observer.begin_thread(thread);
                thread.spans(None).for_each_span(&mut ForwardSpans(&mut observer));
                observer.end_thread();
            }
            finish(observer)
        };
        self.own.clone().into_par_iter().map(of_rank).collect()
    }

    /// Reads the events of the same ranks once and in full: more than a [`CallObserver`] gets, at
    /// several times the cost. `begin` creates the result for a rank, or `None` to skip the rank;
    /// `event` adds an event of the thread at a position. Returns the results in the order of the
    /// ranks.
    pub fn events<T: Send>(
        &self,
        begin: impl Fn(RankView<'a>) -> Option<T> + Sync,
        event: impl Fn(&mut T, usize, &Event) + Sync,
    ) -> Vec<T> {
        let of_rank = |position: usize| {
            let rank = self.rank(position);
            let mut result = begin(rank)?;
            for (position, thread) in rank.threads().enumerate() {
                thread.events(None).for_each(|e| event(&mut result, position, &e));
            }
            Some(result)
        };
        self.own.clone().into_par_iter().filter_map(of_rank).collect()
    }

    /// Like [`Analysis::matches`], but in one thread, for an observer that depends on the order:
    /// messages come as soon as they are certain, roughly by completion, and always in the same
    /// order for the same files.
    pub fn matches_in_order(&self, sink: &mut dyn MatchSink) -> MatchingSummary {
        matching::match_run(self.run, self.timeline, self.communicators(), sink)
    }

    /// Matches all messages and collective operations once. Returns one observer for each share of
    /// the run that is matched here, which the caller merges; `None` if no rank recorded the
    /// arguments of calls.
    pub fn matches<S: MatchSink + Send>(
        &self,
        new_sink: impl Fn() -> S + Sync,
    ) -> Option<(MatchingSummary, Vec<S>)> {
        if !matching::is_possible(self.run) {
            return None;
        }
        let (run, timeline, communicators) = (self.run, self.timeline, self.communicators());
        let here = ProcessShare {
            processes: self.processes.clone(),
            ranks: self.own.clone(),
            max_shares: rayon::current_num_threads(),
        };
        let shares = matching::match_in_shares(run, timeline, communicators, &here, new_sink)?;
        let mut summary = MatchingSummary::default();
        let sinks = shares.into_iter().map(|(of_share, sink)| {
            summary.add(&of_share);
            sink
        });
        let sinks = sinks.collect();
        Some((summary, sinks))
    }
}
