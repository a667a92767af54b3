//! What one pass over a thread's events finds: a thread of a rank file comes in, its first and
//! last stamps, its last call and its damage go out.

use serde::{Deserialize, Serialize};
use trace_format::layout::FIRST_FUNCTION;
use trace_format::reader::{Diagnosis, RankFile, Thread, Totals};
use trace_format::totals::TotalsEntry;

/// A thread's last call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCall {
    /// Function number.
    pub function: u16,
    /// Counter at the begin.
    pub begin_ticks: u64,
    /// Whether it had not returned.
    pub open: bool,
}

/// What one pass over a thread's events found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadExtent {
    /// Thread as the file numbers it.
    pub number: u32,
    /// Counter at the first event's begin.
    pub first_ticks: Option<u64>,
    /// Latest begin or end of any event. When the stream is damaged the last event before the
    /// damage does not count: it may be the one whose time is wrong.
    pub last_ticks: Option<u64>,
    /// Counter at the end of MPI_Init or MPI_Init_thread.
    pub init_end_ticks: Option<u64>,
    /// Whether MPI_Finalize was called.
    pub calls_finalize: bool,
    /// The last call (no marker, no tool time).
    pub last_call: Option<LastCall>,
    /// Calls that began, markers and tool time not counted.
    pub calls: u64,
    /// Calls that were left by longjmp or an exception.
    pub abandoned: u64,
    /// Calls that begin before the one before them ends; calls of one thread never do.
    pub overlaps: u64,
    /// What ended the stream early.
    pub damage: Option<Diagnosis>,
}

impl ThreadExtent {
    /// Reads all events of a thread.
    pub fn scan(file: &RankFile, thread: &Thread) -> Self {
        let number = |name: &str| {
            let index = file.function_names().iter().position(|other| other == name)?;
            Some(FIRST_FUNCTION + index as u16)
        };
        let (init, init_thread) = (number("MPI_Init"), number("MPI_Init_thread"));
        let finalize = number("MPI_Finalize");
        let mut extent = Self { number: thread.number, ..Self::default() };
        let (mut first, mut before_last, mut last) = (None, 0, 0);
        let (mut previous_end, mut calls, mut overlaps, mut abandoned) = (0, 0u64, 0, 0);
        let mut last_call = None;
        let mut events = file.events(thread);
        while let Some(event) = events.next_brief() {
            let (begin, function) = (event.slot.begin, event.slot.function());
            first.get_or_insert(begin);
            before_last = last;
            last = last.max(event.end);
            if !event.is_call() {
                continue;
            }
            overlaps += u64::from(begin < previous_end);
            // Compute calls may lie within a run of polls.
            previous_end = if event.polls.is_some() { begin } else { event.end };
            calls = calls.saturating_add(event.polls.map_or(1, |(count, _)| count));
            abandoned += u64::from(event.slot.is_abandoned());
            last_call = Some(event.slot);
            let this = Some(function);
            if this == init || this == init_thread {
                extent.init_end_ticks = event.returned().then_some(event.end);
            } else if this == finalize {
                extent.calls_finalize = true;
            }
        }
        extent.first_ticks = first;
        (extent.calls, extent.overlaps, extent.abandoned) = (calls, overlaps, abandoned);
        extent.last_call = last_call.map(|slot| LastCall {
            function: slot.function(),
            begin_ticks: slot.begin,
            open: slot.is_open() && !slot.is_abandoned(),
        });
        extent.damage = events.damage().cloned();
        let stamp = if extent.damage.is_some() { before_last } else { last };
        extent.last_ticks = first.filter(|_| stamp > 0).map(|_| stamp);
        if let Some(totals) = &thread.totals {
            extent.add(totals, file);
        }
        extent
    }

    /// Adds events of which only totals are kept.
    fn add(&mut self, totals: &Totals, file: &RankFile) {
        let header = &totals.header;
        self.calls = self.calls.saturating_add(header.calls);
        self.abandoned = self.abandoned.saturating_add(header.abandoned);
        self.first_ticks = Some(
            self.first_ticks.map_or(header.begin_ticks, |first| first.min(header.begin_ticks)),
        );
        self.last_ticks = self.last_ticks.max(Some(header.end_ticks));
        let name = |entry: &TotalsEntry| file.function_name(entry.function);
        self.calls_finalize |= totals.calls.iter().any(|e| name(e) == Some("MPI_Finalize"));
    }
}
