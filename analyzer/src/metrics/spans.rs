//! A thread's events with their ends settled: events come in, spans that do not overlap go out.

use std::array::IntoIter;
use std::iter::Flatten;

use trace_format::layout::{REGION_BEGIN, REGION_END, TOOL};
use trace_format::reader::{BriefEvent, Events, Position, RankFile, Thread};
use trace_format::totals::SnapshotHeader;

use super::segments::Activity;
use crate::timeline::RankTime;
use crate::trace::{RankTrace, ThreadExtent};

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
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
    },
}

/// An event with a settled end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub kind: SpanKind,
    pub begin_ticks: u64,
    /// Of a call that had not returned: the rank's end when it is the thread's last call.
    pub end_ticks: u64,
    /// Whether the call returned.
    pub returned: bool,
    /// Bytes that an MPI call sent or moved (detail level 1 on).
    pub bytes: u64,
    /// Operations (`f64`) and bytes of an interposed compute function.
    pub payload: [u64; 2],
}

/// Iterates over a thread's spans in order of their begin.
///
/// A call that had not returned lasts to the rank's end when it is its thread's last, and has no
/// length otherwise; so has an abandoned one, whose end is not known. An event that ends behind the
/// next call's begin ends there: calls of one thread never overlap, so one of its times is wrong.
/// (Tool time and markers may lie inside a call: the recorder's end lies inside MPI_Finalize.)
#[derive(Debug)]
pub(super) struct Spans<'a> {
    events: Events<'a>,
    /// The event that comes next, once its predecessor was read.
    ahead: Option<BriefEvent>,
    /// Whether the first of the events was read ahead.
    looked_ahead: bool,
    /// Totals that come next, and the events behind them.
    totals: Option<(&'a SnapshotHeader, Events<'a>)>,
    summed: Flatten<IntoIter<Option<Span>, 6>>,
    last_open_ticks: Option<u64>,
    rank_end_ticks: u64,
}

impl<'a> Spans<'a> {
    /// Of a thread with that extent, of a rank that ends then.
    pub fn new(
        file: &'a RankFile,
        thread: &'a Thread,
        extent: &ThreadExtent,
        rank_end_ticks: u64,
    ) -> Self {
        let last_open = extent.last_call.as_ref().filter(|call| call.open);
        Self {
            events: file.events_before_totals(thread),
            ahead: None,
            looked_ahead: false,
            totals: thread
                .totals
                .as_ref()
                .map(|totals| (&totals.header, file.events_behind_totals(thread))),
            summed: [None; 6].into_iter().flatten(),
            last_open_ticks: last_open.map(|call| call.begin_ticks),
            rank_end_ticks,
        }
    }

    /// As [`Spans::new`], from a position on that [`Spans::position`] gave.
    pub fn from(
        file: &'a RankFile,
        thread: &'a Thread,
        extent: &ThreadExtent,
        rank_end_ticks: u64,
        position: Position,
    ) -> Self {
        let (events, before_totals) = file.events_from(thread, position);
        let mut spans = Self::new(file, thread, extent, rank_end_ticks);
        spans.events = events;
        spans.totals = spans.totals.filter(|_| before_totals);
        spans
    }

    /// Where the event of the next span lies; `None` where it is not known: at the begin, the end, and
    /// among totals.
    pub fn position(&self) -> Option<Position> {
        self.ahead.map(|event| self.events.position_of(event.offset))
    }

    /// All threads of a rank.
    pub fn of_threads(trace: &'a RankTrace, time: &RankTime) -> impl Iterator<Item = Self> {
        let threads = trace.file.threads.iter().zip(&trace.threads);
        threads.map(|(thread, extent)| Self::new(&trace.file, thread, extent, time.end_ticks))
    }
}

/// What totals stand for: pieces whose lengths are known, laid end to end from their begin on. Where in
/// this time each activity lies is not known.
fn summed(totals: &SnapshotHeader) -> Flatten<IntoIter<Option<Span>, 6>> {
    let mut at_ticks = totals.begin_ticks;
    let mut piece = |activity, in_region, ticks: u64| {
        let begin_ticks = at_ticks;
        at_ticks = at_ticks.saturating_add(ticks).min(totals.end_ticks);
        let kind = SpanKind::Summed { activity, in_region, open_regions: totals.open_regions };
        let span = Span {
            kind,
            begin_ticks,
            end_ticks: at_ticks,
            returned: true,
            bytes: 0,
            payload: [0; 2],
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

impl Spans<'_> {
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
            self.summed = summed(totals);
            self.events = behind;
            self.looked_ahead = false;
        }
    }
}

impl Iterator for Spans<'_> {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        let event = match self.next_event()? {
            Ok(event) => event,
            Err(span) => return Some(span),
        };
        let begin_ticks = event.slot.begin;
        let returned = event.returned();
        let end_ticks = if returned {
            match &self.ahead {
                // Compute calls may lie between polls.
                Some(next) if next.is_call() && event.polls.is_none() => {
                    event.end.min(next.slot.begin)
                }
                _ => event.end,
            }
        } else if !event.slot.is_abandoned() && self.last_open_ticks == Some(begin_ticks) {
            self.rank_end_ticks.max(begin_ticks)
        } else {
            begin_ticks
        };
        let kind = match event.slot.function() {
            TOOL => SpanKind::Tool,
            REGION_BEGIN => SpanKind::RegionBegin(event.slot.peer as u32),
            REGION_END => SpanKind::RegionEnd(event.slot.peer as u32),
            function => match event.polls {
                Some((count, ticks)) => SpanKind::Polls {
                    function,
                    count,
                    inside_ticks: ticks.min(end_ticks - begin_ticks),
                },
                None => SpanKind::Call(function),
            },
        };
        Some(Span {
            kind,
            begin_ticks,
            end_ticks,
            returned,
            bytes: event.sent,
            payload: event.payload(),
        })
    }
}
