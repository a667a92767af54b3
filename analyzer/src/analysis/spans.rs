//! A thread's events with their ends settled: events come in, spans that do not overlap go out.

use std::array::IntoIter;
use std::iter::Flatten;

use trace_format::reader::{BriefEvent, EventKind, EventObserver, Events, Head, Position};
use trace_format::totals::SnapshotHeader;

use super::ThreadView;

/// What a thread does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// How many there are.
    pub const COUNT: usize = 4;
    /// All, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [Self::Mpi, Self::Tool, Self::Compute, Self::Own];
}

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A call of MPI or of an interposed function, by its number.
    Call(u16),
    /// A run of polls that found nothing, the program's own code between them.
    Polls {
        /// Function number.
        function: u16,
        /// How many.
        count: u64,
        /// Time inside them.
        inside_ticks: u64,
    },
    /// The recorder's own time.
    Tool,
    /// A region begins; zero length.
    RegionBegin(u32),
    /// A region ends; zero length.
    RegionEnd(u32),
    /// Time of which only the sum is known, of events that are not kept one by one.
    Summed {
        /// What the thread did.
        activity: Activity,
        /// Whether a region was open.
        in_region: bool,
        /// Regions that are open behind it.
        open_regions: u64,
        /// Begin and end of the time in which it lies somewhere.
        over: (u64, u64),
    },
}

/// An event with a settled end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// What it is.
    pub kind: SpanKind,
    /// Counter at the begin.
    pub begin_ticks: u64,
    /// Of a call that had not returned: the rank's end when it is the thread's last call.
    pub end_ticks: u64,
    /// Whether the call returned.
    pub returned: bool,
    /// Bytes that an MPI call sent or moved (detail level 1 on).
    pub bytes: u64,
    /// Bytes that a call which sends and fetches received beside: of remote memory access.
    pub received: u64,
    /// Operations (`f64`) and bytes of an interposed compute function; else fields of the slot.
    pub payload: [u64; 2],
    /// Class of the error that an MPI call returned; 0 none.
    pub error: u32,
    /// Address that the call returns to, and whether that was found behind a language binding.
    pub site: Option<(u64, bool)>,
}

/// Iterates over a thread's spans in order of their begin.
///
/// A call that had not returned lasts to the rank's end when it is its thread's last, and has no
/// length otherwise; so has an abandoned one, whose end is not known. An event that ends behind the
/// next call's begin ends there: calls of one thread never overlap, so one of its times is wrong.
/// (Tool time and markers may lie inside a call: the recorder's end lies inside MPI_Finalize.)
#[derive(Debug)]
pub struct Spans<'a> {
    events: Events<'a>,
    /// The event that comes next, once its predecessor was read.
    ahead: Option<BriefEvent>,
    /// Whether `ahead` is the next event, or none is left; else it is to be read.
    looked_ahead: bool,
    /// Totals that come next, and the events behind them.
    totals: Option<(&'a SnapshotHeader, Events<'a>)>,
    summed: Flatten<IntoIter<Option<Span>, 6>>,
    ends: Ends,
}

impl<'a> Spans<'a> {
    /// Of a thread, from its first event on or from a position that [`Spans::position`] gave.
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

    /// Where the event of the next span lies; `None` among totals.
    pub fn position(&self) -> Option<Position> {
        match self.ahead {
            Some(event) => Some(self.events.position_of(event.offset)),
            None => self.summed.clone().next().is_none().then(|| self.events.position()),
        }
    }
}

/// What totals stand for: pieces whose lengths are known, laid end to end from their begin on. Where in
/// this time each activity lies is not known.
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

/// Takes spans.
pub trait TakeSpans {
    /// Takes a span, and says whether it wants more.
    fn span(&mut self, span: Span) -> bool;

    /// As [`TakeSpans::span`], for a plain call.
    #[inline]
    fn plain(&mut self, call: &PlainCall) -> bool {
        self.span(call.span())
    }
}

impl<F: FnMut(Span) -> bool> TakeSpans for F {
    #[inline]
    fn span(&mut self, span: Span) -> bool {
        self(span)
    }
}

/// A call that succeeded and ended before its thread's next began, by its own slot alone.
#[derive(Debug)]
pub struct PlainCall(Head);

impl PlainCall {
    /// Function number.
    #[inline]
    pub fn function(&self) -> u16 {
        self.0.function()
    }

    /// Counter at the begin.
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

    /// As [`Span::site`].
    #[inline]
    pub fn site(&self) -> Option<(u64, bool)> {
        self.0.site()
    }

    /// As a span.
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

/// Settles events' ends on their way to a taker.
struct Settling<'t, T> {
    /// The last event, unless it has been handed on.
    before: &'t mut Option<BriefEvent>,
    ends: Ends,
    take: &'t mut T,
    goes_on: bool,
}

impl<T: TakeSpans> EventObserver for Settling<'_, T> {
    #[inline]
    fn plain(&mut self, call: &Head, offset: usize) -> bool {
        if self.before.is_some() && !self.event(&BriefEvent::plain(call, offset)) {
            return false;
        }
        *self.before = None;
        self.goes_on = self.take.plain(&PlainCall(*call));
        self.goes_on
    }

    fn event(&mut self, event: &BriefEvent) -> bool {
        if let Some(before) = self.before.replace(*event) {
            self.goes_on = self.take.span(self.ends.settle(&before, Some(event)));
        }
        self.goes_on
    }
}

impl<'a> Spans<'a> {
    /// Hands on what is left, until `take` has enough: what the iterator gives, faster.
    pub fn hand_on(&mut self, take: &mut impl TakeSpans) {
        loop {
            if !self.summed.by_ref().all(|span| take.span(span)) {
                return;
            }
            let before = &mut self.ahead;
            let mut settling = Settling { before, ends: self.ends, take, goes_on: true };
            self.events.for_each_event(&mut settling);
            let goes_on = settling.goes_on;
            self.looked_ahead = goes_on || self.ahead.is_some();
            if !goes_on {
                return;
            }
            if let Some(last) = self.ahead.take()
                && !take.span(self.ends.settle(&last, None))
            {
                return;
            }
            let Some((totals, behind)) = self.totals.take() else { return };
            self.go_behind(totals, behind);
        }
    }

    /// Goes on with totals, then with the events behind them.
    fn go_behind(&mut self, totals: &SnapshotHeader, behind: Events<'a>) {
        self.summed = summed(totals);
        self.events = behind;
        self.looked_ahead = false;
    }

    /// The next event, or totals between events turned to spans.
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
            let (totals, behind) = self.totals.take()?;
            self.go_behind(totals, behind);
        }
    }
}

/// What settles the ends of a thread's calls that did not return.
#[derive(Debug, Clone, Copy)]
struct Ends {
    /// Begin of the thread's last call when it had not returned.
    last_open_ticks: Option<u64>,
    rank_end_ticks: u64,
}

impl Ends {
    /// An event with its end settled; `next` is the thread's next one.
    #[inline]
    fn settle(&self, event: &BriefEvent, next: Option<&BriefEvent>) -> Span {
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
            site: event.head.site(),
        }
    }
}

impl Iterator for Spans<'_> {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        match self.next_event()? {
            Ok(event) => Some(self.ends.settle(&event, self.ahead.as_ref())),
            Err(span) => Some(span),
        }
    }

    fn fold<B, F: FnMut(B, Span) -> B>(mut self, init: B, mut fold: F) -> B {
        let mut so_far = Some(init);
        self.hand_on(&mut |span| {
            so_far = so_far.take().map(|so_far| fold(so_far, span));
            true
        });
        so_far.unwrap_or_else(|| unreachable!("every value is put back"))
    }
}
