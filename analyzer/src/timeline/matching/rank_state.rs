//! One rank's events become sends, receives and collective calls: its events come in, in order of
//! their begin; entries of channels and of collective instances go out.

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxHashMap;
use trace_format::errors::ErrorClasses;
use trace_format::meaning::Operation;
use trace_format::reader::{RankFile, StoredEvent};

use crate::timeline::communicators::{Peer, Standing};
use crate::timeline::mpi_constants::MpiConstants;
use crate::trace::RankTrace;

use super::Matching;
use super::call::Call;
use super::channel::Receive;
use super::channels::ChannelKey;
use super::collectives::{Calls, OpenMember, Part, SequenceKey};
use super::findings::{Reason, Side};
use super::requests::{Arguments, Both, Place, Posted, Requests, Template, Wildcard, Work};
use super::routes::{Routes, Target};

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
    pub(super) messages: HashMap<u32, VecDeque<Option<Taken>>>,
    /// The first probe of a message on each channel that nobody has received since.
    pub(super) probes: FxHashMap<ChannelKey, Call>,
    /// What calls do that never returned.
    pub(super) hanging: Vec<Work>,
    posted: u64,
    /// Partitioned requests made so far, by channel (its lane left out).
    partitioned: HashMap<ChannelKey, u32>,
    /// Persistent collective requests made so far, by communicator.
    persistent: HashMap<u32, u32>,
    pub(super) routes: Routes,
    /// Collective calls so far.
    pub(super) calls: Calls,
}

/// A message that a matched probe took.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub posted: Posted,
    /// The probe.
    pub probe: Call,
}

/// What a status says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said<'c> {
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
    /// The call that completed it.
    pub by: &'c Call,
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
            probes: FxHashMap::default(),
            hanging: Vec::new(),
            posted: 0,
            partitioned: HashMap::new(),
            persistent: HashMap::new(),
            routes: Routes::new(index),
            calls: Calls::default(),
        }
    }

    /// Takes an event that does something.
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
        let call = Call::of(thread, event);
        let request = event.head.request();
        // A call that returned without a request failed.
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
                    (send, Some(receive)) => Work::Both(Box::new(Both { send, receive })),
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
            Operation::Collective | Operation::Icollective => match self.standing(event, m) {
                Some(standing) => {
                    let communicator = standing.communicator;
                    let key = SequenceKey { communicator, lane: 0 };
                    let pending = operation == Operation::Icollective && request != 0;
                    let part = self.part(event, standing, function, m);
                    let work = self.collective(call, key, function, pending, part, m);
                    if pending {
                        self.made(request, work, m);
                    }
                }
                None => {
                    m.outlet.summary.unknown_collectives += 1;
                    if operation == Operation::Icollective {
                        self.made(request, Work::Nothing, m);
                    }
                }
            },
            Operation::Together => {
                if let Some(standing) = self.standing(event, m) {
                    let key = SequenceKey::together(standing.communicator, function);
                    let part = Part { sent_bytes: 0, received_bytes: 0, root: None };
                    self.collective(call, key, function, false, part, m);
                }
            }
            Operation::CollectiveInit => {
                let template = match self.standing(event, m) {
                    Some(standing) => {
                        let communicator = standing.communicator;
                        let made = self.persistent.entry(communicator).or_default();
                        *made += 1;
                        let sequence = SequenceKey { communicator, lane: *made };
                        let part = self.part(event, standing, function, m);
                        Template::Collective { sequence, function, part }
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
            Operation::OtherRequest => self.made(request, Work::Nothing, m),
            Operation::CompleteOne
            | Operation::CompleteSeveral
            | Operation::Cancel
            | Operation::FreeRequest => self.complete_event(call, event, operation, m),
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

    #[inline]
    fn standing(&mut self, event: &StoredEvent<'_>, m: &Matching) -> Option<Standing> {
        let head = &event.head;
        self.routes.standing(head.communicator(), head.begin(), m.communicators)
    }

    #[inline(always)]
    pub(super) fn arguments(&mut self, event: &StoredEvent<'_>, m: &Matching) -> Arguments {
        let (peer, tag, bytes) = (event.head.peer(), event.head.tag(), event.sent());
        Arguments { communicator: self.standing(event, m), peer, tag, bytes, lane: 0 }
    }

    /// The channel that arguments name, to or from a rank that is no wildcard, by its place among the
    /// routes.
    #[inline(always)]
    pub(super) fn channel(
        &mut self,
        arguments: &Arguments,
        sends: bool,
        m: &Matching,
    ) -> Result<usize, Reason> {
        let Arguments { communicator, peer, tag, lane, .. } = *arguments;
        if let Some(standing) = communicator
            && lane == 0
            && let Some(place) = self.routes.find(&Target { standing, peer, tag, sends })
        {
            return Ok(place);
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
        let target = communicator.map(|standing| Target { standing, peer, tag, sends });
        let target = target.filter(|_| lane == 0);
        let (communicator, other) = self.peer(communicator, peer, m)?;
        let (source, destination) = if sends { (self.rank, other) } else { (other, self.rank) };
        let key = ChannelKey { communicator, source, destination, tag, lane };
        Ok(self.routes.keep(target, key))
    }

    /// The world rank that an argument names.
    pub(super) fn peer(
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
    #[inline(always)]
    fn send_at_once(&mut self, call: Call, arguments: &Arguments, m: &mut Matching) {
        let hangs = call.end_ticks().is_none();
        let work = self.send(call, arguments, hangs, m);
        if hangs {
            self.hanging.push(work);
        }
    }

    /// Takes a send; a `pending` one is complete only later.
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
            Ok(place) => {
                let to = self.routes.address(place);
                let number = m.send(to, call, arguments.bytes, pending);
                Work::Send { to: *to, number, begin_ticks: call.begin_ticks }
            }
            Err(reason) => {
                let known = arguments.communicator.map(|standing| standing.communicator);
                let who = (self.rank, call);
                m.outlet.unplaced(Side::Send, reason, who, known, arguments.bytes);
                Work::Nothing
            }
        }
    }

    pub(super) fn next_sequence(&mut self) -> u64 {
        self.posted += 1;
        self.posted
    }

    /// Posts a receive that a request stands for; `None` when there is nothing to receive.
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
                Ok(place) => return Some(Posted { sequence, begin_ticks, place }),
                Err(reason) => reason,
            }
        } else {
            match self.channel(arguments, false, m) {
                Ok(place) => {
                    self.receives_probed(place, call, m);
                    let from = self.routes.address(place);
                    m.channels.receive(from, Receive::waiting(sequence, call));
                    return Some(Posted { sequence, begin_ticks, place: Place::Channel(*from) });
                }
                Err(reason) => reason,
            }
        };
        let known = communicator.map(|standing| standing.communicator);
        m.outlet.unplaced(Side::Receive, reason, (self.rank, call), known, 0);
        None
    }

    /// Posts a receive that a wildcard is in.
    fn wildcard(
        &self,
        call: Call,
        arguments: &Arguments,
        sequence: u64,
        m: &mut Matching,
    ) -> Result<Place, Reason> {
        let Arguments { communicator, peer, tag, .. } = *arguments;
        let standing = communicator.ok_or(Reason::UnknownCommunicator)?;
        let source = match peer == self.constants.any_source {
            true => None,
            false => Some(self.peer(communicator, peer, m)?.1),
        };
        let wanted = (source, (tag != self.constants.any_tag).then_some(tag));
        m.channels.wildcard(standing.communicator, self.rank, wanted, sequence);
        Ok(Place::Wildcard(Box::new(Wildcard { communicator: standing, wanted, call })))
    }

    /// Takes a receive that is complete when its call returns; the arguments are the status's then.
    #[inline(always)]
    fn receive_at_once(&mut self, call: Call, arguments: &Arguments, error: u32, m: &mut Matching) {
        let Arguments { communicator, peer, bytes, .. } = *arguments;
        if call.end_ticks().is_none() {
            let posted = self.post_receive(call, arguments, m);
            self.hanging.extend(posted.map(Work::Receive));
            return;
        }
        if peer == self.constants.proc_null {
            return;
        }
        let sequence = self.next_sequence();
        match self.channel(arguments, false, m) {
            Ok(place) => {
                self.receives_probed(place, call, m);
                let receive = Receive::complete(sequence, call, call, bytes);
                let receive = receive.cut_if(self.is_truncated(error));
                let from = self.routes.address(place);
                m.channels.receive(from, receive);
                m.drop_orphaned_receives(*from);
            }
            Err(reason) => {
                let reason = if peer < 0 && reason == Reason::InvalidPeer {
                    Reason::SourceUnknown
                } else {
                    reason
                };
                let known = communicator.map(|standing| standing.communicator);
                m.outlet.unplaced(Side::Receive, reason, (self.rank, call), known, 0);
            }
        }
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

    fn start(&mut self, call: Call, handle: u32, m: &mut Matching) {
        let Some((template, stale)) = self.requests.template(handle) else {
            m.outlet.summary.unknown_requests += u64::from(handle != 0);
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
            Template::Collective { sequence, function, part } => {
                self.collective(call, sequence, function, true, part, m)
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
        part: Part,
        m: &mut Matching,
    ) -> Work {
        let completed = (!pending && call.end_ticks().is_some()).then_some(call);
        let rank = self.index;
        let member = OpenMember { rank, call, completed, pending, part };
        let number = self.calls.next(sequence);
        let place = m.collective(sequence, number, function, member);
        Work::Collective { sequence, number, place, begin_ticks: call.begin_ticks }
    }

    /// What the rank brings to a collective operation.
    fn part(
        &self,
        event: &StoredEvent<'_>,
        standing: Standing,
        function: u16,
        m: &Matching,
    ) -> Part {
        let (sent_bytes, received_bytes) = event.exchanged();
        let peer = event.head.peer();
        let root = match m.outlet.is_rooted(function) {
            true if peer == self.constants.root => Some(self.rank),
            true => match m.communicators.peer(standing, peer) {
                Peer::World(rank) => Some(rank),
                _ => None,
            },
            false => None,
        };
        Part { sent_bytes, received_bytes, root }
    }

    /// A request was made; what its handle stood for before was completed unseen.
    #[inline(always)]
    pub(super) fn made(&mut self, handle: u32, work: Work, m: &mut Matching) {
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

/// Arguments of the receiving half of a call that sends and receives.
fn receiving(event: &StoredEvent<'_>, sending: &Arguments) -> Option<Arguments> {
    let half = event.receive()?;
    Some(Arguments { peer: half.peer, tag: half.tag, bytes: half.bytes, ..*sending })
}
