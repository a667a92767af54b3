//! Turns the events of one rank, in order of their begin, into sends, receives and collective
//! calls.

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxHashMap;
use trace_format::errors::ErrorClasses;
use trace_format::meaning::Operation;
use trace_format::reader::{RankFile, StoredEvent};

use crate::timeline::communicators::{Membership, Peer};
use crate::timeline::mpi_constants::MpiConstants;
use crate::trace::RankTrace;

use super::call::Call;
use super::channel_key::ChannelKey;
use super::collectives::{CallCounts, Contribution, OpenMember, SequenceKey};
use super::findings::{Reason, Side};
use super::in_flight::Receive;
use super::requests::{Arguments, Posted, Queue, Requests, SendReceive, Template, Wildcard, Work};
use super::routes::{Routes, Target};
use super::state::Matching;

/// The state of one rank while it is being matched.
#[derive(Debug, Clone)]
pub(super) struct RankState<'a> {
    /// Position of the rank in the run.
    pub(super) index: usize,
    /// Rank in MPI_COMM_WORLD.
    pub(super) rank: u32,
    pub(super) file: &'a RankFile,
    pub(super) constants: MpiConstants,
    pub(super) errors: Option<ErrorClasses>,
    pub(super) requests: Requests<Work, Template>,
    /// Messages taken by matched probes, by handle; `None` is MPI_MESSAGE_NO_PROC.
    pub(super) messages: HashMap<u32, VecDeque<Option<TakenMessage>>>,
    /// For each channel the first probe of its next message, if that was not received yet.
    pub(super) probes: FxHashMap<ChannelKey, Call>,
    /// Operations of calls that never returned.
    pub(super) never_returned: Vec<Work>,
    posted: u64,
    /// Number of partitioned requests created so far, by channel without its lane.
    partitioned: HashMap<ChannelKey, u32>,
    /// Number of persistent collective requests created so far, by communicator.
    persistent: HashMap<u32, u32>,
    pub(super) routes: Routes,
    /// Number of collective calls so far.
    pub(super) calls: CallCounts,
}

/// A message that a matched probe took.
#[derive(Debug, Clone)]
pub(super) struct TakenMessage {
    pub posted: Posted,
    pub probe: Call,
}

/// Contents of a status.
#[derive(Debug, Clone, Copy)]
pub(super) struct Status<'c> {
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
    /// The call that completed the operation.
    pub by: &'c Call,
    /// Class of the operation's error; 0 if it succeeded.
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
            probes: FxHashMap::default(),
            never_returned: Vec::new(),
            posted: 0,
            partitioned: HashMap::new(),
            persistent: HashMap::new(),
            routes: Routes::new(index),
            calls: CallCounts::default(),
        }
    }

    /// Handles an event of a function that matters.
    #[inline]
    pub fn take(
        &mut self,
        thread: u32,
        event: &StoredEvent<'_>,
        (operation, function): (Operation, u16),
        m: &mut Matching,
    ) {
        if !operation.took_place(event.error(), self.errors) {
            return;
        }
        let call = Call::new(thread, event);
        let request = event.head.request();
        // A call that returned without a request has failed.
        let failed = request == 0 && call.end_ticks().is_some();
        match operation {
            Operation::Nothing => {}
            Operation::Send => {
                let arguments = self.arguments(event, m);
                self.send_at_once(call, &arguments, m);
            }
            Operation::Isend if failed => {}
            Operation::Isend => {
                let arguments = self.arguments(event, m);
                let work = self.send(call, &arguments, true, m);
                self.made(request, work, m);
            }
            Operation::SendInit => {
                let template = Template::Send(self.arguments(event, m));
                self.made_persistent(request, template, m);
            }
            Operation::Receive => {
                let arguments = self.arguments(event, m);
                self.receive_at_once(call, &arguments, event.error(), m);
            }
            Operation::Ireceive if failed => {}
            Operation::Ireceive => {
                let arguments = self.arguments(event, m);
                let work = self.post_receive(call, &arguments, m);
                self.made(request, work.map_or(Work::Nothing, Work::Receive), m);
            }
            Operation::ReceiveInit => {
                let template = Template::Receive(self.arguments(event, m));
                self.made_persistent(request, template, m);
            }
            Operation::PartitionedSendInit | Operation::PartitionedReceiveInit => {
                let sends = operation == Operation::PartitionedSendInit;
                let mut arguments = self.arguments(event, m);
                arguments.lane = self.partitioned_lane(&arguments, sends, m);
                let template =
                    if sends { Template::Send(arguments) } else { Template::Receive(arguments) };
                self.made_persistent(request, template, m);
            }
            Operation::SendReceive => {
                let arguments = self.arguments(event, m);
                self.send_at_once(call, &arguments, m);
                if let Some(receive) = receiving(event, &arguments) {
                    self.receive_at_once(call, &receive, event.error(), m);
                }
            }
            Operation::IsendReceive if failed => {}
            Operation::IsendReceive => {
                let arguments = self.arguments(event, m);
                let send = match self.send(call, &arguments, true, m) {
                    Work::Send { to, number, .. } => Some((to, number)),
                    _ => None,
                };
                let receive = receiving(event, &arguments);
                let receive = receive.and_then(|receive| self.post_receive(call, &receive, m));
                let work = match (send, receive) {
                    (send, Some(receive)) => {
                        Work::SendReceive(Box::new(SendReceive { send, receive }))
                    }
                    (Some((to, number)), None) => {
                        Work::Send { to, number, begin_ticks: call.begin_ticks }
                    }
                    (None, None) => Work::Nothing,
                };
                self.made(request, work, m);
            }
            Operation::Probe => self.probe(call, event, m),
            Operation::MatchedProbe => self.matched_probe(call, event, m),
            Operation::MatchedReceive => self.matched_receive(call, event, m),
            Operation::MatchedIreceive => self.matched_ireceive(call, event, m),
            Operation::Start => self.start(call, request, m),
            Operation::Startall => {
                for state in event.requests() {
                    self.start(call, state.request, m);
                }
            }
            Operation::Collective | Operation::Icollective => match self.membership(event, m) {
                Some(membership) => {
                    let communicator = membership.communicator;
                    let key = SequenceKey { communicator, lane: 0 };
                    let pending = operation == Operation::Icollective && request != 0;
                    let contribution = self.contribution(event, membership, function, m);
                    let work = self.collective(call, key, function, pending, contribution, m);
                    if pending {
                        self.made(request, work, m);
                    }
                }
                None => {
                    m.emitter.summary.unknown_collectives += 1;
                    if operation == Operation::Icollective {
                        self.made(request, Work::Nothing, m);
                    }
                }
            },
            Operation::Together => {
                if let Some(membership) = self.membership(event, m) {
                    let key = SequenceKey::implicit(membership.communicator, function);
                    let contribution =
                        Contribution { sent_bytes: 0, received_bytes: 0, root: None };
                    self.collective(call, key, function, false, contribution, m);
                }
            }
            Operation::CollectiveInit => {
                let template = match self.membership(event, m) {
                    Some(membership) => {
                        let communicator = membership.communicator;
                        let made = self.persistent.entry(communicator).or_default();
                        *made += 1;
                        let sequence = SequenceKey { communicator, lane: *made };
                        let contribution = self.contribution(event, membership, function, m);
                        Template::Collective { sequence, function, contribution }
                    }
                    None => Template::Nothing,
                };
                self.made_persistent(request, template, m);
            }
            Operation::Access => self.access(call, event, m),
            Operation::AccessRequest => {
                self.access(call, event, m);
                self.made(request, Work::Nothing, m);
            }
            Operation::Epoch(what) => self.epoch(call, event, what, m),
            Operation::OtherRequest => self.made(request, Work::Nothing, m),
            Operation::CompleteOne
            | Operation::CompleteSeveral
            | Operation::RequestStatus
            | Operation::Cancel
            | Operation::FreeRequest => self.complete_event(call, event, operation, m),
        }
        // Shares emit the findings of many events together.
        if m.share.is_none() {
            m.emit_matched();
        }
    }

    /// Whether an error means that a message was longer than its receive's buffer.
    pub(super) fn is_truncated(&self, error: u32) -> bool {
        error != 0 && self.errors.is_some_and(|errors| error == errors.truncate)
    }

    #[inline]
    fn membership(&mut self, event: &StoredEvent<'_>, m: &Matching) -> Option<Membership> {
        let head = &event.head;
        self.routes.membership(head.communicator(), head.begin(), m.communicators)
    }

    #[inline(always)]
    pub(super) fn arguments(&mut self, event: &StoredEvent<'_>, m: &Matching) -> Arguments {
        let (peer, tag, bytes) = (event.head.peer(), event.head.tag(), event.sent());
        Arguments { communicator: self.membership(event, m), peer, tag, bytes, lane: 0 }
    }

    /// The channel that arguments without wildcards name, as an index of the routes.
    #[inline(always)]
    pub(super) fn channel(
        &mut self,
        arguments: &Arguments,
        sends: bool,
        m: &Matching,
    ) -> Result<usize, Reason> {
        let Arguments { communicator, peer, tag, lane, .. } = *arguments;
        if let Some(membership) = communicator
            && lane == 0
            && let Some(route) = self.routes.find(&Target { membership, peer, tag, sends })
        {
            return Ok(route);
        }
        self.new_channel(arguments, sends, m)
    }

    #[cold]
    fn new_channel(
        &mut self,
        arguments: &Arguments,
        sends: bool,
        m: &Matching,
    ) -> Result<usize, Reason> {
        let Arguments { communicator, peer, tag, lane, .. } = *arguments;
        let target = communicator.map(|membership| Target { membership, peer, tag, sends });
        let target = target.filter(|_| lane == 0);
        let (communicator, other) = self.peer(communicator, peer, m)?;
        let (source, destination) = if sends { (self.rank, other) } else { (other, self.rank) };
        let key = ChannelKey { communicator, source, destination, tag, lane };
        Ok(self.routes.keep(target, key))
    }

    /// Communicator and world rank that a peer argument names.
    pub(super) fn peer(
        &self,
        communicator: Option<Membership>,
        peer: i32,
        m: &Matching,
    ) -> Result<(u32, u32), Reason> {
        let membership = communicator.ok_or(Reason::UnknownCommunicator)?;
        match m.communicators.peer(membership, peer) {
            Peer::World(rank) => Ok((membership.communicator, rank)),
            Peer::Outside => Err(Reason::OutsideWorld),
            Peer::Unknown => Err(Reason::UnknownCommunicator),
            Peer::Invalid => Err(Reason::InvalidPeer),
        }
    }

    /// Handles a send that is complete when its call returns.
    #[inline(always)]
    fn send_at_once(&mut self, call: Call, arguments: &Arguments, m: &mut Matching) {
        let never_returns = call.end_ticks().is_none();
        let work = self.send(call, arguments, never_returns, m);
        if never_returns {
            self.never_returned.push(work);
        }
    }

    /// Handles a send; a `pending` send completes later.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        call: Call,
        arguments: &Arguments,
        pending: bool,
        m: &mut Matching,
    ) -> Work {
        if arguments.peer == self.constants.proc_null {
            return Work::Nothing;
        }
        match self.channel(arguments, true, m) {
            Ok(route) => {
                let to = self.routes.address(route);
                let number = m.send(to, call, arguments.bytes, pending);
                Work::Send { to: *to, number, begin_ticks: call.begin_ticks }
            }
            Err(reason) => {
                let known = arguments.communicator.map(|membership| membership.communicator);
                let origin = (self.rank, call);
                m.emitter.unmatched_without_channel(
                    Side::Send,
                    reason,
                    origin,
                    known,
                    arguments.bytes,
                );
                Work::Nothing
            }
        }
    }

    pub(super) fn next_sequence(&mut self) -> u64 {
        self.posted += 1;
        self.posted
    }

    /// Posts a receive that completes later; `None` if there is nothing to receive.
    #[inline(always)]
    pub(super) fn post_receive(
        &mut self,
        call: Call,
        arguments: &Arguments,
        m: &mut Matching,
    ) -> Option<Posted> {
        let Arguments { communicator, peer, tag, .. } = *arguments;
        if peer == self.constants.proc_null {
            return None;
        }
        let sequence = self.next_sequence();
        let begin_ticks = call.begin_ticks;
        let any_source = peer == self.constants.any_source;
        let any_tag = tag == self.constants.any_tag;
        let reason = if any_source || any_tag {
            match self.wildcard(call, arguments, sequence, m) {
                Ok(queue) => return Some(Posted { sequence, begin_ticks, queue }),
                Err(reason) => reason,
            }
        } else {
            match self.channel(arguments, false, m) {
                Ok(route) => {
                    self.note_probed(route, call, m);
                    let from = self.routes.address(route);
                    m.channels.receive(from, Receive::waiting(sequence, call));
                    return Some(Posted { sequence, begin_ticks, queue: Queue::Channel(*from) });
                }
                Err(reason) => reason,
            }
        };
        let known = communicator.map(|membership| membership.communicator);
        m.emitter.unmatched_without_channel(Side::Receive, reason, (self.rank, call), known, 0);
        None
    }

    /// Posts a receive with a wildcard.
    fn wildcard(
        &self,
        call: Call,
        arguments: &Arguments,
        sequence: u64,
        m: &mut Matching,
    ) -> Result<Queue, Reason> {
        let Arguments { communicator, peer, tag, .. } = *arguments;
        let membership = communicator.ok_or(Reason::UnknownCommunicator)?;
        let source = match peer == self.constants.any_source {
            true => None,
            false => Some(self.peer(communicator, peer, m)?.1),
        };
        let pattern = (source, (tag != self.constants.any_tag).then_some(tag));
        m.channels.wildcard(membership.communicator, self.rank, pattern, sequence);
        Ok(Queue::Wildcard(Box::new(Wildcard { communicator: membership, pattern, call })))
    }

    /// Handles a receive that is complete when its call returns; its arguments then come from the
    /// status.
    #[inline(always)]
    fn receive_at_once(&mut self, call: Call, arguments: &Arguments, error: u32, m: &mut Matching) {
        let Arguments { communicator, peer, bytes, .. } = *arguments;
        if call.end_ticks().is_none() {
            let posted = self.post_receive(call, arguments, m);
            self.never_returned.extend(posted.map(Work::Receive));
            return;
        }
        if peer == self.constants.proc_null {
            return;
        }
        let sequence = self.next_sequence();
        match self.channel(arguments, false, m) {
            Ok(route) => {
                self.note_probed(route, call, m);
                let receive = Receive::complete(sequence, call, call, bytes);
                let receive = receive.truncated_if(self.is_truncated(error));
                let from = self.routes.address(route);
                m.channels.receive(from, receive);
                m.drop_orphaned_receives(*from);
            }
            Err(reason) => {
                let reason = if peer < 0 && reason == Reason::InvalidPeer {
                    Reason::SourceUnknown
                } else {
                    reason
                };
                let known = communicator.map(|membership| membership.communicator);
                m.emitter.unmatched_without_channel(
                    Side::Receive,
                    reason,
                    (self.rank, call),
                    known,
                    0,
                );
            }
        }
    }

    /// Number of a partitioned operation on its channel, from 1.
    fn partitioned_lane(&mut self, arguments: &Arguments, sends: bool, m: &Matching) -> u32 {
        let Ok((communicator, peer)) = self.peer(arguments.communicator, arguments.peer, m) else {
            return 1;
        };
        let (source, destination) = if sends { (self.rank, peer) } else { (peer, self.rank) };
        let tag = arguments.tag;
        // A rank's messages to itself share one channel in both directions; the lane separates
        // their counts.
        let lane = u32::from(sends);
        let key = ChannelKey { communicator, source, destination, tag, lane };
        let made = self.partitioned.entry(key).or_default();
        *made += 1;
        *made
    }

    fn start(&mut self, call: Call, handle: u32, m: &mut Matching) {
        let Some((template, stale)) = self.requests.template(handle) else {
            m.emitter.summary.unknown_requests += u64::from(handle != 0);
            return;
        };
        if let Some(stale) = stale {
            self.lose(&stale, Reason::Open, m);
        }
        let work = match template {
            Template::Send(arguments) => self.send(call, &arguments, true, m),
            Template::Receive(arguments) => {
                self.post_receive(call, &arguments, m).map_or(Work::Nothing, Work::Receive)
            }
            Template::Collective { sequence, function, contribution } => {
                self.collective(call, sequence, function, true, contribution, m)
            }
            Template::Nothing => Work::Nothing,
        };
        self.requests.started(handle, work);
    }

    pub(super) fn collective(
        &mut self,
        call: Call,
        sequence: SequenceKey,
        function: u16,
        pending: bool,
        contribution: Contribution,
        m: &mut Matching,
    ) -> Work {
        let completed = (!pending && call.end_ticks().is_some()).then_some(call);
        let rank = self.index;
        let member = OpenMember { rank, call, completed, pending, contribution };
        let number = self.calls.next(sequence);
        let member = m.collective(sequence, number, function, member);
        Work::Collective { sequence, number, member, begin_ticks: call.begin_ticks }
    }

    /// The rank's contribution to a collective operation.
    fn contribution(
        &self,
        event: &StoredEvent<'_>,
        membership: Membership,
        function: u16,
        m: &Matching,
    ) -> Contribution {
        let (sent_bytes, received_bytes) = event.exchanged();
        let peer = event.head.peer();
        let root = match m.emitter.is_rooted(function) {
            true if peer == self.constants.root => Some(self.rank),
            true => match m.communicators.peer(membership, peer) {
                Peer::World(rank) => Some(rank),
                _ => None,
            },
            false => None,
        };
        Contribution { sent_bytes, received_bytes, root }
    }

    /// Records that a request was created. What its handle referred to before completed without
    /// being seen.
    #[inline(always)]
    pub(super) fn made(&mut self, handle: u32, work: Work, m: &mut Matching) {
        if handle == 0 {
            // The call did not return, so its request will never be completed.
            if work != Work::Nothing {
                self.never_returned.push(work);
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

/// Arguments of the receiving half of a call that sends and receives.
fn receiving(event: &StoredEvent<'_>, sending: &Arguments) -> Option<Arguments> {
    let half = event.receive()?;
    Some(Arguments { peer: half.peer, tag: half.tag, bytes: half.bytes, ..*sending })
}
