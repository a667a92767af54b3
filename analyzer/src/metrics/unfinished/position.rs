//! Where a thread stands: its last calls, and the call that it is inside.

use std::collections::VecDeque;

use trace_format::meaning::Class;
use trace_format::reader::Event;

use crate::timeline::calls::{Call, EventReader, PeerArgument, Tag};
use crate::timeline::communicators::Peer;
use crate::timeline::{Ending, RankTime};
use crate::trace::RankTrace;

/// Calls of a thread that are kept.
const LAST_CALLS: usize = 5;

/// The end of a thread's stream.
#[derive(Debug, Clone)]
pub(super) struct Tail {
    pub thread: u32,
    /// The last calls, oldest first.
    pub calls: VecDeque<Event>,
}

impl Tail {
    /// Of a rank's threads, before any event.
    pub fn of_threads(trace: &RankTrace) -> Vec<Self> {
        let calls = || VecDeque::with_capacity(LAST_CALLS + 1);
        let threads = trace.file.threads.iter();
        threads.map(|thread| Self { thread: thread.number, calls: calls() }).collect()
    }

    /// Takes the thread's next event.
    pub fn add(&mut self, event: &Event) {
        if event.is_call() {
            self.calls.push_back(*event);
            if self.calls.len() > LAST_CALLS {
                self.calls.pop_front();
            }
        }
    }

    /// The call that had not returned, or the run of polls that comes last.
    pub fn inside(&self) -> Option<&Event> {
        self.calls
            .back()
            .filter(|event| (event.end.is_none() && !event.abandoned) || event.polls.is_some())
    }
}

/// Whether a rank's last event is the last that it made: recording did not end before the program.
pub(super) fn is_known(trace: &RankTrace, time: &RankTime) -> bool {
    trace.facts.stopped.is_none()
        && !matches!(time.ending, Ending::Damaged | Ending::Stopped)
        && trace.threads.iter().all(|thread| thread.damage.is_none())
}

/// Who or what a call names as its partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partner {
    /// That rank of MPI_COMM_WORLD.
    Rank(u32),
    /// MPI_ANY_SOURCE.
    Any,
    /// MPI_PROC_NULL.
    Nobody,
    /// A process of another world, or one that is not known.
    Unknown,
}

/// What a call's record says about its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arguments {
    /// Destination, source, root or target.
    pub peer: Option<Partner>,
    /// Source of a call that sends and receives.
    pub source: Option<Partner>,
    /// Whether the peer is a root.
    pub root: bool,
    /// Tag; `None` for MPI_ANY_TAG and where there is none.
    pub tag: Option<i32>,
    /// Name of the communicator.
    pub communicator: Option<String>,
    /// Requests of a call on several.
    pub requests: Option<usize>,
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// Name of the function.
    pub function: String,
    /// Global seconds at its begin.
    pub begin_s: f64,
    /// At its end; `None` when it had not returned. Of a run of polls the end of the last.
    pub end_s: Option<f64>,
    /// Polls that found nothing, when it is a run of them.
    pub polls: Option<u64>,
    /// What its record says.
    pub arguments: Arguments,
}

/// What is needed to say where a rank stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standpoint<'a> {
    /// What is needed to read its events.
    pub reading: EventReader<'a>,
    pub time: &'a RankTime,
}

impl<'a> Standpoint<'a> {
    /// An event as a call; markers are none.
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

    /// Whom a call names.
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
            // What a receive by a message's handle says of its partner, it says when it has returned.
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
            // A window, or a file, is known by its communicator; an access has a target there.
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
