//! Where a thread stands: its events come in, its last calls and the call that it is inside go out.

use std::collections::VecDeque;

use trace_format::layout::{FIRST_FUNCTION, REGION_BEGIN, REGION_END, TOOL};
use trace_format::meaning::{Class, Meaning};
use trace_format::reader::{Event, RankFile, Thread};

use crate::timeline::communicators::{CommunicatorTable, Peer};
use crate::timeline::mpi_constants::MpiConstants;
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
    pub fn read(file: &RankFile, thread: &Thread) -> Self {
        let mut calls = VecDeque::with_capacity(LAST_CALLS + 1);
        for event in file.events(thread) {
            if matches!(event.function, TOOL | REGION_BEGIN | REGION_END) {
                continue;
            }
            calls.push_back(event);
            if calls.len() > LAST_CALLS {
                calls.pop_front();
            }
        }
        Self { thread: thread.number, calls }
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
    /// Destination, source or root.
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

/// What is needed to give events of a rank their meaning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    /// Position of the rank in the run.
    pub index: usize,
    pub trace: &'a RankTrace,
    pub time: &'a RankTime,
    pub communicators: &'a CommunicatorTable,
}

/// Calls with a root.
const ROOTED: [&str; 6] =
    ["MPI_Bcast", "MPI_Gather", "MPI_Gatherv", "MPI_Scatter", "MPI_Scatterv", "MPI_Reduce"];

impl<'a> Reading<'a> {
    pub fn name(&self, event: &Event) -> &'a str {
        self.trace.file.function_name(event.function).unwrap_or("unknown")
    }

    pub fn class(&self, event: &Event) -> Class {
        match event.function < FIRST_FUNCTION {
            true => Class::Other,
            false => Meaning::of(self.name(event)).class,
        }
    }

    pub fn record(&self, event: &Event) -> CallRecord {
        let seconds = |ticks| self.time.clock.seconds(ticks);
        CallRecord {
            function: self.name(event).to_owned(),
            begin_s: seconds(event.begin),
            end_s: event.end.map(seconds),
            polls: event.polls.map(|(count, _)| count),
            arguments: self.arguments(event),
        }
    }

    pub fn constants(&self) -> Option<MpiConstants> {
        let level = self.trace.file.fixed.level;
        MpiConstants::of_family(&self.trace.file.header.mpi_family).filter(|_| level > 0)
    }

    /// Position of a call's communicator in the table.
    pub fn communicator(&self, event: &Event) -> Option<u32> {
        let standing = self.communicators.resolve(self.index, event.communicator, event.begin);
        standing.map(|standing| standing.communicator)
    }

    pub fn partner(&self, event: &Event, peer: i32, constants: MpiConstants) -> Partner {
        if peer == constants.proc_null {
            return Partner::Nobody;
        }
        if peer == constants.any_source {
            return Partner::Any;
        }
        let standing = self.communicators.resolve(self.index, event.communicator, event.begin);
        match standing.map(|standing| self.communicators.peer(standing, peer)) {
            Some(Peer::World(rank)) => Partner::Rank(rank),
            _ => Partner::Unknown,
        }
    }

    fn arguments(&self, event: &Event) -> Arguments {
        let mut arguments = Arguments::default();
        let Some(constants) = self.constants() else { return arguments };
        let (name, class) = (self.name(event), self.class(event));
        let on_communicator = match class {
            Class::PointToPoint => has_peer(name),
            Class::Probe | Class::Collective | Class::Communicators => true,
            _ => false,
        };
        if on_communicator && event.communicator != 0 {
            let label = self.communicator(event).map(|c| self.communicators.label(c));
            arguments.communicator = label;
        }
        match class {
            Class::PointToPoint | Class::Probe if on_communicator => {
                // A status of a probe or receive that was cancelled may hold anything.
                arguments.peer = Some(self.partner(event, event.peer, constants));
                arguments.tag = Some(event.tag).filter(|tag| *tag != constants.any_tag);
                if let Some(half) = event.receive {
                    arguments.source = Some(self.partner(event, half.peer, constants));
                }
            }
            Class::Collective if ROOTED.contains(&blocking(name).as_str()) => {
                arguments.peer = Some(self.partner(event, event.peer, constants));
                arguments.root = true;
            }
            Class::Completion => {
                let requests = self.trace.file.requests(event).count();
                arguments.requests = Some(requests).filter(|count| *count > 0);
            }
            _ => {}
        }
        arguments
    }
}

/// Whether a point-to-point call names a partner itself.
fn has_peer(name: &str) -> bool {
    let without = ["MPI_Start", "MPI_Startall", "MPI_Cancel", "MPI_Mrecv", "MPI_Imrecv"];
    let partitioned = ["MPI_Pready", "MPI_Parrived"].iter().any(|prefix| name.starts_with(prefix));
    !without.contains(&name) && !partitioned
}

/// `MPI_Ibcast` and `MPI_Bcast_init` give `MPI_Bcast`.
fn blocking(name: &str) -> String {
    let stem = name.strip_suffix("_init").unwrap_or(name);
    match stem.strip_prefix("MPI_I") {
        Some(rest) => {
            let mut letters = rest.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            format!("MPI_{first}{}", letters.as_str())
        }
        None => stem.to_owned(),
    }
}
