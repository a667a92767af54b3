//! Writes OTF2's event records for the messages, requests and collective operations of one rank's
//! calls.
//!
//! In OTF2 every request has a unique number, while the handles in a trace are reused. The
//! operation of a handle is found in the same way as in matching.

use std::collections::{HashMap, VecDeque};

use crate::export::content::{Attributes, Call, Content, Function};
use crate::formats::otf2::library::{Object, Otf2Error, Otf2Library, UNDEFINED_32};
use crate::timeline::matching::requests::{Lookup, Requests, Tracked};
use trace_format::meaning::{Meaning, Operation};

/// Partner, communicator, tag and size of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Envelope {
    peer: u32,
    communicator: u32,
    tag: u32,
    bytes: u64,
}

/// A collective operation in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Collective {
    operation: u8,
    communicator: u32,
    root: u32,
    sent: u64,
    received: u64,
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// An operation without records: its partner is MPI_PROC_NULL, or it is of another kind.
    Nothing,
    Send(u64),
    /// Number and communicator of a receive.
    Receive(u64, u32),
    /// A call that sends and receives: number of the send; number and communicator of the receive.
    Both(Option<u64>, u64, u32),
    Collective(u64, Collective),
}

impl Tracked for Work {
    fn has_own_handle(&self) -> bool {
        matches!(self, Self::Receive(..) | Self::Both(..))
    }
}

/// The operation that a persistent request starts.
#[derive(Debug, Clone, Copy)]
enum Template {
    Nothing,
    Send(Envelope),
    Receive(u32),
    Collective(Collective),
}

/// OTF2_CollectiveOp of a function.
fn collective_operation(name: &str) -> u8 {
    let base = Meaning::by_name(name).blocking_form.replace("Neighbor_a", "A");
    let numbers = [
        ("MPI_Barrier", 0),
        ("MPI_Bcast", 1),
        ("MPI_Gather", 2),
        ("MPI_Gatherv", 3),
        ("MPI_Scatter", 4),
        ("MPI_Scatterv", 5),
        ("MPI_Allgather", 6),
        ("MPI_Allgatherv", 7),
        ("MPI_Alltoall", 8),
        ("MPI_Alltoallv", 9),
        ("MPI_Alltoallw", 10),
        ("MPI_Allreduce", 11),
        ("MPI_Reduce", 12),
        ("MPI_Reduce_scatter", 13),
        ("MPI_Scan", 14),
        ("MPI_Exscan", 15),
        ("MPI_Reduce_scatter_block", 16),
    ];
    numbers.into_iter().find(|(known, _)| *known == base).map_or(0, |(_, number)| number)
}

/// Writes the records of one rank.
pub struct Records<'a> {
    library: &'a Otf2Library,
    content: &'a Content<'a>,
    requests: Requests<Work, Template>,
    /// Communicators of messages from matched probes, by handle.
    probed: HashMap<u32, VecDeque<u32>>,
    /// Number of the next request.
    next: u64,
    /// Number in the archive of each communicator of the run.
    communicators: &'a [u32],
}

/// Writer and time of a record.
#[derive(Debug, Clone, Copy)]
pub struct At {
    /// The location's writer.
    pub writer: Object,
    /// Timestamp.
    pub time: u64,
}

const NO_ATTRIBUTES: Object = std::ptr::null_mut();

impl<'a> Records<'a> {
    /// For a rank with this many threads.
    pub fn new(
        library: &'a Otf2Library,
        content: &'a Content<'a>,
        communicators: &'a [u32],
        threads: usize,
    ) -> Self {
        let requests = Requests::new(threads > 1);
        Self { library, content, requests, probed: HashMap::new(), next: 0, communicators }
    }

    /// Attributes of a call, with the archive's number of the communicator.
    fn attributes(&self, call: &Call) -> Attributes {
        let mut attributes = self.content.attributes(call);
        if let Some(standing) = &mut attributes.standing
            && let Some(number) = self.communicators.get(standing.communicator as usize)
        {
            standing.communicator = *number;
        }
        attributes
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn made(&mut self, handle: u32, work: Work) {
        if handle != 0 {
            self.requests.made(handle, work);
        }
    }

    /// Writes the records at the beginning of a call.
    pub fn begin(&mut self, at: At, call: &Call, function: &Function) -> Result<(), Otf2Error> {
        use Operation::*;
        let attributes = self.attributes(call);
        let envelope = envelope(&attributes);
        let communicator = attributes.standing.map(|standing| standing.communicator);
        let event = &call.event;
        if !function.operation.took_place(event.error, self.content.errors(call.rank)) {
            return Ok(());
        }
        // A call that returned without a request failed.
        let failed = event.request == 0 && call.end_ns.is_some();
        match function.operation {
            Send | SendReceive => self.send(at, envelope)?,
            Isend | Ireceive | IsendReceive | Icollective if failed => {}
            Isend => {
                let work = self.isend(at, envelope)?;
                self.made(event.request, work);
            }
            Ireceive => {
                let proc_null = self.is_proc_null(call);
                let work = self.ireceive(at, communicator.filter(|_| !proc_null))?;
                self.made(event.request, work);
            }
            IsendReceive => {
                let send = match self.isend(at, envelope)? {
                    Work::Send(number) => Some(number),
                    _ => None,
                };
                let work = match self.ireceive(at, communicator)? {
                    Work::Receive(number, communicator) => Work::Both(send, number, communicator),
                    _ => send.map_or(Work::Nothing, Work::Send),
                };
                self.made(event.request, work);
            }
            MatchedIreceive => {
                let handle = self.content.trace(call.rank).file.message(event).unwrap_or(0);
                let communicator = self.take_probed(handle);
                let work = self.ireceive(at, communicator)?;
                self.made(event.request, work);
            }
            SendInit | PartitionedSendInit => {
                let template = envelope.map_or(Template::Nothing, Template::Send);
                self.made_persistent(event.request, template);
            }
            ReceiveInit | PartitionedReceiveInit => {
                let wanted = communicator.filter(|_| !self.is_proc_null(call));
                self.made_persistent(
                    event.request,
                    wanted.map_or(Template::Nothing, Template::Receive),
                );
            }
            CollectiveInit => {
                let template = collective(function, &attributes);
                let template = template.map_or(Template::Nothing, Template::Collective);
                self.made_persistent(event.request, template);
            }
            Start => self.start(at, event.request)?,
            Startall => {
                for state in self.content.requests(call) {
                    self.start(at, state.request)?;
                }
            }
            Collective if communicator.is_some() => {
                // SAFETY: the writer is open, and no attributes are given.
                let code = unsafe {
                    (self.library.EvtWriter_MpiCollectiveBegin)(at.writer, NO_ATTRIBUTES, at.time)
                };
                self.library.check(code)?;
            }
            Icollective => {
                let work = match collective(function, &attributes) {
                    Some(collective) => self.icollective(at, collective)?,
                    None => Work::Nothing,
                };
                self.made(event.request, work);
            }
            OtherRequest => self.made(event.request, Work::Nothing),
            _ => {}
        }
        Ok(())
    }

    /// Writes the records at the end of a call.
    pub fn end(&mut self, at: At, call: &Call, function: &Function) -> Result<(), Otf2Error> {
        use Operation::*;
        if call.end_ns.is_none() {
            return Ok(());
        }
        let attributes = self.attributes(call);
        let communicator = attributes.standing.map(|standing| standing.communicator);
        let event = &call.event;
        let errors = self.content.errors(call.rank);
        if !function.operation.took_place(event.error, errors) {
            return Ok(());
        }
        // OTF2 has no failed operations: like a cancelled one, a failed operation moved nothing.
        let failed =
            |error: u32| error != 0 && errors.is_none_or(|errors| error != errors.truncate);
        match function.operation {
            Receive => self.receive(at, envelope(&attributes)),
            SendReceive => {
                let half = event.receive.zip(communicator);
                let envelope = half.and_then(|(half, communicator)| {
                    let peer = u32::try_from(half.peer).ok()?;
                    Some(Envelope { peer, communicator, tag: half.tag as u32, bytes: half.bytes })
                });
                self.receive(at, envelope)
            }
            MatchedProbe => {
                if let Some(communicator) = communicator.filter(|_| event.request != 0) {
                    self.probed.entry(event.request).or_default().push_back(communicator);
                }
                Ok(())
            }
            MatchedReceive => {
                let communicator = self.take_probed(event.request);
                let peer = u32::try_from(event.peer).ok();
                let envelope = communicator.zip(peer).map(|(communicator, peer)| Envelope {
                    peer,
                    communicator,
                    tag: event.tag as u32,
                    bytes: event.sent,
                });
                self.receive(at, envelope)
            }
            Collective => match collective(function, &attributes) {
                Some(collective) => self.collective_end(at, collective),
                None => Ok(()),
            },
            CompleteOne if !event.completion().0 => self.tested(at, event.request),
            CompleteOne => {
                let cancelled = event.completion().1 || failed(event.error);
                self.complete(at, event.request, cancelled, (event.peer, event.tag, event.sent))
            }
            CompleteSeveral => {
                for state in self.content.requests(call) {
                    match state.completed {
                        true => self.complete(
                            at,
                            state.request,
                            state.cancelled || failed(state.error),
                            (state.peer, state.tag, state.bytes),
                        )?,
                        false => self.tested(at, state.request)?,
                    }
                }
                Ok(())
            }
            FreeRequest => {
                self.requests.freed(event.request);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn is_proc_null(&self, call: &Call) -> bool {
        self.content.constants(call.rank).is_some_and(|c| c.proc_null == call.event.peer)
    }

    fn take_probed(&mut self, handle: u32) -> Option<u32> {
        let queue = self.probed.get_mut(&handle)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.probed.remove(&handle);
        }
        first
    }

    fn made_persistent(&mut self, handle: u32, template: Template) {
        if handle != 0 {
            self.requests.made_persistent(handle, template);
        }
    }

    fn start(&mut self, at: At, handle: u32) -> Result<(), Otf2Error> {
        let Some((template, _)) = self.requests.template(handle) else { return Ok(()) };
        let work = match template {
            Template::Nothing => Work::Nothing,
            Template::Send(envelope) => self.isend(at, Some(envelope))?,
            Template::Receive(communicator) => self.ireceive(at, Some(communicator))?,
            Template::Collective(collective) => self.icollective(at, collective)?,
        };
        self.requests.started(handle, work);
        Ok(())
    }

    fn send(&self, at: At, envelope: Option<Envelope>) -> Result<(), Otf2Error> {
        let Some(Envelope { peer, communicator, tag, bytes }) = envelope else { return Ok(()) };
        let write = self.library.EvtWriter_MpiSend;
        // SAFETY: the writer is open, and no attributes are given.
        let code =
            unsafe { write(at.writer, NO_ATTRIBUTES, at.time, peer, communicator, tag, bytes) };
        self.library.check(code)
    }

    fn receive(&self, at: At, envelope: Option<Envelope>) -> Result<(), Otf2Error> {
        let Some(Envelope { peer, communicator, tag, bytes }) = envelope else { return Ok(()) };
        let write = self.library.EvtWriter_MpiRecv;
        // SAFETY: the writer is open, and no attributes are given.
        let code =
            unsafe { write(at.writer, NO_ATTRIBUTES, at.time, peer, communicator, tag, bytes) };
        self.library.check(code)
    }

    fn isend(&mut self, at: At, envelope: Option<Envelope>) -> Result<Work, Otf2Error> {
        let Some(Envelope { peer, communicator, tag, bytes }) = envelope else {
            return Ok(Work::Nothing);
        };
        let number = self.number();
        let write = self.library.EvtWriter_MpiIsend;
        // SAFETY: the writer is open, and no attributes are given.
        let code = unsafe {
            write(at.writer, NO_ATTRIBUTES, at.time, peer, communicator, tag, bytes, number)
        };
        self.library.check(code).map(|()| Work::Send(number))
    }

    fn ireceive(&mut self, at: At, communicator: Option<u32>) -> Result<Work, Otf2Error> {
        let Some(communicator) = communicator else { return Ok(Work::Nothing) };
        let number = self.number();
        self.write_request(self.library.EvtWriter_MpiIrecvRequest, at, number)?;
        Ok(Work::Receive(number, communicator))
    }

    fn icollective(&mut self, at: At, collective: Collective) -> Result<Work, Otf2Error> {
        let number = self.number();
        self.write_request(self.library.EvtWriter_NonBlockingCollectiveRequest, at, number)?;
        Ok(Work::Collective(number, collective))
    }

    fn write_request(
        &self,
        write: unsafe extern "C" fn(Object, Object, u64, u64) -> i32,
        at: At,
        number: u64,
    ) -> Result<(), Otf2Error> {
        // SAFETY: the writer is open, and no attributes are given; all functions passed here have
        // these arguments.
        self.library.check(unsafe { write(at.writer, NO_ATTRIBUTES, at.time, number) })
    }

    fn tested(&self, at: At, handle: u32) -> Result<(), Otf2Error> {
        let number = match self.requests.active(handle) {
            Some(Work::Send(number) | Work::Receive(number, _) | Work::Both(_, number, _)) => {
                number
            }
            Some(Work::Collective(number, _)) => number,
            _ => return Ok(()),
        };
        self.write_request(self.library.EvtWriter_MpiRequestTest, at, number)
    }

    fn complete(
        &mut self,
        at: At,
        handle: u32,
        cancelled: bool,
        (peer, tag, bytes): (i32, i32, u64),
    ) -> Result<(), Otf2Error> {
        if handle == 0 {
            return Ok(());
        }
        let Lookup::Active(work) = self.requests.completed(handle) else { return Ok(()) };
        // Libraries mostly leave the status of a send unwritten, so it does not tell whether it was
        // cancelled.
        let (send, receive) = match work {
            Work::Nothing => return Ok(()),
            Work::Send(number) => (Some(number), None),
            Work::Receive(number, communicator) => (None, Some((number, communicator))),
            Work::Both(send, number, communicator) => (send, Some((number, communicator))),
            Work::Collective(number, collective) => {
                return self.collective_complete(at, collective, number);
            }
        };
        if let Some(number) = send {
            self.write_request(self.library.EvtWriter_MpiIsendComplete, at, number)?;
        }
        let Some((number, communicator)) = receive else { return Ok(()) };
        match u32::try_from(peer) {
            Ok(peer) if !cancelled => {
                let write = self.library.EvtWriter_MpiIrecv;
                let tag = tag as u32;
                // SAFETY: the writer is open, and no attributes are given.
                let code = unsafe {
                    write(at.writer, NO_ATTRIBUTES, at.time, peer, communicator, tag, bytes, number)
                };
                self.library.check(code)
            }
            _ => self.write_request(self.library.EvtWriter_MpiRequestCancelled, at, number),
        }
    }

    fn collective_end(&self, at: At, collective: Collective) -> Result<(), Otf2Error> {
        let Collective { operation, communicator, root, sent, received } = collective;
        let write = self.library.EvtWriter_MpiCollectiveEnd;
        // SAFETY: the writer is open, and no attributes are given.
        let code = unsafe {
            write(at.writer, NO_ATTRIBUTES, at.time, operation, communicator, root, sent, received)
        };
        self.library.check(code)
    }

    fn collective_complete(&self, at: At, of: Collective, number: u64) -> Result<(), Otf2Error> {
        let Collective { operation, communicator: on, root, sent, received } = of;
        let write = self.library.EvtWriter_NonBlockingCollectiveComplete;
        // SAFETY: the writer is open, and no attributes are given.
        let code = unsafe {
            write(at.writer, NO_ATTRIBUTES, at.time, operation, on, root, sent, received, number)
        };
        self.library.check(code)
    }
}

fn envelope(attributes: &Attributes) -> Option<Envelope> {
    Some(Envelope {
        peer: u32::try_from(attributes.peer?).ok()?,
        communicator: attributes.standing?.communicator,
        tag: attributes.tag? as u32,
        bytes: attributes.bytes.unwrap_or(0),
    })
}

fn collective(function: &Function, attributes: &Attributes) -> Option<Collective> {
    Some(Collective {
        operation: collective_operation(&function.name),
        communicator: attributes.standing?.communicator,
        root: attributes.peer.and_then(|root| u32::try_from(root).ok()).unwrap_or(UNDEFINED_32),
        sent: attributes.bytes.unwrap_or(0),
        received: attributes.received_bytes.unwrap_or(0),
    })
}
