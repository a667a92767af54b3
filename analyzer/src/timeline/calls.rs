//! Reads one event of a rank: a [`Record`], and for a call a view whose methods are its arguments.
//!
//! A slot's fields hold different things by the function (the tag's field a tag, bytes received, or the
//! number of a window; the communicator's field of a completion its outcome). Stages above the timeline need
//! not know: they ask a [`Call`]. It is a borrowed view, not a copy, as most callers want one or two
//! arguments. Matching, for speed, reads slots itself.

use trace_format::errors::{ErrorClasses, class_name};
use trace_format::markers::{CounterSlot, ToolReason};
use trace_format::meaning::{Class, Made, Meaning, Object, Peer as Role};
use trace_format::reader::{Event, EventKind, Half, RequestState};

use super::communicators::{CommunicatorTable, Peer, Standing};
use super::mpi_constants::MpiConstants;
use crate::trace::RankTrace;

/// What is needed to read the events of a rank.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// Position of the rank in the run.
    pub position: usize,
    /// Its file.
    pub trace: &'a RankTrace,
    /// The run's communicators.
    pub communicators: &'a CommunicatorTable,
    /// Constants of its MPI library; `None` where no arguments were recorded (level 0, or a library that
    /// the recorder did not know).
    pub constants: Option<MpiConstants>,
    /// Error classes of its MPI library, where they are known.
    pub errors: Option<ErrorClasses>,
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub enum Record<'r> {
    /// A call of MPI or of an interposed function, or a run of empty polls.
    Call(Call<'r>),
    /// The recorder's own time; `None`: for a reason that this version does not know.
    Tool(Option<ToolReason>),
    /// The recorder's own time in which it read a counter.
    Counter(CounterSlot),
    /// A region of this id begins.
    RegionBegin(u32),
    /// A region of this id ends.
    RegionEnd(u32),
}

/// A call as its record has it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'r> {
    /// What its function means.
    pub meaning: &'static Meaning,
    /// The event on the rank's own counter.
    pub event: &'r Event,
    reading: &'r Reading<'r>,
}

/// Whom an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A rank of the call's communicator (of the other group of an intercommunicator).
    Rank(i32),
    /// MPI_ANY_SOURCE.
    AnySource,
    /// MPI_PROC_NULL.
    ProcNull,
    /// MPI_ROOT.
    Root,
}

/// A tag as an argument has it.
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

/// What became of the request of a call that waits or tests for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The call completed it.
    pub completed: bool,
    /// By cancelling its operation.
    pub cancelled: bool,
}

/// What a call made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Making {
    /// A communicator.
    Communicator(Standing),
    /// A window, a file or a communicator that is not known further, by its number on the rank.
    Number(u64),
}

/// The receiving half of a call that sends and receives, or what a status says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Source.
    pub peer: Named,
    /// Tag.
    pub tag: Tag,
    /// Bytes.
    pub bytes: u64,
}

impl<'a> Reading<'a> {
    /// Of the rank at a position of the run.
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

    /// What an event is.
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
                let meaning = meaning.unwrap_or_else(|| Meaning::of(""));
                Record::Call(Call { meaning, event, reading: self })
            }
        }
    }

    /// An event as a call, where it is one.
    pub fn call<'r>(&'r self, event: &'r Event) -> Option<Call<'r>> {
        match self.record(event) {
            Record::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Whom a value of a peer argument names.
    fn named(constants: MpiConstants, value: i32) -> Named {
        match value {
            any if any == constants.any_source => Named::AnySource,
            nobody if nobody == constants.proc_null => Named::ProcNull,
            root if root == constants.root => Named::Root,
            rank => Named::Rank(rank),
        }
    }

    fn tag(constants: MpiConstants, value: i32) -> Tag {
        if value == constants.any_tag { Tag::Any } else { Tag::Is(value) }
    }

    fn received(constants: MpiConstants, half: Half) -> Received {
        let peer = Self::named(constants, half.peer);
        let bytes = if peer == Named::ProcNull { 0 } else { half.bytes };
        Received { peer, tag: Self::tag(constants, half.tag), bytes }
    }

    /// The name of an error class of this rank's library.
    pub fn error_name(&self, class: u32) -> String {
        class_name(&self.trace.file.header.mpi_family, class)
    }
}

impl<'r> Call<'r> {
    /// Name of the function, as the file has it.
    pub fn function(&self) -> &'r str {
        self.reading.trace.file.function_name(self.event.function).unwrap_or("unknown")
    }

    /// The rank's constants, where the function's arguments were recorded.
    fn constants(&self) -> Option<MpiConstants> {
        self.reading.constants.filter(|_| self.meaning.class != Class::Compute)
    }

    /// Name of the error that it returned.
    pub fn error(&self) -> Option<String> {
        (self.event.error != 0).then(|| self.reading.error_name(self.event.error))
    }

    /// Whether it did what it is for: it succeeded, or its error says that it ran all the same.
    pub fn took_place(&self) -> bool {
        self.meaning.operation.took_place(self.event.error, self.reading.errors)
    }

    /// Whether it names a communicator, known or not.
    pub fn has_communicator(&self) -> bool {
        self.constants().is_some() && self.meaning.fields.communicator
    }

    /// Its communicator (of a call on a window or file that of the window or file), and the rank's place
    /// in it.
    pub fn communicator(&self) -> Option<Standing> {
        let Self { reading, event, .. } = self;
        let resolve =
            || reading.communicators.resolve(reading.position, event.communicator, event.begin);
        self.has_communicator().then(resolve).flatten()
    }

    /// What became of its request, of a call that waits or tests for one or finds one of several.
    pub fn outcome(&self) -> Option<Outcome> {
        use trace_format::meaning::Operation::CompleteOne;
        let says = self.constants().is_some() && self.meaning.operation == CompleteOne;
        let (completed, cancelled) = self.event.completion();
        says.then_some(Outcome { completed, cancelled })
    }

    fn completed(&self) -> bool {
        self.outcome().is_some_and(|outcome| outcome.completed)
    }

    /// Destination, source, root or target, or the source that the status of a completion says.
    pub fn peer(&self) -> Option<Named> {
        let constants = self.constants()?;
        let says = self.meaning.fields.peer.is_on_communicator() || self.completed();
        says.then(|| Reading::named(constants, self.event.peer))
    }

    /// Who that is.
    pub fn partner(&self) -> Option<Peer> {
        match self.peer()? {
            Named::Rank(rank) => self.partner_of(rank),
            _ => None,
        }
    }

    /// Who a rank of its communicator is.
    pub fn partner_of(&self, rank: i32) -> Option<Peer> {
        self.communicator().map(|standing| self.reading.communicators.peer(standing, rank))
    }

    /// Its tag, or that of the message that it completed.
    pub fn tag(&self) -> Option<Tag> {
        let constants = self.constants()?;
        let says = self.meaning.fields.tag || self.completed();
        says.then(|| Reading::tag(constants, self.event.tag))
    }

    /// Whether it names MPI_PROC_NULL: nothing goes there, and nothing comes from there.
    pub fn is_with_nobody(&self) -> bool {
        self.meaning.fields.peer != Role::Nobody && self.peer() == Some(Named::ProcNull)
    }

    /// Bytes sent, or received by a receive or completion; of a posted receive the buffer's; of a compute
    /// function those of its operands.
    pub fn bytes(&self) -> Option<u64> {
        if self.meaning.class == Class::Compute {
            return Some(self.event.payload[1]);
        }
        self.constants()?;
        match () {
            () if self.completed() => Some(self.event.sent),
            () if !self.meaning.fields.bytes => None,
            () if self.is_with_nobody() => Some(0),
            () => Some(self.event.sent),
        }
    }

    /// Bytes received beside those sent: of collective operations and of calls that fetch.
    pub fn received_bytes(&self) -> Option<u64> {
        self.constants()?;
        let says = self.meaning.fields.received || self.event.received > 0;
        let nobody = self.is_with_nobody();
        (self.meaning.fields.bytes && says).then_some(if nobody { 0 } else { self.event.received })
    }

    /// The receiving half of a call that sends and receives.
    pub fn receive(&self) -> Option<Received> {
        let constants = self.constants()?;
        self.event.receive.map(|half| Reading::received(constants, half))
    }

    /// Its request, or the message that it takes, shortened.
    pub fn request(&self) -> Option<u32> {
        self.constants()?;
        let request = self.event.request;
        (self.meaning.fields.request && request != 0).then_some(request)
    }

    /// Requests of a call on several, in the order of its array.
    pub fn requests(&self) -> impl Iterator<Item = RequestState> + use<'r> {
        let count = if self.constants().is_some() { usize::MAX } else { 0 };
        self.reading.trace.file.requests(self.event).take(count)
    }

    /// Name of the error in the status of a request.
    pub fn error_of(&self, state: &RequestState) -> Option<String> {
        (state.error != 0).then(|| self.reading.error_name(state.error))
    }

    /// What the status of a completed request says.
    pub fn status(&self, state: &RequestState) -> Option<Received> {
        let RequestState { peer, tag, bytes, completed, .. } = *state;
        let constants = self.constants().filter(|_| completed)?;
        Some(Reading::received(constants, Half { peer, tag, bytes }))
    }

    /// The window or file that it works on, by its number on the rank.
    pub fn object(&self) -> Option<(Object, i32)> {
        self.constants()?;
        self.meaning.fields.object.map(|object| (object, self.event.tag))
    }

    /// What it made.
    pub fn made(&self) -> Option<Making> {
        self.constants()?;
        let makes = self.meaning.fields.makes?;
        let Event { sent, end, .. } = *self.event;
        let end = end.filter(|_| sent != 0)?;
        // A communicator is defined right behind the call that makes it.
        let defined = || {
            let Reading { position, communicators, .. } = *self.reading;
            communicators.next_meaning(position, sent as u16, end)
        };
        let communicator = (makes == Made::Communicator).then(defined).flatten();
        Some(communicator.map_or(Making::Number(sent), Making::Communicator))
    }

    /// Floating-point operations of a compute function, where the number can be one.
    pub fn flops(&self) -> Option<f64> {
        let computes = self.meaning.class == Class::Compute;
        computes.then(|| f64::from_bits(self.event.payload[0])).filter(|flops| flops.is_finite())
    }
}
