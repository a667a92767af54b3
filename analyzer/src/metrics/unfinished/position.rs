//! The position of a thread: its last calls, and the call that it is inside.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use trace_format::meaning::Class;
use trace_format::reader::Event;

use crate::timeline::calls::{Call, EventReader, PeerArgument, Tag};
use crate::timeline::communicators::Peer;
use crate::timeline::{Ending, RankTime};
use crate::trace::RankTrace;
use crate::trace::modules::{in_file, module_of, modules};
use crate::trace::symbols::{SourceLocation, Symbols};

/// How many of a thread's last calls are kept.
const LAST_CALLS: usize = 5;

/// The end of a thread's sequence of events.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecentCalls {
    pub thread: u32,
    /// The last calls, oldest first.
    pub calls: VecDeque<Event>,
}

impl RecentCalls {
    /// Empty tails for the threads of a rank.
    pub fn of_threads(trace: &RankTrace) -> Vec<Self> {
        let calls = || VecDeque::with_capacity(LAST_CALLS + 1);
        let threads = trace.file.threads.iter();
        threads.map(|thread| Self { thread: thread.number, calls: calls() }).collect()
    }

    /// Adds the thread's next event.
    pub fn add(&mut self, event: &Event) {
        if event.is_call() {
            self.calls.push_back(*event);
            if self.calls.len() > LAST_CALLS {
                self.calls.pop_front();
            }
        }
    }

    /// The call that has not returned, or the run of polls at the end.
    pub fn inside(&self) -> Option<&Event> {
        self.calls
            .back()
            .filter(|event| (event.end.is_none() && !event.abandoned) || event.polls.is_some())
    }
}

/// Whether a rank's last recorded event is its last event, that is, recording did not end before
/// the program.
pub(super) fn is_known(trace: &RankTrace, time: &RankTime) -> bool {
    trace.facts.stopped.is_none()
        && !matches!(time.ending, Ending::Damaged | Ending::Stopped)
        && trace.threads.iter().all(|thread| thread.damage.is_none())
}

/// The partner that a call names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Partner {
    /// MPI_ANY_SOURCE.
    Any,
    /// MPI_PROC_NULL.
    Nobody,
    /// A process of another world, or an unknown one.
    Unknown,
    /// This rank of MPI_COMM_WORLD.
    #[serde(untagged)]
    Rank(u32),
}

/// The recorded arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(into = "ArgumentsPart")]
pub struct Arguments {
    /// Destination, source, root or target.
    pub peer: Option<Partner>,
    /// Source of a call that sends and receives.
    pub source: Option<Partner>,
    /// Whether the peer is a root.
    pub root: bool,
    /// Tag; `None` for MPI_ANY_TAG and for calls without a tag.
    pub tag: Option<i32>,
    /// Name of the communicator.
    pub communicator: Option<String>,
    /// Number of requests that the call completes.
    pub requests: Option<usize>,
}

/// The arguments of a call, as documents name them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ArgumentsPart {
    /// Destination, source or target; null: not recorded, or none.
    peer: Option<Partner>,
    /// Source of a call that sends and receives.
    source: Option<Partner>,
    /// Root of a collective operation.
    root: Option<Partner>,
    /// Tag; null for MPI_ANY_TAG and for calls without a tag.
    tag: Option<i32>,
    /// Name of the communicator.
    communicator: Option<String>,
    /// Number of requests that the call completes.
    requests: Option<usize>,
}

impl From<Arguments> for ArgumentsPart {
    fn from(from: Arguments) -> Self {
        let Arguments { peer, source, root, tag, communicator, requests } = from;
        let (peer, root) = if root { (None, peer) } else { (peer, None) };
        Self { peer, source, root, tag, communicator, requests }
    }
}

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallRecord {
    /// Name of the function.
    pub function: String,
    /// Global seconds at its start.
    pub begin_s: f64,
    /// Global seconds at its end, or at the end of the last poll of a run; `None` if it has not
    /// returned.
    pub end_s: Option<f64>,
    /// Number of polls that found nothing, if it is a run of them.
    pub polls: Option<u64>,
    /// Its recorded arguments.
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "ArgumentsPart"))]
    pub arguments: Arguments,
}

/// What is needed to interpret the events of a rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankContext<'a> {
    pub reading: EventReader<'a>,
    pub time: &'a RankTime,
}

impl<'a> RankContext<'a> {
    /// An event as a call; `None` for markers.
    pub fn call<'e>(&'e self, event: &'e Event) -> Option<Call<'e>> {
        self.reading.call(event)
    }

    pub fn record(&self, event: &Event) -> CallRecord {
        let seconds = |ticks| self.time.clock.seconds(ticks);
        let call = self.call(event);
        CallRecord {
            function: call.as_ref().map_or("unknown", Call::function).to_owned(),
            begin_s: seconds(event.begin),
            end_s: event.end.map(seconds),
            polls: event.polls.map(|(count, _)| count),
            arguments: call.map(|call| self.arguments(&call)).unwrap_or_default(),
        }
    }

    /// Where the program made a call, as far as it is known.
    pub fn place(&self, event: &Event, symbols: &mut Symbols) -> SourceLocation {
        let modules = modules(&self.reading.trace.file.definitions);
        let known = event.site.and_then(|(address, _)| {
            let module = modules[module_of(&modules, address, event.begin)?];
            Some(in_file(Some(module), address))
        });
        known.map_or_else(SourceLocation::default, |(path, id, address)| {
            symbols.location(path, id, address)
        })
    }

    pub fn partner(&self, call: &Call, named: PeerArgument) -> Partner {
        match named {
            PeerArgument::ProcNull => Partner::Nobody,
            PeerArgument::AnySource => Partner::Any,
            PeerArgument::Root => Partner::Unknown,
            PeerArgument::Rank(rank) => match call.partner_of(rank) {
                Some(Peer::World(rank)) => Partner::Rank(rank),
                _ => Partner::Unknown,
            },
        }
    }

    fn arguments(&self, call: &Call) -> Arguments {
        let mut arguments = Arguments::default();
        let fields = &call.meaning.fields;
        let label = |call: &Call| {
            let standing = call.communicator()?;
            Some(self.reading.communicators.label(standing.communicator))
        };
        match call.meaning.class {
            // A receive by message handle records its partner only when it returns.
            Class::PointToPoint | Class::Probe if fields.communicator => {
                arguments.communicator = label(call);
                arguments.peer = call.peer().map(|peer| self.partner(call, peer));
                arguments.tag = call.tag().and_then(Tag::known);
                arguments.source = call.receive().map(|half| self.partner(call, half.peer));
            }
            Class::Collective => {
                arguments.communicator = label(call);
                arguments.peer = call.peer().map(|peer| self.partner(call, peer));
                arguments.root = arguments.peer.is_some();
            }
            Class::Communicators => arguments.communicator = label(call),
            // Windows and files are identified by their communicator; an access names a target in
            // it.
            Class::OneSided | Class::Io => {
                arguments.communicator = label(call);
                arguments.peer = call.peer().map(|peer| self.partner(call, peer));
            }
            Class::Completion => {
                arguments.requests = Some(call.requests().count()).filter(|count| *count > 0);
            }
            _ => {}
        }
        arguments
    }
}
