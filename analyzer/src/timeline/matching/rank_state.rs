//! One rank's events become sends, receives and collective calls: its events come in, in order of
//! their begin; entries of channels and of collective instances go out.

use std::collections::{HashMap, VecDeque};

use trace_format::errors::ErrorClasses;
use trace_format::reader::{Event, RankFile};

use crate::timeline::communicators::{Peer, Standing};
use crate::timeline::mpi_constants::MpiConstants;
use crate::trace::RankTrace;

use super::Matching;
use super::channels::{ChannelKey, Post, Receive};
use super::collectives::{OpenMember, SequenceKey};
use super::operations::Operation;
use super::outcome::{Reason, Side};
use super::requests::{Arguments, Place, Posted, Requests, Template, Work};

/// What one rank is in the middle of.
#[derive(Debug, Clone)]
pub(super) struct RankState<'a> {
    /// Position of the rank in the run.
    pub(super) index: usize,
    /// Its rank in MPI_COMM_WORLD.
    pub(super) rank: u32,
    pub(super) file: &'a RankFile,
    pub(super) constants: MpiConstants,
    pub(super) errors: Option<ErrorClasses>,
    pub(super) requests: Requests<Work, Template>,
    /// Messages that a matched probe took out, by handle; `None` is MPI_MESSAGE_NO_PROC.
    pub(super) messages: HashMap<u32, VecDeque<Option<Posted>>>,
    /// What calls do that never returned.
    pub(super) hanging: Vec<Work>,
    posted: u64,
    /// Partitioned requests made so far, by channel (its lane left out).
    partitioned: HashMap<ChannelKey, u32>,
    /// Persistent collective requests made so far, by communicator.
    persistent: HashMap<u32, u32>,
}

/// What a status says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
    pub end_ticks: Option<u64>,
    /// Class of the operation's error; 0 where it succeeded.
    pub error: u32,
}

impl<'a> RankState<'a> {
    pub fn new(index: usize, trace: &'a RankTrace, constants: MpiConstants) -> Self {
        Self {
            index,
            rank: trace.rank,
            file: &trace.file,
            constants,
            errors: ErrorClasses::of_family(&trace.file.header.mpi_family),
            requests: Requests::new(trace.file.threads.len() > 1),
            messages: HashMap::new(),
            hanging: Vec::new(),
            posted: 0,
            partitioned: HashMap::new(),
            persistent: HashMap::new(),
        }
    }

    /// Takes an event that does something.
    pub fn take(
        &mut self,
        thread: u32,
        event: &Event,
        (operation, function): (Operation, u16),
        m: &mut Matching,
    ) {
        if !operation.took_place(event.error, self.errors) {
            return;
        }
        let post = self.post(thread, event);
        if m.share.is_some() && super::shares::needs_all(operation) {
            m.given_up = true;
            return;
        }
        let communicator = || m.communicators.resolve(self.index, event.communicator, event.begin);
        // A call that returned without a request failed.
        let failed = event.request == 0 && event.end.is_some();
        match operation {
            Operation::Nothing => {}
            Operation::Send => {
                let arguments = arguments_of(event, communicator());
                self.send_at_once(post, &arguments, m);
            }
            Operation::Isend if failed => {}
            Operation::Isend => {
                let arguments = arguments_of(event, communicator());
                let work = self.send(post, &arguments, true, m);
                self.made(event.request, work, m);
            }
            Operation::SendInit => {
                let template = Template::Send(arguments_of(event, communicator()));
                self.made_persistent(event.request, template, m);
            }
            Operation::Receive => {
                let arguments = arguments_of(event, communicator());
                self.receive_at_once(post, &arguments, event.error, m);
            }
            Operation::Ireceive if failed => {}
            Operation::Ireceive => {
                let arguments = arguments_of(event, communicator());
                let work = self.post_receive(post, &arguments, m);
                self.made(event.request, work.map_or(Work::Nothing, Work::Receive), m);
            }
            Operation::ReceiveInit => {
                let template = Template::Receive(arguments_of(event, communicator()));
                self.made_persistent(event.request, template, m);
            }
            Operation::PartitionedSendInit | Operation::PartitionedReceiveInit => {
                let sends = operation == Operation::PartitionedSendInit;
                let mut arguments = arguments_of(event, communicator());
                arguments.lane = self.partitioned_lane(&arguments, sends, m);
                let template =
                    if sends { Template::Send(arguments) } else { Template::Receive(arguments) };
                self.made_persistent(event.request, template, m);
            }
            Operation::SendReceive => {
                let arguments = arguments_of(event, communicator());
                self.send_at_once(post, &arguments, m);
                if let Some(receive) = receiving(event, &arguments) {
                    self.receive_at_once(post, &receive, event.error, m);
                }
            }
            Operation::IsendReceive if failed => {}
            Operation::IsendReceive => {
                let arguments = arguments_of(event, communicator());
                let send = match self.send(post, &arguments, true, m) {
                    Work::Send { key, number, .. } => Some((key, number)),
                    _ => None,
                };
                let receive = receiving(event, &arguments);
                let receive = receive.and_then(|receive| self.post_receive(post, &receive, m));
                let work = match (send, receive) {
                    (send, Some(receive)) => Work::Both { send, receive },
                    (Some((key, number)), None) => {
                        Work::Send { key, number, begin_ticks: post.begin_ticks }
                    }
                    (None, None) => Work::Nothing,
                };
                self.made(event.request, work, m);
            }
            Operation::MatchedProbe => self.matched_probe(post, event, communicator(), m),
            Operation::MatchedReceive => self.matched_receive(post, event, m),
            Operation::MatchedIreceive => self.matched_ireceive(post, event, m),
            Operation::Start => self.start(post, event.request, m),
            Operation::Startall => {
                for state in self.file.requests(event) {
                    self.start(post, state.request, m);
                }
            }
            Operation::Collective | Operation::Icollective => match communicator() {
                Some(standing) => {
                    let communicator = standing.communicator;
                    let key = SequenceKey { communicator, lane: 0 };
                    let pending = operation == Operation::Icollective && event.request != 0;
                    let bytes = (event.sent, event.received);
                    let work = self.collective(post, key, function, pending, bytes, m);
                    if pending {
                        self.made(event.request, work, m);
                    }
                }
                None => {
                    m.outlet.summary.unknown_collectives += 1;
                    if operation == Operation::Icollective {
                        self.made(event.request, Work::Nothing, m);
                    }
                }
            },
            Operation::CollectiveInit => {
                let template = match communicator() {
                    Some(Standing { communicator, .. }) => {
                        let made = self.persistent.entry(communicator).or_default();
                        *made += 1;
                        let sequence = SequenceKey { communicator, lane: *made };
                        let (sent_bytes, received_bytes) = (event.sent, event.received);
                        Template::Collective { sequence, function, sent_bytes, received_bytes }
                    }
                    None => Template::Nothing,
                };
                self.made_persistent(event.request, template, m);
            }
            Operation::OtherRequest => self.made(event.request, Work::Nothing, m),
            Operation::CompleteOne
            | Operation::CompleteSeveral
            | Operation::Cancel
            | Operation::FreeRequest => self.complete_event(event, operation, m),
        }
        // In shares what many events have brought is handed on at once.
        if m.share.is_none() {
            m.hand_on();
        }
    }

    /// Whether an error says that a message was longer than its receive's buffer.
    pub(super) fn is_truncated(&self, error: u32) -> bool {
        error != 0 && self.errors.is_some_and(|errors| error == errors.truncate)
    }

    fn post(&self, thread: u32, event: &Event) -> Post {
        Post { rank: self.index, thread, begin_ticks: event.begin, end_ticks: event.end }
    }

    /// The world rank that an argument names.
    fn peer(
        &self,
        communicator: Option<Standing>,
        peer: i32,
        m: &Matching,
    ) -> Result<(u32, u32), Reason> {
        let standing = communicator.ok_or(Reason::UnknownCommunicator)?;
        match m.communicators.peer(standing, peer) {
            Peer::World(rank) => Ok((standing.communicator, rank)),
            Peer::Outside => Err(Reason::OutsideWorld),
            Peer::Unknown => Err(Reason::UnknownCommunicator),
            Peer::Invalid => Err(Reason::InvalidPeer),
        }
    }

    /// Takes a send that is complete when its call returns.
    fn send_at_once(&mut self, post: Post, arguments: &Arguments, m: &mut Matching) {
        let work = self.send(post, arguments, post.end_ticks.is_none(), m);
        if post.end_ticks.is_none() {
            self.hanging.push(work);
        }
    }

    /// Takes a send; an `active` one is complete only later.
    pub(super) fn send(
        &mut self,
        post: Post,
        arguments: &Arguments,
        active: bool,
        m: &mut Matching,
    ) -> Work {
        let Arguments { communicator, peer, tag, bytes, lane } = *arguments;
        if peer == self.constants.proc_null {
            return Work::Nothing;
        }
        match self.peer(communicator, peer, m) {
            Ok((communicator, destination)) => {
                let key = ChannelKey { communicator, source: self.rank, destination, tag, lane };
                if m.passes_on_send(key, post, bytes) {
                    return Work::Nothing;
                }
                // In shares nobody asks whether it is complete.
                let active = active && m.share.is_none();
                let number = m.channels.send(key, post, bytes, active);
                m.drop_orphaned_sends(key);
                match m.share {
                    Some(_) => Work::Nothing,
                    None => Work::Send { key, number, begin_ticks: post.begin_ticks },
                }
            }
            Err(reason) => {
                let known = communicator.map(|standing| standing.communicator);
                m.outlet.unplaced(Side::Send, reason, &post, known, bytes);
                Work::Nothing
            }
        }
    }

    pub(super) fn next_sequence(&mut self) -> u64 {
        self.posted += 1;
        self.posted
    }

    /// Posts a receive that a request stands for; `None` when there is nothing to receive.
    fn post_receive(
        &mut self,
        post: Post,
        arguments: &Arguments,
        m: &mut Matching,
    ) -> Option<Posted> {
        let Arguments { communicator, peer, tag, lane, .. } = *arguments;
        if peer == self.constants.proc_null {
            return None;
        }
        let sequence = self.next_sequence();
        let any_source = peer == self.constants.any_source;
        let any_tag = tag == self.constants.any_tag;
        let source = match any_source {
            true => communicator.map(|c| (c.communicator, None)).ok_or(Reason::UnknownCommunicator),
            false => self.peer(communicator, peer, m).map(|(c, rank)| (c, Some(rank))),
        };
        let place = match (source, communicator) {
            (Ok((communicator, Some(source))), _) if !any_tag => {
                let key = ChannelKey { communicator, source, destination: self.rank, tag, lane };
                m.channels.receive(key, Receive::waiting(sequence, post));
                Place::Channel(key)
            }
            (Ok((index, source)), Some(standing)) => {
                let wanted = (source, (!any_tag).then_some(tag));
                m.channels.wildcard(index, self.rank, wanted, sequence);
                Place::Wildcard { communicator: standing, wanted }
            }
            (Ok(_), None) => return None,
            (Err(reason), _) => {
                let known = communicator.map(|standing| standing.communicator);
                m.outlet.unplaced(Side::Receive, reason, &post, known, 0);
                return None;
            }
        };
        Some(Posted { sequence, post, place })
    }

    /// Takes a receive that is complete when its call returns; the arguments are the status's then.
    fn receive_at_once(&mut self, post: Post, arguments: &Arguments, error: u32, m: &mut Matching) {
        let Arguments { communicator, peer, tag, bytes, .. } = *arguments;
        if post.end_ticks.is_none() {
            let posted = self.post_receive(post, arguments, m);
            self.hanging.extend(posted.map(Work::Receive));
            return;
        }
        if peer == self.constants.proc_null {
            return;
        }
        let sequence = self.next_sequence();
        match self.peer(communicator, peer, m) {
            Ok((communicator, source)) => {
                let destination = self.rank;
                let key = ChannelKey { communicator, source, destination, tag, lane: 0 };
                let receive = Receive::complete(sequence, post, post.end_ticks, bytes);
                let receive = receive.cut_if(self.is_truncated(error));
                m.channels.receive(key, receive);
                m.drop_orphaned_receives(key);
            }
            Err(reason) => {
                let reason = if peer < 0 && reason == Reason::InvalidPeer {
                    Reason::SourceUnknown
                } else {
                    reason
                };
                let known = communicator.map(|standing| standing.communicator);
                m.outlet.unplaced(Side::Receive, reason, &post, known, 0);
            }
        }
    }

    /// A matched probe takes its message at once; it is received later.
    fn matched_probe(
        &mut self,
        post: Post,
        event: &Event,
        communicator: Option<Standing>,
        m: &mut Matching,
    ) {
        if event.end.is_none() || event.request == 0 {
            return;
        }
        let posted = self.post_receive(post, &arguments_of(event, communicator), m);
        self.messages.entry(event.request).or_default().push_back(posted);
    }

    fn matched(&mut self, handle: u32) -> Option<Option<Posted>> {
        let queue = self.messages.get_mut(&handle)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.messages.remove(&handle);
        }
        first
    }

    fn matched_receive(&mut self, post: Post, event: &Event, m: &mut Matching) {
        match self.matched(event.request) {
            Some(Some(posted)) if post.end_ticks.is_some() => {
                let posted = Posted { post, ..posted };
                let end_ticks = post.end_ticks;
                let (peer, tag, bytes, error) = (event.peer, event.tag, event.sent, event.error);
                self.complete_receive(&posted, &Said { peer, tag, bytes, end_ticks, error }, m);
            }
            Some(posted) => self.hanging.extend(posted.map(Work::Receive)),
            None if event.peer == self.constants.proc_null => {}
            None => m.outlet.unplaced(Side::Receive, Reason::UnknownHandle, &post, None, 0),
        }
    }

    fn matched_ireceive(&mut self, post: Post, event: &Event, m: &mut Matching) {
        let handle = self.file.message(event).unwrap_or(0);
        let work = match self.matched(handle) {
            Some(Some(posted)) => Work::Receive(Posted { post, ..posted }),
            Some(None) => Work::Nothing,
            None => {
                m.outlet.unplaced(Side::Receive, Reason::UnknownHandle, &post, None, 0);
                Work::Nothing
            }
        };
        self.made(event.request, work, m);
    }

    /// Which of the partitioned operations on its channel this is, from 1.
    fn partitioned_lane(&mut self, arguments: &Arguments, sends: bool, m: &Matching) -> u32 {
        let Ok((communicator, peer)) = self.peer(arguments.communicator, arguments.peer, m) else {
            return 1;
        };
        let (source, destination) = if sends { (self.rank, peer) } else { (peer, self.rank) };
        let tag = arguments.tag;
        // To oneself both directions are one channel: the lane keeps their counts apart.
        let lane = u32::from(sends);
        let key = ChannelKey { communicator, source, destination, tag, lane };
        let made = self.partitioned.entry(key).or_default();
        *made += 1;
        *made
    }

    fn start(&mut self, post: Post, handle: u32, m: &mut Matching) {
        let Some((template, stale)) = self.requests.template(handle) else {
            m.outlet.summary.unknown_requests += u64::from(handle != 0);
            return;
        };
        if let Some(stale) = stale {
            self.lose(&stale, Reason::Open, m);
        }
        let work = match template {
            Template::Send(arguments) => self.send(post, &arguments, true, m),
            Template::Receive(arguments) => {
                self.post_receive(post, &arguments, m).map_or(Work::Nothing, Work::Receive)
            }
            Template::Collective { sequence, function, sent_bytes, received_bytes } => {
                let bytes = (sent_bytes, received_bytes);
                self.collective(post, sequence, function, true, bytes, m)
            }
            Template::Nothing => Work::Nothing,
        };
        self.requests.started(handle, work);
    }

    pub(super) fn collective(
        &mut self,
        post: Post,
        key: SequenceKey,
        function: u16,
        pending: bool,
        (sent_bytes, received_bytes): (u64, u64),
        m: &mut Matching,
    ) -> Work {
        let member = OpenMember {
            rank: self.index,
            thread: post.thread,
            begin_ticks: post.begin_ticks,
            end_ticks: post.end_ticks,
            complete_ticks: post.end_ticks.filter(|_| !pending),
            pending,
            sent_bytes,
            received_bytes,
        };
        if m.passes_on_collective(key, function, member) {
            return Work::Nothing;
        }
        let (number, place) = m.collectives.call(key, function, member);
        Work::Collective { sequence: key, number, place, begin_ticks: post.begin_ticks }
    }

    /// A request was made; what its handle stood for before was completed unseen.
    fn made(&mut self, handle: u32, work: Work, m: &mut Matching) {
        if handle == 0 {
            // The call did not return: nobody will complete it.
            if work != Work::Nothing {
                self.hanging.push(work);
            }
            return;
        }
        for stale in self.requests.made(handle, work) {
            self.lose(&stale, Reason::Open, m);
        }
    }

    fn made_persistent(&mut self, handle: u32, template: Template, m: &mut Matching) {
        if handle != 0 {
            for stale in self.requests.made_persistent(handle, template) {
                self.lose(&stale, Reason::Open, m);
            }
        }
    }
}

pub(super) fn arguments_of(event: &Event, communicator: Option<Standing>) -> Arguments {
    let Event { peer, tag, sent: bytes, .. } = *event;
    Arguments { communicator, peer, tag, bytes, lane: 0 }
}

/// Arguments of the receiving half of a call that sends and receives.
fn receiving(event: &Event, sending: &Arguments) -> Option<Arguments> {
    let half = event.receive?;
    Some(Arguments { peer: half.peer, tag: half.tag, bytes: half.bytes, ..*sending })
}
