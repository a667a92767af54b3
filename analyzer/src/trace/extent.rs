//! Scans the events of a thread for its first and last time stamps, its last call and damage.

use serde::{Deserialize, Serialize};
use trace_format::functions::FIRST_FUNCTION;
use trace_format::reader::{BriefEvent, Diagnosis, EventObserver, Head, RankFile, Thread, Totals};
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

/// What a scan of a thread's events found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadExtent {
    /// Number of the thread in the file.
    pub number: u32,
    /// Counter at the first event's begin.
    pub first_ticks: Option<u64>,
    /// Latest begin or end of any event. If the stream is damaged, the last event before the damage
    /// does not count, because its time may be the wrong one.
    pub last_ticks: Option<u64>,
    /// Counter at the end of MPI_Init or MPI_Init_thread.
    pub init_end_ticks: Option<u64>,
    /// Whether MPI_Finalize was called, or MPI_Session_finalize last of all.
    pub calls_finalize: bool,
    /// The last call, ignoring markers and tool time.
    pub last_call: Option<LastCall>,
    /// Number of calls that began, without markers and tool time.
    pub calls: u64,
    /// Number of calls that were left by longjmp or an exception.
    pub abandoned: u64,
    /// Number of calls that begin before the previous call ends, which is impossible within a
    /// thread.
    pub overlaps: u64,
    /// What ended the stream early.
    pub damage: Option<Diagnosis>,
}

impl ThreadExtent {
    /// Reads all events of a thread.
    pub fn scan(file: &RankFile, thread: &Thread) -> Self {
        let number = |name: &str| {
            let index = file.function_names().iter().position(|other| other == name);
            index.map_or(0, |index| FIRST_FUNCTION + index as u16)
        };
        let (init, init_thread) = (number("MPI_Init"), number("MPI_Init_thread"));
        let (finalize, close_session) = (number("MPI_Finalize"), number("MPI_Session_finalize"));
        let mut extent = Self { number: thread.number, ..Self::default() };
        let mut events = file.events(thread);
        let mut found = Scan { init, init_thread, finalize, close_session, ..Scan::default() };
        events.for_each_event(&mut found);
        extent.first_ticks = found.first;
        extent.init_end_ticks = found.init_end;
        extent.calls_finalize = found.calls_finalize || found.closed_session_last;
        (extent.calls, extent.overlaps, extent.abandoned) =
            (found.calls, found.overlaps, found.abandoned);
        extent.last_call = found.last_call.map(|call| LastCall {
            function: call.function(),
            begin_ticks: call.begin(),
            open: call.is_open() && !call.is_abandoned(),
        });
        extent.damage = events.damage().cloned();
        let stamp = if extent.damage.is_some() { found.before_last } else { found.last };
        extent.last_ticks = found.first.filter(|_| stamp > 0).map(|_| stamp);
        if let Some(totals) = &thread.totals {
            extent.add(totals, file);
        }
        extent
    }

    /// Adds events for which only totals were kept.
    fn add(&mut self, totals: &Totals, file: &RankFile) {
        let header = &totals.header;
        self.calls = self.calls.saturating_add(header.calls);
        self.abandoned = self.abandoned.saturating_add(header.abandoned);
        self.first_ticks = Some(
            self.first_ticks.map_or(header.begin_ticks, |first| first.min(header.begin_ticks)),
        );
        self.last_ticks = self.last_ticks.max(Some(header.end_ticks));
        let name = |entry: &TotalsEntry| file.function_name(entry.function);
        let ends = ["MPI_Finalize", "MPI_Session_finalize"].map(Some);
        self.calls_finalize |= totals.calls.iter().any(|e| ends.contains(&name(e)));
    }
}

/// State of a scan.
#[derive(Debug, Default)]
struct Scan {
    /// Numbers of functions; 0 if the file does not name them.
    init: u16,
    init_thread: u16,
    finalize: u16,
    close_session: u16,
    first: Option<u64>,
    before_last: u64,
    last: u64,
    /// End of the last call.
    previous_end: u64,
    init_end: Option<u64>,
    calls_finalize: bool,
    closed_session_last: bool,
    last_call: Option<Head>,
    calls: u64,
    abandoned: u64,
    overlaps: u64,
}

impl Scan {
    #[inline]
    fn stamps(&mut self, begin: u64, end: u64) {
        self.first.get_or_insert(begin);
        self.before_last = self.last;
        self.last = self.last.max(end);
    }

    #[inline]
    fn call(&mut self, call: &Head, returned: Option<u64>) {
        self.last_call = Some(*call);
        let function = call.function();
        self.closed_session_last = function == self.close_session;
        if function == self.init || function == self.init_thread {
            self.init_end = returned;
        } else if function == self.finalize {
            self.calls_finalize = true;
        }
    }
}

impl EventObserver for Scan {
    #[inline]
    fn plain(&mut self, call: &Head, _offset: usize) -> bool {
        let end = call.begin() + call.ticks();
        self.stamps(call.begin(), end);
        self.overlaps += u64::from(call.begin() < self.previous_end);
        self.previous_end = end;
        self.calls = self.calls.saturating_add(1);
        self.call(call, Some(end));
        true
    }

    fn event(&mut self, event: &BriefEvent) -> bool {
        let begin = event.head.begin();
        self.stamps(begin, event.end);
        if event.head.is_call() {
            self.overlaps += u64::from(begin < self.previous_end);
            // Compute calls may occur within a run of polls.
            self.previous_end = if event.polls.is_some() { begin } else { event.end };
            self.calls = self.calls.saturating_add(event.polls.map_or(1, |(count, _)| count));
            self.abandoned += u64::from(event.head.is_abandoned());
            self.call(&event.head, event.head.returned().then_some(event.end));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank};

    fn rank_with_calls_of(ticks: u64) -> SyntheticRank {
        let mut rank = SyntheticRank::complete(0, 1, 1000, 100_000);
        (1..50).for_each(|at| _ = rank.call(0, "MPI_Barrier", 1000 * at, 1000 * at + ticks));
        rank
    }

    /// As with `--keep last`, by a process that runs while its file is read.
    #[test]
    fn chunk_whose_place_newer_calls_took_is_not_damaged() {
        let directory = RunDirectory::of_encoded(&[rank_with_calls_of(7)]);
        let scan = |file: &RankFile| ThreadExtent::scan(file, &file.threads[0]);
        let what = |extent: &ThreadExtent| extent.damage.as_ref().map(|of| of.what.clone());
        let file = RankFile::open(&directory.file(0)).unwrap();
        let whole = scan(&file);
        assert_eq!((whole.calls, what(&whole)), (50, None));

        let newer = RunDirectory::of_encoded(&[rank_with_calls_of(8)]);
        let mut bytes = std::fs::read(newer.file(0)).unwrap();
        std::fs::write(directory.file(0), &bytes).unwrap();
        let told = "newer calls took the place of a chunk of events while it was read";
        assert_eq!(what(&scan(&file)).as_deref(), Some(told));
        let file = RankFile::open(&directory.file(0)).unwrap();
        assert_eq!((scan(&file).calls, what(&scan(&file))), (50, None));

        // The same header with other contents is no newer chunk.
        let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        bytes[last] ^= 1;
        std::fs::write(directory.file(0), &bytes).unwrap();
        let told = "a chunk of events is damaged (checksum)";
        assert_eq!(what(&scan(&file)).as_deref(), Some(told));
    }
}
