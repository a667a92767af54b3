//! What matching hands on: pairs of entries on the ranks' own counters come in, messages and
//! instances in seconds of the global timeline go out, and are counted.

use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::active::ActiveOperation;
use super::call::Call;
use super::channel::{Pair, Receive, Send};
use super::channels::ChannelKey;
use super::collectives::{OpenInstance, OpenMember};
use super::findings::{
    Access, CollectiveInstance, CollectiveMember, MatchSink, MatchingSummary, Message, MessageEnd,
    Polls, Reason, Side, Unmatched, Wants,
};
use super::operations::CollectiveNames;

/// Larger numbers of bytes from a status may be recorded as this.
const MOST_STATUS_BYTES: u64 = u32::MAX as u64 - 1;

/// What was found and is not handed on yet.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // Most are messages, and none stays long.
enum Found {
    Message(Message),
    Collective(CollectiveInstance),
    Unmatched(Unmatched),
    Active(ActiveOperation),
    Access(Access),
    Polls(Polls),
}

/// Makes what goes out, and counts it.
#[derive(Debug, Clone)]
pub(super) struct Outlet<'a> {
    run: &'a Run,
    timeline: &'a GlobalTimeline,
    names: CollectiveNames,
    found: Vec<Found>,
    /// Its room is used again.
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
        let (found, instance, summary) = Default::default();
        Self { run, timeline, names, found, instance, wants, summary }
    }

    /// Hands on what was found since the last time.
    pub fn drain(&mut self, sink: &mut (impl MatchSink + ?Sized)) {
        for found in self.found.drain(..) {
            match found {
                Found::Message(message) => sink.message(&message),
                Found::Collective(instance) => sink.collective(&instance),
                Found::Unmatched(unmatched) => sink.unmatched(&unmatched),
                Found::Active(operation) => sink.active(&operation),
                Found::Polls(polls) => sink.polls(&polls),
                Found::Access(access) => sink.access(&access),
            }
        }
    }

    fn seconds(&self, rank: usize, ticks: u64) -> f64 {
        self.timeline.ranks[rank].clock.seconds(ticks)
    }

    /// Of a rank of the world that has a file.
    fn seconds_of(&self, world_rank: u32, ticks: u64) -> f64 {
        self.run.position_of(world_rank).map_or(0.0, |rank| self.seconds(rank, ticks))
    }

    /// The message that a send and a receive are that belong together; `None` where it is not certain that
    /// there was one.
    pub fn message(&mut self, pair: &Pair) -> Option<Message> {
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
        let end = |rank: u32, posted: Call, end_ticks: Option<u64>, completed: Option<Call>| {
            // Both ends of a message have a file.
            let clock = &self.timeline.ranks[self.run.position_of(rank)?].clock;
            Some(MessageEnd {
                rank,
                thread: posted.thread,
                begin_s: clock.seconds(posted.begin_ticks),
                end_s: end_ticks.map(|ticks| clock.seconds(ticks)),
                begin_ticks: posted.begin_ticks,
                end_ticks,
                posted,
                completed,
            })
        };
        let received = receive.completed();
        let received_ticks = received.and_then(|by| by.end_ticks());
        Some(Message {
            send: end(key.source, send.call, send.call.end_ticks(), *sent)?,
            receive: end(key.destination, receive.call, received_ticks, received)?,
            communicator: key.communicator,
            tag: key.tag,
            bytes: send.bytes,
            wildcard: receive.wildcard,
            truncated: receive.truncated,
        })
    }

    /// Takes an access; `begin_s` is filled in here. The rank is given by its position in the run.
    pub fn access(&mut self, rank: usize, access: Access) {
        let begin_s = self.seconds(rank, access.call.begin_ticks);
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
            begin_s: self.seconds_of(key.source, send.call.begin_ticks),
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
            begin_s: self.seconds_of(key.destination, receive.call.begin_ticks),
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
            begin_s: self.seconds_of(rank, call.begin_ticks),
            partner: None,
            communicator,
            bytes,
        });
    }

    fn unmatched(&mut self, unmatched: Unmatched) {
        self.summary.unmatched.entry(unmatched.reason).or_default().add(unmatched.side);
        self.found.push(Found::Unmatched(unmatched));
    }

    /// Takes an operation that is not complete.
    pub fn active(&mut self, operation: &ActiveOperation) {
        self.found.push(Found::Active(*operation));
    }

    /// Takes a run of polls.
    pub fn polls(&mut self, polls: Polls) {
        self.found.push(Found::Polls(polls));
    }

    /// Takes a collective instance that gets no more members.
    pub fn instance(&mut self, open: &OpenInstance) {
        let mut instance = CollectiveInstance::default();
        self.settle_instance(open, &mut instance);
        self.found.push(Found::Collective(instance));
    }

    /// As [`Outlet::instance`]; it goes to `sink` at once.
    pub fn hand_on_instance(&mut self, open: &OpenInstance, sink: &mut impl MatchSink) {
        let mut instance = std::mem::take(&mut self.instance);
        self.settle_instance(open, &mut instance);
        sink.collective(&instance);
        self.instance = instance;
    }

    /// Makes `instance` the one that has no more members, and counts it.
    fn settle_instance(&mut self, open: &OpenInstance, instance: &mut CollectiveInstance) {
        let members = open.members.iter().map(|member| {
            let OpenMember { rank, call, completed, sent_bytes, received_bytes, .. } = *member;
            let clock = &self.timeline.ranks[rank].clock;
            let seconds = |call: Call| call.end_ticks().map(|ticks| clock.seconds(ticks));
            CollectiveMember {
                rank: self.run.ranks[rank].rank,
                thread: call.thread,
                begin_s: clock.seconds(call.begin_ticks),
                end_s: seconds(call),
                complete_s: completed.and_then(seconds),
                begin_ticks: call.begin_ticks,
                posted: call,
                completed,
                sent_bytes,
                received_bytes,
            }
        });
        instance.members.clear();
        instance.members.extend(members);
        instance.function.clear();
        instance.function.push_str(self.names.name(open.function));
        (instance.communicator, instance.number) = (open.communicator, open.number);
        (instance.missing, instance.mismatched) = (open.missing, open.mismatched);
        if instance.missing > 0 {
            self.summary.incomplete_instances += 1;
        } else {
            self.summary.complete_instances += 1;
        }
        self.summary.mismatched_instances += u64::from(instance.mismatched);
    }
}
