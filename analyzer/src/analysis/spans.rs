//! Turns a thread's events into spans: the end of every event is resolved, and calls do not
//! overlap.

use std::array::IntoIter;
use std::iter::Flatten;

use serde::{Deserialize, Serialize};
use trace_format::reader::{BriefEvent, EventKind, EventObserver, Events, Head, Position};
use trace_format::totals::SnapshotHeader;

use super::views::ThreadView;

/// What a thread does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// Inside an MPI call.
    Mpi,
    /// Inside the recorder.
    Tool,
    /// Inside an interposed compute function.
    Compute,
    /// Anything else: the program's own code.
    Own,
}

impl Activity {
    /// Number of activities.
    pub const COUNT: usize = 4;
    /// All, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [Self::Mpi, Self::Tool, Self::Compute, Self::Own];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpanKind {
    /// A call of MPI or of an interposed function, by its number.
    Call(u16),
    /// A run of polls that found nothing, with the program's own code between them.
    Polls {
        /// Function number.
        function: u16,
        /// Number of polls.
        count: u64,
        /// Time inside them.
        inside_ticks: u64,
    },
    /// The recorder's own time.
    Tool,
    /// Start of a region; without length.
    RegionBegin(u32),
    /// End of a region; without length.
    RegionEnd(u32),
    /// Time of which only the sum is known, because the events were kept only as totals.
    Summed {
        /// What the thread did.
        activity: Activity,
        /// Whether a region was open.
        in_region: bool,
        /// Number of regions open after it.
        open_regions: u64,
        /// Start and end of the stretch in which it lies somewhere.
        over: (u64, u64),
    },
}

/// An event with a resolved end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub kind: SpanKind,
    /// Counter at the start.
    pub begin_ticks: u64,
    /// Counter at the end. For a thread's last call, if it has not returned, the rank's end.
    pub end_ticks: u64,
    /// Whether the call returned.
    pub returned: bool,
    /// Bytes that an MPI call sent or moved (from detail level 1 on); ticks of the parallel region that ends, or inside
    /// calls on files.
    pub bytes: u64,
    /// Bytes that a one-sided call which sends and fetches received in addition.
    pub received: u64,
    /// Operations (`f64`) and bytes of an interposed compute function; else fields of the slot.
    pub payload: [u64; 2],
    /// Class of the error that an MPI call returned; 0 for none.
    pub error: u32,
    /// The rank's id of the communicator of an MPI call, if its function has one.
    pub communicator: u16,
    /// Return address of the call, and whether the call went through a language binding.
    pub site: Option<(u64, bool)>,
}

/// Iterates over a thread's spans in order of their start.
///
/// A call that has not returned lasts to the rank's end if it is its thread's last call. Otherwise
/// it has no length; nor has an abandoned call, whose end is unknown. A call that ends after the
/// start of the next call is cut there: calls of one thread never overlap, so one of the times is
/// wrong. (Recorder time and markers may lie inside a call: the recorder finishes inside
/// MPI_Finalize.)
#[derive(Debug)]
pub struct Spans<'a> {
    events: Events<'a>,
    /// The next event, once its predecessor has been read.
    ahead: Option<BriefEvent>,
    /// Whether `ahead` is up to date; otherwise the next event has yet to be read.
    looked_ahead: bool,
    /// The totals that come next, and the events after them.
    totals: Option<(&'a SnapshotHeader, Events<'a>)>,
    summed: Flatten<IntoIter<Option<Span>, 6>>,
    ends: Ends,
}

impl<'a> Spans<'a> {
    /// The spans of a thread, from its first event or from a position given by [`Spans::position`].
    pub(super) fn new(of: &ThreadView<'a>, from: Option<Position>) -> Self {
        let (file, thread) = (&of.rank.trace.file, of.thread);
        let (events, totals_follow) = match from {
            None => (file.events_before_totals(thread), true),
            Some(position) => file.events_from(thread, position),
        };
        let totals = thread.totals.as_ref().filter(|_| totals_follow);
        let last_open = of.extent.last_call.as_ref().filter(|call| call.open);
        Self {
            events,
            ahead: None,
            looked_ahead: false,
            totals: totals.map(|totals| (&totals.header, file.events_behind_totals(thread))),
            summed: [None; 6].into_iter().flatten(),
            ends: Ends {
                last_open_ticks: last_open.map(|call| call.begin_ticks),
                rank_end_ticks: of.rank.time.end_ticks,
            },
        }
    }

    /// Position of the next span's event; `None` among totals.
    pub fn position(&self) -> Option<Position> {
        match self.ahead {
            Some(event) => Some(self.events.position_of(event.offset)),
            None => self.summed.clone().next().is_none().then(|| self.events.position()),
        }
    }
}

/// Spans for totals: one for each activity with its known length, laid end to end from the start.
/// Where in the stretch each activity really lies is unknown.
fn summed(totals: &SnapshotHeader) -> Flatten<IntoIter<Option<Span>, 6>> {
    let mut at_ticks = totals.begin_ticks;
    let mut piece = |activity, in_region, ticks: u64| {
        let begin_ticks = at_ticks;
        at_ticks = at_ticks.saturating_add(ticks).min(totals.end_ticks);
        let open_regions = totals.open_regions;
        let over = (totals.begin_ticks, totals.end_ticks.max(totals.begin_ticks));
        let kind = SpanKind::Summed { activity, in_region, open_regions, over };
        let span = Span {
            kind,
            begin_ticks,
            end_ticks: at_ticks,
            returned: true,
            bytes: 0,
            received: 0,
            payload: [0; 2],
            error: 0,
            communicator: 0,
            site: None,
        };
        (at_ticks > begin_ticks).then_some(span)
    };
    let compute = totals.compute_ticks.saturating_sub(totals.region_compute_ticks);
    let own = totals.own_ticks.saturating_sub(totals.region_own_ticks);
    [
        piece(Activity::Mpi, false, totals.mpi_ticks),
        piece(Activity::Tool, false, totals.tool_ticks),
        piece(Activity::Compute, true, totals.region_compute_ticks),
        piece(Activity::Compute, false, compute),
        piece(Activity::Own, true, totals.region_own_ticks),
        piece(Activity::Own, false, own),
    ]
    .into_iter()
    .flatten()
}

/// Receives the spans of a thread.
pub trait SpanObserver {
    /// Receives a span; returns false to stop.
    fn span(&mut self, span: Span) -> bool;

    /// Like [`SpanObserver::span`], for a plain call.
    #[inline]
    fn plain(&mut self, call: &PlainCall) -> bool {
        self.span(call.span())
    }
}

impl<F: FnMut(Span) -> bool> SpanObserver for F {
    #[inline]
    fn span(&mut self, span: Span) -> bool {
        self(span)
    }
}

/// A call that succeeded and ended before the next call of its thread began, so that its own slot
/// says everything.
#[derive(Debug)]
pub struct PlainCall(Head);

impl PlainCall {
    /// Function number.
    #[inline]
    pub fn function(&self) -> u16 {
        self.0.function()
    }

    /// Counter at the start.
    #[inline]
    pub fn begin_ticks(&self) -> u64 {
        self.0.begin()
    }

    /// Its length.
    #[inline]
    pub fn ticks(&self) -> u64 {
        self.0.ticks()
    }

    /// Counter at the end.
    #[inline]
    pub fn end_ticks(&self) -> u64 {
        self.begin_ticks() + self.ticks()
    }

    /// Bytes that an MPI call sent or moved.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// The peer that an MPI call names.
    #[inline]
    pub fn peer(&self) -> i32 {
        self.0.peer()
    }

    /// See [`Span::site`].
    #[inline]
    pub fn site(&self) -> Option<(u64, bool)> {
        self.0.site()
    }

    /// The call as a span.
    #[inline]
    pub fn span(&self) -> Span {
        let event = BriefEvent::plain(&self.0, 0);
        Span {
            kind: SpanKind::Call(self.function()),
            begin_ticks: self.begin_ticks(),
            end_ticks: event.end,
            returned: true,
            bytes: event.sent,
            received: event.received,
            payload: event.head.payload(),
            error: event.error,
            communicator: event.head.communicator(),
            site: event.head.site(),
        }
    }
}

impl Span {
    /// The peer that an MPI call names.
    pub fn peer(&self) -> i32 {
        self.payload[0] as u32 as i32
    }
}

/// Resolves the ends of events on their way to an observer.
struct EndResolver<'t, T> {
    /// The previous event, unless it has been passed on.
    before: &'t mut Option<BriefEvent>,
    ends: Ends,
    observer: &'t mut T,
    continues: bool,
}

impl<T: SpanObserver> EventObserver for EndResolver<'_, T> {
    #[inline]
    fn plain(&mut self, call: &Head, offset: usize) -> bool {
        if self.before.is_some() && !self.event(&BriefEvent::plain(call, offset)) {
            return false;
        }
        *self.before = None;
        self.continues = self.observer.plain(&PlainCall(*call));
        self.continues
    }

    fn event(&mut self, event: &BriefEvent) -> bool {
        if let Some(before) = self.before.replace(*event) {
            self.continues = self.observer.span(self.ends.resolve(&before, Some(event)));
        }
        self.continues
    }
}

impl<'a> Spans<'a> {
    /// Passes the remaining spans to an observer until it stops; a faster way to iterate.
    pub fn for_each_span(&mut self, observer: &mut impl SpanObserver) {
        loop {
            if !self.summed.by_ref().all(|span| observer.span(span)) {
                return;
            }
            let before = &mut self.ahead;
            let mut resolver = EndResolver { before, ends: self.ends, observer, continues: true };
            self.events.for_each_event(&mut resolver);
            let continues = resolver.continues;
            self.looked_ahead = continues || self.ahead.is_some();
            if !continues {
                return;
            }
            if let Some(last) = self.ahead.take()
                && !observer.span(self.ends.resolve(&last, None))
            {
                return;
            }
            let Some((totals, after)) = self.totals.take() else { return };
            self.continue_after_totals(totals, after);
        }
    }

    /// Continues with totals, then with the events after them.
    fn continue_after_totals(&mut self, totals: &SnapshotHeader, after: Events<'a>) {
        self.summed = summed(totals);
        self.events = after;
        self.looked_ahead = false;
    }

    /// The next event, or a span for totals between events.
    #[inline]
    fn next_event(&mut self) -> Option<Result<BriefEvent, Span>> {
        if let Some(event) = self.ahead {
            self.ahead = self.events.next_brief();
            return Some(Ok(event));
        }
        self.next_summed()
    }

    #[cold]
    fn next_summed(&mut self) -> Option<Result<BriefEvent, Span>> {
        loop {
            if let Some(span) = self.summed.next() {
                return Some(Err(span));
            }
            if !std::mem::replace(&mut self.looked_ahead, true) {
                self.ahead = self.events.next_brief();
                if let Some(event) = self.ahead {
                    self.ahead = self.events.next_brief();
                    return Some(Ok(event));
                }
            }
            let (totals, after) = self.totals.take()?;
            self.continue_after_totals(totals, after);
        }
    }
}

/// Resolves the ends of a thread's calls that did not return.
#[derive(Debug, Clone, Copy)]
struct Ends {
    /// Start of the thread's last call, if it has not returned.
    last_open_ticks: Option<u64>,
    rank_end_ticks: u64,
}

impl Ends {
    /// The span of an event; `next` is the thread's next event.
    #[inline]
    fn resolve(&self, event: &BriefEvent, next: Option<&BriefEvent>) -> Span {
        let begin_ticks = event.head.begin();
        let returned = event.head.returned();
        let end_ticks = if returned {
            match next {
                // Compute calls may lie between polls.
                Some(next) if next.head.is_call() && event.polls.is_none() => {
                    event.end.min(next.head.begin())
                }
                _ => event.end,
            }
        } else if !event.head.is_abandoned() && self.last_open_ticks == Some(begin_ticks) {
            self.rank_end_ticks.max(begin_ticks)
        } else {
            begin_ticks
        };
        let kind = match event.head.kind() {
            EventKind::Tool => SpanKind::Tool,
            EventKind::RegionBegin(id) => SpanKind::RegionBegin(id),
            EventKind::RegionEnd(id) => SpanKind::RegionEnd(id),
            EventKind::Call(function) => match event.polls {
                Some((count, ticks)) => SpanKind::Polls {
                    function,
                    count,
                    inside_ticks: ticks.min(end_ticks - begin_ticks),
                },
                None => SpanKind::Call(function),
            },
        };
        Span {
            kind,
            begin_ticks,
            end_ticks,
            returned,
            bytes: event.sent,
            received: event.received,
            payload: event.head.payload(),
            error: event.error,
            communicator: event.head.communicator(),
            site: event.head.site(),
        }
    }
}

impl Iterator for Spans<'_> {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        match self.next_event()? {
            Ok(event) => Some(self.ends.resolve(&event, self.ahead.as_ref())),
            Err(span) => Some(span),
        }
    }

    fn fold<B, F: FnMut(B, Span) -> B>(mut self, init: B, mut fold: F) -> B {
        let mut so_far = Some(init);
        self.for_each_span(&mut |span| {
            so_far = so_far.take().map(|so_far| fold(so_far, span));
            true
        });
        so_far.unwrap_or_else(|| unreachable!("every value is put back"))
    }
}
