//! What matching hands on: pairs of entries on the ranks' own counters come in, messages and
//! instances in seconds of the global timeline go out, and are counted.

use std::collections::BTreeMap;

use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::active::ActiveOperation;
use super::call::Call;
use super::channel::{Pair, Receive, Send};
use super::channels::ChannelKey;
use super::collectives::{OpenInstance, OpenMember};
use super::operations::CollectiveNames;

/// One end of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageEnd {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Thread of the rank that sent, or posted the receive.
    pub thread: u32,
    /// Global seconds when the call that sends (of a persistent operation its start), or the call
    /// that posts the receive, begins.
    pub begin_s: f64,
    /// Of a send, when that call returns; of a receive, when the call that completes it returns.
    /// `None` when it never did.
    pub end_s: Option<f64>,
    /// Counter of the rank at the begin.
    pub begin_ticks: u64,
    /// Counter of the rank at the end.
    pub end_ticks: Option<u64>,
    /// The call that sends (of a persistent operation its start), or posts the receive.
    pub posted: Call,
    /// The call that completed it: for one that blocks the same. Of a receive always known; of a send
    /// where [`Wants::completions`] was asked for, and it was complete.
    pub completed: Option<Call>,
}

/// A matched send and receive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message {
    /// The send.
    pub send: MessageEnd,
    /// The receive.
    pub receive: MessageEnd,
    /// Position of the communicator in the table.
    pub communicator: u32,
    /// Tag.
    pub tag: i32,
    /// Bytes sent.
    pub bytes: u64,
    /// Whether the receive was posted with a wildcard, as far as that is recorded.
    pub wildcard: bool,
    /// Whether it was longer than the receive's buffer, and cut: the receive returned MPI_ERR_TRUNCATE.
    pub truncated: bool,
}

/// One rank's part in a collective operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectiveMember {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Thread that called.
    pub thread: u32,
    /// Global seconds when the call (of a persistent operation its start) begins.
    pub begin_s: f64,
    /// When the call returns; `None` when it did not.
    pub end_s: Option<f64>,
    /// When the operation is complete on this rank: the end of a blocking call, or of the call that
    /// completes the request; `None` when that was not seen.
    pub complete_s: Option<f64>,
    /// Counter of the rank at the begin.
    pub begin_ticks: u64,
    /// The call (of a persistent operation its start).
    pub posted: Call,
    /// The call that completed it: for one that blocks the same; `None` when that was not seen.
    pub completed: Option<Call>,
    /// Bytes that it sent.
    pub sent_bytes: u64,
    /// Bytes that it received.
    pub received_bytes: u64,
}

/// The collective calls that belong together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CollectiveInstance {
    /// Position of the communicator in the table.
    pub communicator: u32,
    /// Name of the blocking form of the operation, as the first member called it.
    pub function: String,
    /// Which collective operation of the communicator this is, from 0; persistent ones have
    /// numbers of their own.
    pub number: u64,
    /// Its members in the order of their calls' end.
    pub members: Vec<CollectiveMember>,
    /// Ranks of the communicator whose call is not there (no file, died before it, cut off, of
    /// another world).
    pub missing: u32,
    /// Members called different operations: the program is wrong, or events are missing.
    pub mismatched: bool,
}

/// Which end of a message something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// A send.
    Send,
    /// A receive.
    Receive,
}

/// Why a send or receive has no partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// It was cancelled.
    Cancelled,
    /// It ended with an error.
    Failed,
    /// A receive that is never completed in what was recorded, or the send that it would take.
    Open,
    /// A receive whose request was freed before its completion, or the send that it would take.
    Freed,
    /// A receive with a wildcard whose source was never said (its call failed).
    SourceUnknown,
    /// The partner's file is missing or cannot be read.
    FileMissing,
    /// The partner died, or had not finished.
    PartnerUnfinished,
    /// The partner's recording ended early, or part of it is damaged.
    PartnerCut,
    /// The partner was recorded at level 0, or with an MPI library that is not known.
    PartnerWithoutAttributes,
    /// The partner is there, and has nothing that fits: sent and never received, for one.
    NoPartner,
    /// The communicator, or its members, are not known.
    UnknownCommunicator,
    /// A receive by a message handle whose matched probe is not known.
    UnknownHandle,
    /// The partner is a process of another world (spawned or connected).
    OutsideWorld,
    /// The communicator has no such rank.
    InvalidPeer,
}

impl Reason {
    /// For people and the JSON report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Failed => "ended with an error",
            Self::Open => "receive never completed",
            Self::Freed => "receive freed before its completion",
            Self::SourceUnknown => "source of a failed wildcard receive unknown",
            Self::FileMissing => "partner's file missing",
            Self::PartnerUnfinished => "partner died or had not finished",
            Self::PartnerCut => "partner's recording ended early or is damaged",
            Self::PartnerWithoutAttributes => "partner recorded without attributes (level 0)",
            Self::NoPartner => "no partner",
            Self::UnknownCommunicator => "communicator unknown",
            Self::UnknownHandle => "message handle unknown",
            Self::OutsideWorld => "partner outside the world",
            Self::InvalidPeer => "no such rank in the communicator",
        }
    }
}

/// A send or receive without a partner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unmatched {
    /// Which.
    pub side: Side,
    /// Why.
    pub reason: Reason,
    /// Rank in MPI_COMM_WORLD that sends or receives.
    pub rank: u32,
    /// Counter of that rank when the call that sends or posts begins.
    pub begin_ticks: u64,
    /// Global seconds of the same.
    pub begin_s: f64,
    /// Its partner's world rank, where it is known.
    pub partner: Option<u32>,
    /// Position of the communicator in the table, where it is known.
    pub communicator: Option<u32>,
    /// Bytes of a send.
    pub bytes: u64,
}

/// Numbers of sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sides {
    /// Sends.
    pub sends: u64,
    /// Receives.
    pub receives: u64,
}

impl Sides {
    /// Counts one.
    pub fn add(&mut self, side: Side) {
        match side {
            Side::Send => self.sends += 1,
            Side::Receive => self.receives += 1,
        }
    }

    /// Counts others.
    pub fn add_all(&mut self, other: Self) {
        self.sends += other.sends;
        self.receives += other.receives;
    }
}

/// What matching found, in numbers, over the whole run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MatchingSummary {
    /// Messages.
    pub matched: u64,
    /// Sends and receives without a partner, by reason.
    pub unmatched: BTreeMap<Reason, Sides>,
    /// Messages whose receive's status gives another size than the send has: a sign that matching,
    /// or the trace, is wrong.
    pub size_mismatches: u64,
    /// Messages that were longer than their receive's buffer (MPI_ERR_TRUNCATE).
    pub truncated: u64,
    /// Completions of requests whose making was not recorded.
    pub unknown_requests: u64,
    /// Collective calls on a communicator that is not known.
    pub unknown_collectives: u64,
    /// Collective instances with all members.
    pub complete_instances: u64,
    /// Collective instances that lack members.
    pub incomplete_instances: u64,
    /// Collective instances whose members called different operations.
    pub mismatched_instances: u64,
}

impl MatchingSummary {
    /// Adds what was found in another part of the same run.
    pub fn add(&mut self, other: &Self) {
        self.matched += other.matched;
        for (reason, sides) in &other.unmatched {
            self.unmatched.entry(*reason).or_default().add_all(*sides);
        }
        self.size_mismatches += other.size_mismatches;
        self.truncated += other.truncated;
        self.unknown_requests += other.unknown_requests;
        self.unknown_collectives += other.unknown_collectives;
        self.complete_instances += other.complete_instances;
        self.incomplete_instances += other.incomplete_instances;
        self.mismatched_instances += other.mismatched_instances;
    }
}

/// What an observer asks for beside what all are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// The calls that completed sends, and, in shares, those that completed collective operations that do
    /// not block. A message is handed on when both its sides are complete, or can be no more.
    pub completions: bool,
    /// Runs of polls that found nothing.
    pub polls: bool,
}

/// A run of polls (tests, probes) that found nothing; one that finds something is a call of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polls {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// The whole run of polls, from the first's begin to the last's end.
    pub call: Call,
    /// How many.
    pub count: u64,
    /// Ticks inside them.
    pub inside_ticks: u64,
    /// The request that they asked for, shortened; 0 for none, or several.
    pub request: u32,
}

/// Takes what matching finds, as it finds it.
///
/// Two orders are possible. [`match_run`](super::match_run) follows all ranks at once by the end of their
/// calls, so messages come by when they are certain, roughly by their completion.
/// [`match_in_shares`](super::match_in_shares) goes rank by rank, a round at a time: within a share they
/// come by when they are certain there, over all shares in no order at all; an instance's members come in
/// any order, too. What must be the same either way must not depend on the order.
pub trait MatchSink {
    /// What it asks for.
    fn wants(&self) -> Wants {
        Wants::default()
    }
    /// A run of polls, where it was asked for.
    fn polls(&mut self, _polls: &Polls) {}
    /// A message.
    fn message(&mut self, message: &Message);
    /// A collective operation.
    fn collective(&mut self, _instance: &CollectiveInstance) {}
    /// A send or receive without a partner.
    fn unmatched(&mut self, _unmatched: &Unmatched) {}
    /// An operation that was not complete when its rank's events ended; these come last.
    fn active(&mut self, _operation: &ActiveOperation) {}
}

/// Larger numbers of bytes from a status may be recorded as this.
const MOST_STATUS_BYTES: u64 = u32::MAX as u64 - 1;

/// What was found and is not handed on yet.
#[derive(Debug, Clone)]
enum Found {
    Message(Message),
    Collective(CollectiveInstance),
    Unmatched(Unmatched),
    Active(ActiveOperation),
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
