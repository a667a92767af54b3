//! What one pass over a thread's events finds: a thread of a rank file comes in, its first and
//! last stamps, its last call and its damage go out.

use trace_format::functions::{Class, class_of};
use trace_format::layout::{REGION_BEGIN, REGION_END, TOOL};
use trace_format::reader::{Diagnosis, RankFile, Thread, Totals};
use trace_format::totals::TotalsEntry;

/// A thread's last call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastCall {
    /// Function number.
    pub function: u16,
    /// Counter at the begin.
    pub begin_ticks: u64,
    /// Whether it had not returned.
    pub open: bool,
}

/// What one pass over a thread's events found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
        let names = file.function_names();
        let classes: Vec<Class> = names.iter().map(|name| class_of(name)).collect();
        let class = |function: u16| {
            let index = usize::from(function - trace_format::layout::FIRST_FUNCTION);
            classes.get(index).copied().unwrap_or(Class::Other)
        };
        let mut extent = Self { number: thread.number, ..Self::default() };
        let (mut before_last, mut last, mut previous_end) = (None, None, 0);
        let mut events = file.events(thread);
        for event in events.by_ref() {
            let end = event.end.unwrap_or(event.begin);
            extent.first_ticks.get_or_insert(event.begin);
            before_last = last;
            last = last.max(Some(end));
            if matches!(event.function, TOOL | REGION_BEGIN | REGION_END) {
                continue;
            }
            extent.overlaps += u64::from(event.begin < previous_end);
            // Compute calls may lie within a run of polls.
            previous_end = if event.polls.is_some() { event.begin } else { end };
            let count = event.polls.map_or(1, |(count, _)| count);
            extent.calls = extent.calls.saturating_add(count);
            extent.abandoned += u64::from(event.abandoned);
            extent.last_call = Some(LastCall {
                function: event.function,
                begin_ticks: event.begin,
                open: event.end.is_none() && !event.abandoned,
            });
            if class(event.function) == Class::Lifetime {
                match file.function_name(event.function) {
                    Some("MPI_Init" | "MPI_Init_thread") => extent.init_end_ticks = event.end,
                    Some("MPI_Finalize") => extent.calls_finalize = true,
                    _ => {}
                }
            }
        }
        extent.damage = events.damage().cloned();
        extent.last_ticks = if extent.damage.is_some() { before_last } else { last };
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
