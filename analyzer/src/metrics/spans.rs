//! A thread's events with their ends settled: events come in, spans that do not overlap go out.

use std::iter::Peekable;

use trace_format::layout::{REGION_BEGIN, REGION_END, TOOL};
use trace_format::reader::{Event, Events, RankFile, Thread};

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
    events: Peekable<Events<'a>>,
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
            events: file.events(thread).peekable(),
            last_open_ticks: last_open.map(|call| call.begin_ticks),
            rank_end_ticks,
        }
    }

    /// All threads of a rank.
    pub fn of_threads(trace: &'a RankTrace, time: &RankTime) -> impl Iterator<Item = Self> {
        let threads = trace.file.threads.iter().zip(&trace.threads);
        threads.map(|(thread, extent)| Self::new(&trace.file, thread, extent, time.end_ticks))
    }
}

fn is_call(event: &Event) -> bool {
    !matches!(event.function, TOOL | REGION_BEGIN | REGION_END)
}

impl Iterator for Spans<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let event = self.events.next()?;
        let end_ticks = match event.end {
            Some(end) => match self.events.peek() {
                // Compute calls may lie between polls.
                Some(next) if is_call(next) && event.polls.is_none() => end.min(next.begin),
                _ => end,
            },
            None if !event.abandoned && self.last_open_ticks == Some(event.begin) => {
                self.rank_end_ticks.max(event.begin)
            }
            None => event.begin,
        };
        let kind = match event.function {
            TOOL => SpanKind::Tool,
            REGION_BEGIN => SpanKind::RegionBegin(event.peer as u32),
            REGION_END => SpanKind::RegionEnd(event.peer as u32),
            function => match event.polls {
                Some((count, ticks)) => SpanKind::Polls {
                    function,
                    count,
                    inside_ticks: ticks.min(end_ticks - event.begin),
                },
                None => SpanKind::Call(function),
            },
        };
        Some(Span {
            kind,
            begin_ticks: event.begin,
            end_ticks,
            returned: event.end.is_some(),
            bytes: event.sent,
            payload: event.payload,
        })
    }
}
