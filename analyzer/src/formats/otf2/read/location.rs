//! Turns the records of one location (Enter, Leave and MPI's records) into calls in the rank's
//! file.
//!
//! A call is written when it ends, followed by the events inside it, because slots are ordered by
//! their beginning. Facts that only the completion of a request has (source and communicator) are
//! then added to the call that made the request.

use std::collections::HashMap;
use std::io;

use trace_format::markers::ToolReason;
use trace_format::meaning::Operation;
use trace_format::reader::{Half, RequestState};
use trace_format::writer::{Amendment, Completes, NewCall, Position};

use crate::formats::otf2::library::UNDEFINED_32;
use crate::import::Imported;
use crate::import::rank::{ANY_SOURCE, ANY_TAG, RankWriter};

/// Meaning of a region of the archive in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A function of MPI.
    Mpi(u16, Operation),
    /// An interposed compute function.
    Compute(u16),
    /// Time of our recorder.
    Tool(ToolReason),
    Region(String),
    /// The region that our exports put around everything.
    Program,
}

/// Attributes that our exports add to an Enter record.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnterAttributes {
    /// Number of polls in a run, and nanoseconds inside them.
    pub polls: Option<(u64, u64)>,
    /// Operations and bytes of a compute call.
    pub compute: Option<(u64, u64)>,
}

/// A request that a call makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NewRequest {
    Send(u64),
    Receive(u64),
    Collective(u64),
}

impl NewRequest {
    fn id(self) -> u64 {
        let (Self::Send(id) | Self::Receive(id) | Self::Collective(id)) = self;
        id
    }
}

#[derive(Debug)]
struct Call {
    call: NewCall,
    operation: Option<Operation>,
    made: Vec<NewRequest>,
}

#[derive(Debug)]
enum Frame {
    Call(Box<Call>),
    Tool(ToolReason, u64),
    Region(String),
    /// Omitted, because it is inside a call.
    Hidden,
}

#[derive(Debug)]
enum Written {
    Call(Box<Call>),
    Tool(ToolReason, u64, u64),
}

impl Written {
    fn begin(&self) -> u64 {
        match self {
            Self::Call(call) => call.call.begin,
            Self::Tool(_, begin, _) => *begin,
        }
    }
}

/// A request in flight: the call that made it.
#[derive(Debug, Clone, Copy)]
pub struct InFlight {
    at: Option<Position>,
    handle: u32,
    /// The receive is half of a call that sends and receives.
    half: bool,
}

/// Note about requests that stay in flight.
pub const NEVER_COMPLETED: &str = "completions of requests, which the trace does not record";

/// The requests of a rank, by OTF2's numbers.
pub type InFlights = HashMap<u64, InFlight>;

/// One location while it is read.
#[derive(Debug)]
pub struct Location<'a> {
    /// The rank's file.
    pub writer: &'a mut RankWriter,
    /// The rank's requests.
    pub requests: &'a mut InFlights,
    /// Counts of what the import misses.
    pub imported: &'a mut Imported,
    /// Positions of communicators by OTF2's numbers.
    pub communicators: &'a HashMap<u32, u32>,
    pub thread: u32,
    frames: Vec<Frame>,
    /// Complete events that wait for the outermost open call.
    held: Vec<Written>,
}

impl<'a> Location<'a> {
    /// A location before its first record.
    pub fn new(
        writer: &'a mut RankWriter,
        requests: &'a mut InFlights,
        imported: &'a mut Imported,
        communicators: &'a HashMap<u32, u32>,
        thread: u32,
    ) -> Self {
        let (frames, held) = (Vec::new(), Vec::new());
        Self { writer, requests, imported, communicators, thread, frames, held }
    }

    fn communicator(&self, number: u32) -> u16 {
        let place = self.communicators.get(&number);
        place.and_then(|place| self.writer.communicators.get(place)).copied().unwrap_or(0)
    }

    /// The innermost open MPI call.
    fn current(&mut self) -> Option<&mut Call> {
        let mut frames = self.frames.iter_mut().rev();
        frames.find_map(|frame| match frame {
            Frame::Call(call) if call.operation.is_some() => Some(&mut **call),
            _ => None,
        })
    }

    fn is_in(&self, mpi_only: bool) -> bool {
        let mut frames = self.frames.iter();
        frames.any(|f| matches!(f, Frame::Call(call) if call.operation.is_some() || !mpi_only))
    }

    /// A region begins.
    pub fn enter(&mut self, at: u64, kind: &Kind, attributes: EnterAttributes) -> io::Result<()> {
        self.writer.note_time(at);
        let frame = match kind {
            Kind::Mpi(..) | Kind::Compute(_) if self.is_in(true) => Frame::Hidden,
            Kind::Mpi(function, operation) => Frame::Call(Box::new(Call {
                call: NewCall {
                    function: *function,
                    begin: at,
                    polls: attributes.polls,
                    ..Default::default()
                },
                operation: Some(*operation),
                made: Vec::new(),
            })),
            Kind::Compute(_) if self.is_in(false) => Frame::Hidden,
            Kind::Compute(function) => {
                let compute = attributes.compute.map(|(flops, bytes)| (flops as f64, bytes));
                if compute.is_none() {
                    self.imported.miss("operations of compute calls");
                }
                let compute = Some(compute.unwrap_or((0.0, 0)));
                let (function, begin) = (*function, at);
                let call = NewCall { function, begin, compute, ..Default::default() };
                Frame::Call(Box::new(Call { call, operation: None, made: Vec::new() }))
            }
            Kind::Program => Frame::Hidden,
            Kind::Tool(reason) => Frame::Tool(*reason, at),
            Kind::Region(_) if self.is_in(false) => {
                self.imported.miss("regions inside calls");
                Frame::Hidden
            }
            Kind::Region(name) => {
                self.writer.marker(self.thread, name, true, at)?;
                Frame::Region(name.clone())
            }
        };
        self.frames.push(frame);
        Ok(())
    }

    /// The innermost region ends.
    pub fn leave(&mut self, at: u64) -> io::Result<()> {
        self.writer.note_time(at);
        match self.frames.pop() {
            Some(Frame::Call(mut call)) => {
                call.call.end = Some(at);
                self.held.push(Written::Call(call));
            }
            Some(Frame::Tool(reason, begin)) => self.held.push(Written::Tool(reason, begin, at)),
            Some(Frame::Region(name)) => self.writer.marker(self.thread, &name, false, at)?,
            Some(Frame::Hidden) => {}
            None => self.imported.miss("ends of regions that never began"),
        }
        self.write_held()
    }

    fn write_held(&mut self) -> io::Result<()> {
        let waits = self.frames.iter().any(|f| matches!(f, Frame::Call(_) | Frame::Tool(..)));
        if waits {
            return Ok(());
        }
        let mut held = std::mem::take(&mut self.held);
        held.sort_by_key(Written::begin);
        for written in held.drain(..) {
            match written {
                Written::Tool(reason, begin, end) => {
                    self.writer.tool(self.thread, reason, (begin, end))?;
                }
                Written::Call(call) => {
                    let at = self.writer.call(self.thread, &call.call)?;
                    for made in &call.made {
                        if let Some(request) = self.requests.get_mut(&made.id()) {
                            request.at = Some(at);
                        }
                    }
                }
            }
        }
        self.held = held;
        Ok(())
    }

    /// The location has no more records: what is open stays open.
    pub fn finish(&mut self) -> io::Result<()> {
        while let Some(frame) = self.frames.pop() {
            if let Frame::Call(call) = frame {
                self.held.push(Written::Call(call));
            }
        }
        self.write_held()
    }

    /// A blocking send.
    pub fn send(&mut self, peer: u32, communicator: u32, tag: u32, bytes: u64) {
        let communicator = self.communicator(communicator);
        let Some(call) = self.current() else { return self.outside() };
        let of = &mut call.call;
        (of.communicator, of.peer, of.tag, of.bytes) =
            (communicator, peer as i32, tag as i32, bytes);
    }

    /// A blocking receive.
    pub fn receive(&mut self, peer: u32, communicator: u32, tag: u32, bytes: u64) {
        let communicator = self.communicator(communicator);
        let Some(call) = self.current() else { return self.outside() };
        let (operation, of) = (call.operation, &mut call.call);
        let (peer, tag) = (peer as i32, tag as i32);
        of.communicator = communicator;
        match operation {
            Some(Operation::SendReceive) => of.receive = Some(Half { peer, tag, bytes }),
            Some(Operation::MatchedReceive) => {
                self.imported.miss("messages received by a matched probe");
            }
            _ => (of.peer, of.tag, of.bytes) = (peer, tag, bytes),
        }
    }

    /// A non-blocking send.
    pub fn isend(&mut self, to: (u32, u32, u32), bytes: u64, id: u64) {
        if self.is_persistent() {
            return self.imported.miss("messages of persistent requests");
        }
        let (peer, communicator, tag) = to;
        self.send(peer, communicator, tag, bytes);
        self.makes(NewRequest::Send(id));
    }

    /// A receive is posted.
    pub fn ireceive(&mut self, id: u64) {
        if self.is_persistent() {
            return self.imported.miss("messages of persistent requests");
        }
        if let Some(call) = self.current() {
            match call.operation {
                Some(Operation::IsendReceive) => {
                    let half = Half { peer: ANY_SOURCE, tag: ANY_TAG, bytes: 0 };
                    call.call.receive = Some(half);
                }
                _ => (call.call.peer, call.call.tag) = (ANY_SOURCE, ANY_TAG),
            }
        }
        self.makes(NewRequest::Receive(id));
    }

    /// A non-blocking collective operation begins.
    pub fn icollective(&mut self, id: u64) {
        if self.is_persistent() {
            return self.imported.miss("persistent collective operations");
        }
        self.makes(NewRequest::Collective(id));
    }

    fn is_persistent(&mut self) -> bool {
        let operation = self.current().and_then(|call| call.operation);
        matches!(operation, Some(Operation::Start | Operation::Startall))
    }

    fn makes(&mut self, made: NewRequest) {
        let id = made.id();
        let Some(call) = self.current() else { return self.outside() };
        // Two requests of one call become one request of the run, with the first one's handle.
        let first = call.made.first().map_or(id, |made| made.id());
        let handle = handle(first);
        call.call.request = handle;
        call.made.push(made);
        let half = matches!(made, NewRequest::Receive(_)) && call.call.receive.is_some();
        if self.requests.insert(id, InFlight { at: None, handle, half }).is_some() {
            self.imported.miss(NEVER_COMPLETED);
        }
    }

    /// Removes a completed request.
    fn completed(&mut self, id: u64) -> Option<InFlight> {
        let request = self.requests.remove(&id);
        if request.is_none() {
            self.imported.miss("completions of requests whose creation was not recorded");
        }
        request
    }

    fn outside(&mut self) {
        self.imported.miss("MPI records outside MPI calls");
    }

    fn state(&mut self, state: RequestState) {
        let Some(call) = self.current() else { return self.outside() };
        match call.operation {
            Some(Operation::CompleteOne) if call.call.request == 0 => {
                let of = &mut call.call;
                let completes = Completes { cancelled: state.cancelled };
                of.completes = state.completed.then_some(completes);
                of.request = state.request;
                (of.peer, of.tag, of.bytes) = (state.peer, state.tag, state.bytes);
            }
            // Both requests of a call that sends and receives: the receive's status is kept.
            Some(Operation::CompleteOne | Operation::CompleteSeveral) => {
                let of = &mut call.call;
                if call.operation == Some(Operation::CompleteOne) && of.request == state.request {
                    (of.peer, of.tag, of.bytes) = (state.peer, state.tag, state.bytes);
                } else if let Some(same) =
                    of.requests.iter_mut().find(|other| other.request == state.request)
                {
                    *same = state;
                } else {
                    of.requests.push(state);
                }
            }
            _ => self.imported.miss("completions of requests inside other calls"),
        }
    }

    /// A send is complete.
    pub fn isend_complete(&mut self, id: u64) {
        let Some(request) = self.completed(id) else { return };
        self.state(done(request.handle, (0, 0, 0), false));
    }

    /// A request was tested and is not complete.
    pub fn tested(&mut self, id: u64) {
        let Some(request) = self.requests.get(&id) else { return };
        let state = RequestState { completed: false, ..done(request.handle, (0, 0, 0), false) };
        self.state(state);
    }

    /// A request was cancelled.
    pub fn cancelled(&mut self, id: u64) {
        let Some(request) = self.completed(id) else { return };
        self.state(done(request.handle, (0, 0, 0), true));
    }

    /// A receive is complete.
    pub fn received(
        &mut self,
        (peer, communicator, tag): (u32, u32, u32),
        bytes: u64,
        id: u64,
    ) -> io::Result<()> {
        let Some(request) = self.completed(id) else { return Ok(()) };
        let (peer, tag) = (peer as i32, tag as i32);
        self.state(done(request.handle, (peer, tag, bytes), false));
        let communicator = self.communicator(communicator);
        let Some(at) = request.at else { return Ok(()) };
        let amendment = match request.half {
            true => Amendment::Half { peer, tag },
            false => Amendment::Source { peer, tag, communicator },
        };
        self.writer.amend(at, amendment)
    }

    /// A blocking collective operation ends.
    pub fn collective(&mut self, communicator: u32, root: u32, sent: u64, received: u64) {
        let communicator = self.communicator(communicator);
        let Some(call) = self.current() else { return self.outside() };
        let of = &mut call.call;
        of.communicator = communicator;
        if call.operation == Some(Operation::Collective) {
            of.peer = if root == UNDEFINED_32 { 0 } else { root as i32 };
            (of.bytes, of.received) = (sent, Some(received));
        }
    }

    /// A non-blocking collective operation is complete.
    pub fn collective_complete(
        &mut self,
        (communicator, root): (u32, u32),
        (sent, received): (u64, u64),
        id: u64,
    ) -> io::Result<()> {
        let Some(request) = self.completed(id) else { return Ok(()) };
        self.state(done(request.handle, (0, 0, 0), false));
        let communicator = self.communicator(communicator);
        let Some(at) = request.at else { return Ok(()) };
        let root = if root == UNDEFINED_32 { 0 } else { root as i32 };
        self.writer.amend(at, Amendment::Collective { communicator, root, sent, received })
    }
}

/// A request's handle in a run, never 0.
fn handle(id: u64) -> u32 {
    (id as u32 & 0x7fff_ffff) + 1
}

fn done(request: u32, (peer, tag, bytes): (i32, i32, u64), cancelled: bool) -> RequestState {
    RequestState { request, completed: true, cancelled, peer, tag, bytes, error: 0 }
}
