//! Interprets one event of a rank as a [`Record`]; a [`Call`] is a view whose methods return its
//! arguments.
//!
//! The meaning of an event's fields depends on the function: the communicator field of a completion
//! holds its outcome, the bytes of a call that makes an object hold its number. Stages above the
//! timeline do not need to know this: they use a [`Call`]. It is a borrowed view and not a copy,
//! because most callers want one or two arguments, and those that show calls want every argument
//! alike, without matching an enumeration of kinds. Matching reads the slots directly, for speed.

use trace_format::errors::{ErrorClasses, class_name};
use trace_format::markers::{CounterSlot, ToolReason};
use trace_format::meaning::{Class, Made, Meaning, Object, Peer as Role};
use trace_format::reader::{Event, EventKind, Half, RequestState};

use super::communicators::{CommunicatorTable, Membership, Peer};
use super::mpi_constants::MpiConstants;
use crate::trace::RankTrace;

/// What is needed to read the events of a rank.
#[derive(Debug, Clone, Copy)]
pub struct EventReader<'a> {
    /// Position of the rank in the run.
    pub position: usize,
    pub trace: &'a RankTrace,
    /// The run's communicators.
    pub communicators: &'a CommunicatorTable,
    /// Constants of its MPI library; `None` if no arguments were recorded (level 0, or a library
    /// that the recorder did not know).
    pub constants: Option<MpiConstants>,
    /// Error classes of its MPI library, if known.
    pub errors: Option<ErrorClasses>,
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub enum Record<'r> {
    /// A call of MPI or of an interposed function, or a run of empty polls.
    Call(Call<'r>),
    /// Time of the recorder; the reason is `None` if this version does not know it.
    Tool(Option<ToolReason>),
    /// Time of the recorder in which it read a hardware counter.
    Counter(CounterSlot),
    /// The region with this id begins.
    RegionBegin(u32),
    /// The region with this id ends.
    RegionEnd(u32),
}

/// A call as it was recorded.
#[derive(Debug, Clone, Copy)]
pub struct Call<'r> {
    /// Meaning of its function.
    pub meaning: &'static Meaning,
    /// The event on the rank's own counter.
    pub event: &'r Event,
    reading: &'r EventReader<'r>,
}

/// The rank or wildcard that an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerArgument {
    /// A rank of the call's communicator; for an intercommunicator a rank of the other group.
    Rank(i32),
    /// MPI_ANY_SOURCE.
    AnySource,
    /// MPI_PROC_NULL.
    ProcNull,
    /// MPI_ROOT.
    Root,
}

/// A tag argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// This one.
    Is(i32),
    /// MPI_ANY_TAG.
    Any,
}

impl Tag {
    /// The tag, unless it is a wildcard.
    pub fn known(self) -> Option<i32> {
        match self {
            Self::Is(tag) => Some(tag),
            Self::Any => None,
        }
    }
}

/// Outcome for the request of a call that waits or tests for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the call completed it.
    pub completed: bool,
    /// Whether its operation was cancelled.
    pub cancelled: bool,
}

/// What a call created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    Communicator(Membership),
    /// A window, a file or an otherwise unknown communicator, by its number on the rank.
    Number(u64),
}

/// The receiving half of a call that sends and receives, or the contents of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Source.
    pub peer: PeerArgument,
    pub tag: Tag,
    pub bytes: u64,
}

impl<'a> EventReader<'a> {
    /// Reads events of the rank at a position of the run.
    pub fn new(
        position: usize,
        trace: &'a RankTrace,
        communicators: &'a CommunicatorTable,
    ) -> Self {
        let family = &trace.file.header.mpi_family;
        let constants = MpiConstants::of_family(family).filter(|_| trace.file.fixed.level > 0);
        let errors = ErrorClasses::of_family(family);
        Self { position, trace, communicators, constants, errors }
    }

    /// Interprets an event.
    pub fn record<'r>(&'r self, event: &'r Event) -> Record<'r> {
        match event.kind() {
            EventKind::Tool => match CounterSlot::from_payload(event.payload) {
                Some(reading) => Record::Counter(reading),
                None => Record::Tool(ToolReason::from_number(event.peer)),
            },
            EventKind::RegionBegin(id) => Record::RegionBegin(id),
            EventKind::RegionEnd(id) => Record::RegionEnd(id),
            EventKind::Call(function) => {
                let meaning = self.trace.file.meaning(function);
                let meaning = meaning.unwrap_or_else(|| Meaning::by_name(""));
                Record::Call(Call { meaning, event, reading: self })
            }
        }
    }

    /// Interprets an event as a call; `None` if it is not one.
    pub fn call<'r>(&'r self, event: &'r Event) -> Option<Call<'r>> {
        match self.record(event) {
            Record::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Interprets the value of a peer argument.
    fn peer_argument(constants: MpiConstants, value: i32) -> PeerArgument {
        match value {
            any if any == constants.any_source => PeerArgument::AnySource,
            null if null == constants.proc_null => PeerArgument::ProcNull,
            root if root == constants.root => PeerArgument::Root,
            rank => PeerArgument::Rank(rank),
        }
    }

    fn tag(constants: MpiConstants, value: i32) -> Tag {
        if value == constants.any_tag { Tag::Any } else { Tag::Is(value) }
    }

    fn received(constants: MpiConstants, half: Half) -> Received {
        let peer = Self::peer_argument(constants, half.peer);
        let bytes = if peer == PeerArgument::ProcNull { 0 } else { half.bytes };
        Received { peer, tag: Self::tag(constants, half.tag), bytes }
    }

    /// The name of an error class of this rank's library.
    pub fn error_name(&self, class: u32) -> String {
        class_name(&self.trace.file.header.mpi_family, class)
    }
}

impl<'r> Call<'r> {
    /// Name of the function in the file.
    pub fn function(&self) -> &'r str {
        self.reading.trace.file.function_name(self.event.function).unwrap_or("unknown")
    }

    /// The rank's constants, if the function's arguments were recorded.
    fn constants(&self) -> Option<MpiConstants> {
        self.reading.constants.filter(|_| self.meaning.class != Class::Compute)
    }

    /// Whether it has a communicator argument, known or not.
    pub fn has_communicator(&self) -> bool {
        self.constants().is_some() && self.meaning.fields.communicator
    }

    /// Its communicator (for a window or file, the communicator of that object) and the rank's
    /// group in it.
    pub fn communicator(&self) -> Option<Membership> {
        let Self { reading, event, .. } = self;
        let resolve =
            || reading.communicators.resolve(reading.position, event.communicator, event.begin);
        self.has_communicator().then(resolve).flatten()
    }

    /// Outcome for the request, if the call waits or tests for one or finds one of several.
    pub fn outcome(&self) -> Option<Outcome> {
        use trace_format::meaning::Operation::CompleteOne;
        let has_outcome = self.constants().is_some() && self.meaning.operation == CompleteOne;
        let (completed, cancelled) = self.event.completion();
        has_outcome.then_some(Outcome { completed, cancelled })
    }

    fn completed(&self) -> bool {
        self.outcome().is_some_and(|outcome| outcome.completed)
    }

    /// Destination, source, root or target; for a completion the source in its status.
    pub fn peer(&self) -> Option<PeerArgument> {
        let constants = self.constants()?;
        let has_peer = self.meaning.fields.peer.is_on_communicator() || self.completed();
        has_peer.then(|| EventReader::peer_argument(constants, self.event.peer))
    }

    /// The process that [`Call::peer`] names.
    pub fn partner(&self) -> Option<Peer> {
        match self.peer()? {
            PeerArgument::Rank(rank) => self.partner_of(rank),
            _ => None,
        }
    }

    /// The process with a rank in its communicator.
    pub fn partner_of(&self, rank: i32) -> Option<Peer> {
        self.communicator().map(|membership| self.reading.communicators.peer(membership, rank))
    }

    /// Its tag, or the tag of the message that it completed.
    pub fn tag(&self) -> Option<Tag> {
        let constants = self.constants()?;
        let has_tag = self.meaning.fields.tag || self.completed();
        has_tag.then(|| EventReader::tag(constants, self.event.tag))
    }

    /// Whether its peer is MPI_PROC_NULL, so that it transfers nothing.
    pub fn is_with_proc_null(&self) -> bool {
        self.meaning.fields.peer != Role::Nobody && self.peer() == Some(PeerArgument::ProcNull)
    }

    /// Bytes sent, or received by a receive or completion; for a posted receive the size of its
    /// buffer; for a compute function the size of its operands.
    pub fn bytes(&self) -> Option<u64> {
        if self.meaning.class == Class::Compute {
            return Some(self.event.payload[1]);
        }
        self.constants()?;
        match () {
            () if self.completed() => Some(self.event.sent),
            () if !self.meaning.fields.bytes => None,
            () if self.is_with_proc_null() => Some(0),
            () => Some(self.event.sent),
        }
    }

    /// Bytes received in addition to those sent, for collective operations and calls that fetch.
    pub fn received_bytes(&self) -> Option<u64> {
        self.constants()?;
        let receives = self.meaning.fields.received || self.event.received > 0;
        let is_null = self.is_with_proc_null();
        (self.meaning.fields.bytes && receives).then_some(if is_null {
            0
        } else {
            self.event.received
        })
    }

    /// The receiving half of a call that sends and receives.
    pub fn receive(&self) -> Option<Received> {
        let constants = self.constants()?;
        self.event.receive.map(|half| EventReader::received(constants, half))
    }

    /// Its request or message handle, truncated.
    pub fn request(&self) -> Option<u32> {
        self.constants()?;
        let request = self.event.request;
        (self.meaning.fields.request && request != 0).then_some(request)
    }

    /// Requests of a call on several requests, in the order of its array.
    pub fn requests(&self) -> impl Iterator<Item = RequestState> + use<'r> {
        let count = if self.constants().is_some() { usize::MAX } else { 0 };
        self.reading.trace.file.requests(self.event).take(count)
    }

    /// Name of the error in a request's status.
    pub fn error_of(&self, state: &RequestState) -> Option<String> {
        (state.error != 0).then(|| self.reading.error_name(state.error))
    }

    /// Contents of the status of a completed request.
    pub fn status(&self, state: &RequestState) -> Option<Received> {
        let RequestState { peer, tag, bytes, completed, .. } = *state;
        let constants = self.constants().filter(|_| completed)?;
        Some(EventReader::received(constants, Half { peer, tag, bytes }))
    }

    /// The window or file that it uses, by its number on the rank.
    pub fn object(&self) -> Option<(Object, u32)> {
        self.constants()?;
        self.meaning.fields.object.map(|object| (object, self.event.object))
    }

    /// The object that it created.
    pub fn created(&self) -> Option<Created> {
        self.constants()?;
        let makes = self.meaning.fields.makes?;
        let Event { sent, end, .. } = *self.event;
        let end = end.filter(|_| sent != 0)?;
        // A communicator's definition follows the call that creates it.
        let defined = || {
            let EventReader { position, communicators, .. } = *self.reading;
            communicators.next_meaning(position, sent as u16, end)
        };
        let communicator = (makes == Made::Communicator).then(defined).flatten();
        Some(communicator.map_or(Created::Number(sent), Created::Communicator))
    }

    /// Floating-point operations of a compute function, if the recorded number is finite.
    pub fn flops(&self) -> Option<f64> {
        let computes = self.meaning.class == Class::Compute;
        computes.then(|| f64::from_bits(self.event.payload[0])).filter(|flops| flops.is_finite())
    }
}
