//! What matching hands on: pairs of entries on the ranks' own counters come in, messages and
//! instances in seconds of the global timeline go out, and are counted.

use std::collections::BTreeMap;

use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::active::ActiveOperation;
use super::channels::{ChannelKey, Pair, Receive, Send};
use super::collectives::OpenInstance;
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
    /// Bytes that it sent.
    pub sent_bytes: u64,
    /// Bytes that it received.
    pub received_bytes: u64,
}

/// The collective calls that belong together.
#[derive(Debug, Clone, PartialEq)]
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

/// Takes what matching finds, as it finds it.
pub trait MatchSink {
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
}

/// Makes what goes out, and counts it.
#[derive(Debug, Clone)]
pub(super) struct Outlet<'a> {
    run: &'a Run,
    timeline: &'a GlobalTimeline,
    names: CollectiveNames,
    found: Vec<Found>,
    /// What has been counted.
    pub summary: MatchingSummary,
}

impl<'a> Outlet<'a> {
    pub fn new(run: &'a Run, timeline: &'a GlobalTimeline, names: CollectiveNames) -> Self {
        Self { run, timeline, names, found: Vec::new(), summary: MatchingSummary::default() }
    }

    /// Hands on what was found since the last time.
    pub fn drain(&mut self, sink: &mut dyn MatchSink) {
        for found in self.found.drain(..) {
            match found {
                Found::Message(message) => sink.message(&message),
                Found::Collective(instance) => sink.collective(&instance),
                Found::Unmatched(unmatched) => sink.unmatched(&unmatched),
                Found::Active(operation) => sink.active(&operation),
            }
        }
    }

    fn seconds(&self, rank: usize, ticks: u64) -> f64 {
        self.timeline.ranks[rank].clock.seconds(ticks)
    }

    /// The message that a send and a receive are that belong together; `None` where it is not certain that
    /// there was one.
    pub fn message(&mut self, pair: &Pair) -> Option<Message> {
        let Pair { key, send, receive } = pair;
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
        let end = |rank: usize, post: &super::channels::Post, end_ticks: Option<u64>| MessageEnd {
            rank: self.run.ranks[rank].rank,
            thread: post.thread,
            begin_s: self.seconds(rank, post.begin_ticks),
            end_s: end_ticks.map(|ticks| self.seconds(rank, ticks)),
            begin_ticks: post.begin_ticks,
            end_ticks,
        };
        Some(Message {
            send: end(send.post.rank, &send.post, send.post.end_ticks),
            receive: end(receive.post.rank, &receive.post, receive.end_ticks()),
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
            begin_ticks: send.post.begin_ticks,
            begin_s: self.seconds(send.post.rank, send.post.begin_ticks),
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
            begin_ticks: receive.post.begin_ticks,
            begin_s: self.seconds(receive.post.rank, receive.post.begin_ticks),
            partner: Some(key.source),
            communicator: Some(key.communicator),
            bytes: 0,
        });
    }

    /// Takes a send or receive without a partner whose channel is not known; `rank` is the position
    /// in the run.
    pub fn unplaced(
        &mut self,
        side: Side,
        reason: Reason,
        post: &super::channels::Post,
        communicator: Option<u32>,
        bytes: u64,
    ) {
        self.unmatched(Unmatched {
            side,
            reason,
            rank: self.run.ranks[post.rank].rank,
            begin_ticks: post.begin_ticks,
            begin_s: self.seconds(post.rank, post.begin_ticks),
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

    /// Takes a collective instance that gets no more members.
    pub fn instance(&mut self, open: OpenInstance) {
        let members = open.members.iter().map(|member| CollectiveMember {
            rank: self.run.ranks[member.rank].rank,
            thread: member.thread,
            begin_s: self.seconds(member.rank, member.begin_ticks),
            end_s: member.end_ticks.map(|ticks| self.seconds(member.rank, ticks)),
            complete_s: member.complete_ticks.map(|ticks| self.seconds(member.rank, ticks)),
            begin_ticks: member.begin_ticks,
            sent_bytes: member.sent_bytes,
            received_bytes: member.received_bytes,
        });
        let instance = CollectiveInstance {
            communicator: open.communicator,
            function: self.names.name(open.function).to_owned(),
            number: open.number,
            members: members.collect(),
            missing: open.missing,
            mismatched: open.mismatched,
        };
        if instance.missing > 0 {
            self.summary.incomplete_instances += 1;
        } else {
            self.summary.complete_instances += 1;
        }
        self.summary.mismatched_instances += u64::from(instance.mismatched);
        self.found.push(Found::Collective(instance));
    }
}
