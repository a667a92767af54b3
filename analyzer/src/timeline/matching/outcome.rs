//! What matching hands on: pairs of entries on the ranks' own counters come in, messages and
//! instances in seconds of the global timeline go out, and are counted.

use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::active::ActiveOperation;
use super::call::Call;
use super::channel::{Receive, Send};
use super::channels::ChannelKey;
use super::clocks::Clocks;
use super::collectives::{OpenInstance, OpenMember, Part};
use super::findings::{
    Access, CollectiveInstance, CollectiveMember, MatchSink, MatchingSummary, Message, Polls,
    Probed, Reason, Side, Unmatched, Wants,
};
use super::operations::CollectiveNames;
use super::pairs::Pair;

/// Larger numbers of bytes from a status may be recorded as this.
const MOST_STATUS_BYTES: u64 = u32::MAX as u64 - 1;

/// What was found and is not handed on yet.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // Most are messages, and none stays long.
enum Found {
    Message(Message),
    Collective(CollectiveInstance),
    Together(CollectiveInstance),
    Unmatched(Unmatched),
    Active(ActiveOperation),
    Access(Access),
    Polls(Polls),
    Probed(Probed),
}

/// Makes what goes out, and counts it.
#[derive(Debug, Clone)]
pub(super) struct Outlet<'a> {
    run: &'a Run,
    clocks: Clocks<'a>,
    names: CollectiveNames,
    found: Vec<Found>,
    /// What was handed on last: its room is used again.
    message: Message,
    instance: CollectiveInstance,
    pub wants: Wants,
    /// What has been counted.
    pub summary: MatchingSummary,
}

impl<'a> Outlet<'a> {
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        names: CollectiveNames,
        wants: Wants,
    ) -> Self {
        let clocks = Clocks::new(run, timeline);
        let (found, message, instance, summary) = Default::default();
        Self { run, clocks, names, found, message, instance, wants, summary }
    }

    /// Whether a collective operation, by the number of its name, has a root.
    #[inline]
    pub fn is_rooted(&self, function: u16) -> bool {
        self.names.is_rooted(function)
    }

    /// Hands on what was found since the last time.
    pub fn drain(&mut self, sink: &mut (impl MatchSink + ?Sized)) {
        for found in self.found.drain(..) {
            match found {
                Found::Message(message) => sink.message(&message),
                Found::Collective(instance) => sink.collective(&instance),
                Found::Together(instance) => sink.together(&instance),
                Found::Unmatched(unmatched) => sink.unmatched(&unmatched),
                Found::Active(operation) => sink.active(&operation),
                Found::Polls(polls) => sink.polls(&polls),
                Found::Probed(probed) => sink.probed(&probed),
                Found::Access(access) => sink.access(&access),
            }
        }
    }

    /// The message that a send and a receive are that belong together; `None` where it is not certain that
    /// there was one.
    #[inline]
    pub fn message(&mut self, pair: &Pair) -> Option<&Message> {
        let Pair { key, send, sent, receive } = pair;
        if let Some(reason) = receive.lost() {
            // What the receive took is known, but not when, or whether at all.
            self.unmatched_send(*key, send, reason);
            self.unmatched_receive(*key, receive, reason);
            return None;
        }
        self.summary.matched += 1;
        self.summary.truncated += u64::from(receive.truncated);
        let said = receive.bytes.filter(|bytes| *bytes < MOST_STATUS_BYTES);
        self.summary.size_mismatches += u64::from(said.is_some_and(|bytes| bytes != send.bytes));
        let message = &mut self.message;
        (message.communicator, message.tag) = (key.communicator, key.tag);
        (message.bytes, message.wildcard) = (send.bytes, receive.wildcard);
        message.truncated = receive.truncated;
        message.send.completed = *sent;
        message.receive.completed = receive.completed();
        let received_ticks = receive.completed_ticks();
        let ends = [
            (&mut message.send, key.source, &send.call, send.call.end_ticks()),
            (&mut message.receive, key.destination, &receive.call, received_ticks),
        ];
        for (end, rank, posted, end_ticks) in ends {
            // Both ends of a message have a file.
            let mut clock = self.clocks.of_rank(rank)?;
            (end.rank, end.thread) = (rank, posted.thread);
            (end.begin_ticks, end.end_ticks) = (posted.begin_ticks, end_ticks);
            end.begin_s = clock.seconds(posted.begin_ticks);
            end.end_s = end_ticks.map(|ticks| clock.seconds(ticks));
            end.posted = *posted;
        }
        Some(message)
    }

    /// Takes an access; `begin_s` is filled in here. The rank is given by its position in the run.
    pub fn access(&mut self, rank: usize, access: Access) {
        let begin_s = self.clocks.at(rank).seconds(access.call.begin_ticks);
        self.found.push(Found::Access(Access { begin_s, ..access }));
    }

    /// Takes a message.
    pub fn found(&mut self, message: Message) {
        self.found.push(Found::Message(message));
    }

    /// Takes a send without a partner.
    pub fn unmatched_send(&mut self, key: ChannelKey, send: &Send, reason: Reason) {
        self.unmatched(Unmatched {
            side: Side::Send,
            reason,
            rank: key.source,
            begin_ticks: send.call.begin_ticks,
            begin_s: 0.0,
            partner: Some(key.destination),
            communicator: Some(key.communicator),
            bytes: send.bytes,
        });
    }

    /// Takes a receive without a partner.
    pub fn unmatched_receive(&mut self, key: ChannelKey, receive: &Receive, reason: Reason) {
        self.unmatched(Unmatched {
            side: Side::Receive,
            reason,
            rank: key.destination,
            begin_ticks: receive.call.begin_ticks,
            begin_s: 0.0,
            partner: Some(key.source),
            communicator: Some(key.communicator),
            bytes: 0,
        });
    }

    /// Takes a send or receive without a partner whose channel is not known, of a rank of the world.
    pub fn unplaced(
        &mut self,
        side: Side,
        reason: Reason,
        (rank, call): (u32, Call),
        communicator: Option<u32>,
        bytes: u64,
    ) {
        self.unmatched(Unmatched {
            side,
            reason,
            rank,
            begin_ticks: call.begin_ticks,
            begin_s: 0.0,
            partner: None,
            communicator,
            bytes,
        });
    }

    /// `begin_s` is filled in here.
    fn unmatched(&mut self, unmatched: Unmatched) {
        self.summary.unmatched.entry(unmatched.reason).or_default().add(unmatched.side);
        let Unmatched { rank, begin_ticks, .. } = unmatched;
        let begin_s = self.clocks.of_rank(rank).map_or(0.0, |mut clock| clock.seconds(begin_ticks));
        self.found.push(Found::Unmatched(Unmatched { begin_s, ..unmatched }));
    }

    /// Takes an operation that is not complete.
    pub fn active(&mut self, operation: &ActiveOperation) {
        self.found.push(Found::Active(*operation));
    }

    /// Takes a run of polls.
    pub fn polls(&mut self, polls: Polls) {
        self.found.push(Found::Polls(polls));
    }

    /// Takes a matched probe.
    pub fn probed(&mut self, probed: Probed) {
        self.found.push(Found::Probed(probed));
    }

    /// Takes a collective instance that gets no more members.
    pub fn instance(&mut self, open: &OpenInstance) {
        let mut instance = CollectiveInstance::default();
        self.settle_instance(open, &mut instance);
        self.found.push(match self.names.is_together(open.function) {
            true => Found::Together(instance),
            false => Found::Collective(instance),
        });
    }

    /// As [`Outlet::instance`]; it goes to `sink` at once.
    pub fn hand_on_instance(&mut self, open: &OpenInstance, sink: &mut impl MatchSink) {
        let mut instance = std::mem::take(&mut self.instance);
        self.settle_instance(open, &mut instance);
        match self.names.is_together(open.function) {
            true => sink.together(&instance),
            false => sink.collective(&instance),
        }
        self.instance = instance;
    }

    /// Makes `instance` the one that has no more members, and counts it.
    fn settle_instance(&mut self, open: &OpenInstance, instance: &mut CollectiveInstance) {
        let members = open.members.iter().map(|member| {
            let OpenMember { rank, call, completed, part, .. } = *member;
            let Part { sent_bytes, received_bytes, .. } = part;
            let mut clock = self.clocks.at(rank);
            let mut seconds = |call: Call| call.end_ticks().map(|ticks| clock.seconds(ticks));
            let (end_s, complete_s) = (seconds(call), completed.and_then(&mut seconds));
            CollectiveMember {
                rank: self.run.ranks[rank].rank,
                thread: call.thread,
                begin_s: clock.seconds(call.begin_ticks),
                end_s,
                complete_s,
                begin_ticks: call.begin_ticks,
                posted: call,
                completed,
                sent_bytes,
                received_bytes,
            }
        });
        instance.members.clear();
        instance.members.extend(members);
        instance.root = open.members.iter().find_map(|member| member.part.root);
        instance.function.clear();
        instance.function.push_str(self.names.name(open.function));
        (instance.communicator, instance.number) = (open.communicator, open.number);
        (instance.missing, instance.mismatched) = (open.missing, open.mismatched);
        if self.names.is_together(open.function) {
            return;
        }
        if instance.missing > 0 {
            self.summary.incomplete_instances += 1;
        } else {
            self.summary.complete_instances += 1;
        }
        self.summary.mismatched_instances += u64::from(instance.mismatched);
    }
}
