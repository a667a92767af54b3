//! Provides writers of formats with the content of a run: a [`Head`] (participants, and the meaning
//! of numbers), then the [`Call`]s that a [`Choice`] selects, one by one.
//!
//! Times are nanoseconds of the global timeline: 0 is when the first rank left MPI_Init, so
//! MPI_Init itself is before 0.

mod head;

use std::ops::Range;
use std::path::Path;

use trace_format::errors::ErrorClasses;
use trace_format::functions::FIRST_FUNCTION;
use trace_format::header::Definition;
use trace_format::markers::ToolReason;
use trace_format::reader::{Event, RequestState};

use super::progress::Progress;
use crate::analysis::Analysis;
use crate::string_table::StringTable;
use crate::timeline::calls::{EventReader, PeerArgument, Received, Record, Tag};
use crate::timeline::communicators::{CommunicatorTable, Membership, Peer};
use crate::timeline::mpi_constants::MpiConstants;
use crate::timeline::{GlobalTimeline, whole_ns};
use crate::trace::{RankTrace, Run};
pub use head::{Function, Head, HeadCommunicator, HeadRank};
use head::{functions, head_communicators};

/// Selects the part of a run to export.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only these ranks; a message is exported if both its ends are among them.
    pub ranks: Option<Vec<Range<u32>>>,
    /// Only what begins in these seconds of the global timeline (for a message: its send).
    pub window_s: Option<Range<f64>>,
}

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A call of the function with this number.
    Call(u32),
    /// Time of the recorder.
    Tool(ToolReason),
    /// A parallel region of OpenMP ends, or there were calls on a file: see [`super::beside`].
    Beside,
    /// A parallel region that begins at the place with this number begins: see [`super::beside::with_teams`].
    TeamBegin(u32),
    /// It ends.
    TeamEnd(u32),
    /// The region with this number begins.
    RegionBegin(u32),
    /// The region with this number ends.
    RegionEnd(u32),
}

/// An event of an exported rank.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Position among [`Head::ranks`].
    pub rank: usize,
    /// Thread of the rank.
    pub thread: u32,
    /// Its kind.
    pub what: What,
    /// Begin, nanoseconds.
    pub begin_ns: i64,
    /// End, nanoseconds; `None` if the call did not return.
    pub end_ns: Option<i64>,
    /// The event on the rank's own counter.
    pub event: Event,
}

/// Attributes of a call that its function has and that are known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Attributes {
    /// Communicator, and the rank's position in it.
    pub standing: Option<Membership>,
    /// Destination, source, root or target as a rank of the communicator; `None` for a wildcard.
    pub peer: Option<i32>,
    /// The same as a rank of MPI_COMM_WORLD.
    pub peer_rank: Option<u32>,
    /// Message tag; `None` for a wildcard.
    pub tag: Option<i32>,
    /// Bytes sent, or received by a receive or completion; for a posted receive those of the
    /// buffer.
    pub bytes: Option<u64>,
    /// Bytes received by collective operations, calls that fetch, and calls that send and receive.
    pub received_bytes: Option<u64>,
    /// Request or message, shortened.
    pub request: Option<u32>,
    /// For a call that waits or tests for one request: whether the request completed, and was
    /// cancelled.
    pub completed: Option<(bool, bool)>,
    /// Receiving half of a call that sends and receives.
    pub receive: Option<Received>,
    /// Floating-point operations of a compute call.
    pub flops: Option<f64>,
}

#[derive(Clone, Copy)]
pub struct Export<'a> {
    pub content: &'a Content<'a>,
    /// Folder for unnamed files with what does not fit in memory.
    pub scratch: &'a Path,
    pub progress: &'a dyn Progress,
}

/// A run that is exported.
pub struct Content<'a> {
    pub run: &'a Run,
    pub timeline: &'a GlobalTimeline,
    /// The selected part.
    pub choice: &'a Choice,
    /// Participants, and the meaning of numbers.
    pub head: Head,
    /// Readers of each rank's events, by its position in the run.
    readings: Vec<EventReader<'a>>,
    /// Position among [`Head::ranks`] of each position in the run.
    exported: Vec<Option<usize>>,
}

impl<'a> Content<'a> {
    /// Prepares the export of a run.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
        choice: &'a Choice,
    ) -> Self {
        let (mut names, mut regions) = (StringTable::default(), StringTable::default());
        let wanted = |rank: u32| {
            choice.ranks.as_ref().is_none_or(|ranges| ranges.iter().any(|r| r.contains(&rank)))
        };
        let mut ranks: Vec<HeadRank> = Vec::new();
        let mut exported = vec![None; run.ranks.len()];
        for (position, trace) in run.ranks.iter().enumerate().filter(|(_, t)| wanted(t.rank)) {
            exported[position] = Some(ranks.len());
            let time = &timeline.ranks[position];
            let at = |ticks: u64| time.clock.whole_ns(ticks);
            let last = trace.threads.iter().filter_map(|t| t.last_ticks).max().map(at);
            let end_ns = at(time.end_ticks);
            let ids = trace.facts.regions.iter();
            ranks.push(HeadRank {
                rank: trace.rank,
                position,
                host: trace.file.header.host.clone(),
                pid: trace.file.fixed.pid,
                threads: trace.file.threads.iter().map(|thread| thread.number).collect(),
                begin_ns: at(time.begin_ticks),
                end_ns,
                last_ns: last.map_or(end_ns, |last| last.max(end_ns)),
                bound_ns: time.clock.bound_ns,
                alignment: time.clock.alignment,
                finalized: trace.facts.finalized(),
                functions: trace
                    .file
                    .function_names()
                    .iter()
                    .map(|name| names.number(name))
                    .collect(),
                regions: ids.map(|(id, name)| (*id, regions.number(name))).collect(),
            });
        }
        let first = ranks.iter().flat_map(|rank| {
            let (trace, clock) = (&run.ranks[rank.position], &timeline.ranks[rank.position].clock);
            let ticks = trace.threads.iter().filter_map(|thread| thread.first_ticks);
            ticks.map(|ticks| clock.whole_ns(ticks)).chain([rank.begin_ns])
        });
        let first_ns = first.min().unwrap_or(0);
        let last_ns = ranks.iter().map(|rank| rank.last_ns).max().unwrap_or(0);
        let header = run.ranks.first().map(|trace| &trace.file.header);
        let of_header = |field: fn(&trace_format::header::FileHeader) -> &String| {
            header.map(|header| field(header).clone()).unwrap_or_default()
        };
        let title = run.directory.file_name().unwrap_or(run.directory.as_os_str());
        let head = Head {
            title: title.to_string_lossy().into_owned(),
            program: of_header(|header| &header.program),
            mpi_library: of_header(|header| &header.mpi_library),
            world_size: run.world_size,
            ranks,
            functions: functions(names.into_strings()),
            regions: regions.into_strings(),
            communicators: head_communicators(communicators),
            first_ns,
            last_ns,
            zero_unix_ns: timeline.utc.and_then(|utc| i64::try_from(utc.zero_ns).ok()),
            bound_ns: timeline.bound_ns,
            parameters: run.parameters(),
            compute: of_header(|header| &header.compute),
            level: run.ranks.first().map_or(0, |trace| trace.file.fixed.level),
        };
        let ranks = run.ranks.iter().enumerate();
        let readings =
            ranks.map(|(position, trace)| EventReader::new(position, trace, communicators));
        let readings = readings.collect();
        Self { run, timeline, choice, head, readings, exported }
    }

    /// Position among [`Head::ranks`] of a rank of MPI_COMM_WORLD.
    pub fn exported_rank(&self, rank: u32) -> Option<usize> {
        self.exported.get(self.run.position_of(rank)?).copied().flatten()
    }

    /// Nanoseconds of a counter reading of an exported rank.
    pub fn time_ns(&self, rank: usize, ticks: u64) -> i64 {
        self.timeline.ranks[self.head.ranks[rank].position].clock.whole_ns(ticks)
    }

    /// Whether the choice includes something that begins at this time.
    pub fn wants_time(&self, begin_ns: i64) -> bool {
        let window = self.choice.window_s.as_ref();
        window.is_none_or(|w| whole_ns(w.start) <= begin_ns && begin_ns < whole_ns(w.end))
    }

    /// Whether calls on files were recorded.
    pub fn has_file_calls(&self) -> bool {
        let mut definitions = self.run.ranks.iter().flat_map(|rank| &rank.file.definitions);
        definitions.any(|of| matches!(of, Definition::FileRecording(_)))
    }

    /// Whether parallel regions were recorded.
    pub fn has_teams(&self) -> bool {
        let mut definitions = self.run.ranks.iter().flat_map(|rank| &rank.file.definitions);
        definitions.any(|of| matches!(of, Definition::OpenMp { .. }))
    }

    /// The trace of an exported rank.
    pub fn trace(&self, rank: usize) -> &'a RankTrace {
        &self.run.ranks[self.head.ranks[rank].position]
    }

    /// The constants of a rank's MPI library; `None` if no attributes were recorded.
    pub fn constants(&self, rank: usize) -> Option<MpiConstants> {
        self.reading(rank).constants
    }

    /// The reader of an exported rank's events.
    fn reading(&self, rank: usize) -> &EventReader<'a> {
        &self.readings[self.head.ranks[rank].position]
    }

    /// All calls in order of their beginning on the global timeline, with regions and recorder
    /// time.
    pub fn calls(&self) -> impl Iterator<Item = Call> + '_ {
        self.calls_of_positions(0..self.run.ranks.len())
    }

    /// The calls of one rank, by its position among [`Head::ranks`].
    pub fn calls_of(&self, rank: usize) -> impl Iterator<Item = Call> + '_ {
        let position = self.head.ranks[rank].position;
        self.calls_of_positions(position..position + 1)
    }

    /// The calls of consecutive ranks, by their positions among [`Head::ranks`], in order of their
    /// beginning; of those that begin in the same nanosecond the lowest rank's comes first.
    pub fn calls_of_ranks(&self, ranks: Range<usize>) -> impl Iterator<Item = Call> + '_ {
        let of_ranks = &self.head.ranks[ranks];
        let positions = match (of_ranks.first(), of_ranks.last()) {
            (Some(first), Some(last)) => first.position..last.position + 1,
            _ => 0..0,
        };
        self.calls_of_positions(positions)
    }

    /// All calls of one rank, those outside of the window of time, too.
    pub fn calls_of_any_time(&self, rank: usize) -> impl Iterator<Item = Call> + '_ {
        let position = self.head.ranks[rank].position;
        self.calls_at_any_time(position..position + 1)
    }

    fn calls_of_positions(&self, positions: Range<usize>) -> impl Iterator<Item = Call> + '_ {
        self.calls_at_any_time(positions).filter(|call| self.wants_time(call.begin_ns))
    }

    fn calls_at_any_time(&self, positions: Range<usize>) -> impl Iterator<Item = Call> + '_ {
        let exported = positions.filter(|position| self.exported[*position].is_some());
        let events = Analysis::new(self.run, self.timeline).in_order(exported, |_, _| true);
        events.filter_map(|(position, thread, event)| {
            self.call(self.exported[position]?, thread, event)
        })
    }

    fn call(&self, rank: usize, thread: u32, event: Event) -> Option<Call> {
        let head = &self.head.ranks[rank];
        let region = |id: u32| head.regions.get(&id).copied();
        let what = match self.reading(rank).record(&event) {
            Record::Tool(Some(ToolReason::Team | ToolReason::FileCalls)) => What::Beside,
            Record::Tool(reason) => What::Tool(reason?),
            Record::Counter(_) => What::Tool(ToolReason::Counters),
            Record::RegionBegin(id) => What::RegionBegin(region(id)?),
            Record::RegionEnd(id) => What::RegionEnd(region(id)?),
            Record::Call(_) => {
                let index = usize::from(event.function.checked_sub(FIRST_FUNCTION)?);
                What::Call(*head.functions.get(index)?)
            }
        };
        Some(Call {
            rank,
            thread,
            what,
            begin_ns: self.time_ns(rank, event.begin),
            end_ns: event.end.map(|end| self.time_ns(rank, end)),
            event,
        })
    }

    /// Error classes of a rank's MPI library.
    pub fn errors(&self, rank: usize) -> Option<ErrorClasses> {
        self.reading(rank).errors
    }

    /// Name of the error that a call returned, if any.
    pub fn error_name(&self, call: &Call) -> Option<String> {
        let error = call.event.error;
        (error != 0).then(|| self.reading(call.rank).error_name(error))
    }

    pub fn attributes(&self, call: &Call) -> Attributes {
        let mut attributes = Attributes::default();
        let Some(decoded) = self.reading(call.rank).call(&call.event) else { return attributes };
        attributes.standing = decoded.communicator();
        attributes.completed = decoded.outcome().map(|o| (o.completed, o.cancelled));
        attributes.peer = decoded.peer().and_then(|peer| match peer {
            PeerArgument::Rank(rank) => Some(rank),
            _ => None,
        });
        attributes.peer_rank = match decoded.partner() {
            Some(Peer::World(rank)) => Some(rank),
            _ => None,
        };
        attributes.tag = decoded.tag().and_then(Tag::known);
        attributes.bytes = decoded.bytes();
        attributes.receive = decoded.receive();
        attributes.received_bytes =
            attributes.receive.map(|half| half.bytes).or_else(|| decoded.received_bytes());
        attributes.request = decoded.request();
        attributes.flops = decoded.flops();
        attributes
    }

    /// Requests of a call on several, in the order of its array.
    pub fn requests(&self, call: &Call) -> impl Iterator<Item = RequestState> + use<'a> {
        self.trace(call.rank).file.requests(&call.event)
    }

    pub fn function(&self, call: &Call) -> Option<&Function> {
        match call.what {
            What::Call(function) => self.head.functions.get(function as usize),
            _ => None,
        }
    }

    /// About how many calls of a rank, by its position among [`Head::ranks`], are exported.
    pub fn expected_calls(&self, rank: usize) -> u64 {
        let HeadRank { position, begin_ns, last_ns, .. } = self.head.ranks[rank];
        let threads = self.run.ranks[position].threads.iter();
        let calls = threads.map(|thread| thread.calls).fold(0, u64::saturating_add);
        let Some(window) = &self.choice.window_s else { return calls };
        let (from, to) = (whole_ns(window.start).max(begin_ns), whole_ns(window.end).min(last_ns));
        let part = to.saturating_sub(from).max(0) as f64 / (last_ns - begin_ns).max(1) as f64;
        (calls as f64 * part.min(1.0)).ceil() as u64
    }

    /// Upper limit of the number of events of all exported ranks: the length of a pass over all
    /// calls.
    pub fn most_events(&self) -> u64 {
        let ranks = self.head.ranks.iter();
        ranks.map(|rank| self.run.ranks[rank.position].file.most_events()).sum()
    }
}
