//! What an observer of matching is told, and how: messages, collective instances, what has no partner, runs
//! of polls; and the counts of all.

use std::collections::BTreeMap;

use super::active::ActiveOperation;
use super::call::Call;

/// One end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
    /// World rank of its root, where the operation has one that is known.
    pub root: Option<u32>,
    /// Its members in the order of their calls' end.
    pub members: Vec<CollectiveMember>,
    /// Ranks of the communicator whose call is not there (no file, died before it, cut off, of
    /// another world).
    pub missing: u32,
    /// Members called different operations: the program is wrong, or events are missing.
    pub mismatched: bool,
}

/// A call that reads or writes another rank's memory (MPI_Put and kin): it needs no partner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Access {
    /// Rank in MPI_COMM_WORLD that calls.
    pub origin: u32,
    /// Rank in MPI_COMM_WORLD whose memory it is.
    pub target: u32,
    /// Position of the window's communicator in the table.
    pub communicator: u32,
    /// Global seconds when the call begins.
    pub begin_s: f64,
    /// Bytes that go to the target.
    pub put_bytes: u64,
    /// Bytes that come from it.
    pub got_bytes: u64,
    /// The call.
    pub call: Call,
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
    /// Calls that wait for others without a message or a collective operation of their own: probes, and what
    /// ranks do together.
    pub waiting: bool,
}

impl Wants {
    /// What either asks for.
    pub fn or(self, other: Self) -> Self {
        Self {
            completions: self.completions || other.completions,
            polls: self.polls || other.polls,
            waiting: self.waiting || other.waiting,
        }
    }
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

/// A probe, and the call that receives the message that it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probed {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// The probe.
    pub probe: Call,
    /// The call that posts the message's receive ([`MessageEnd::posted`]).
    pub posted: Call,
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
    /// A probe whose message is received, before the message itself.
    fn probed(&mut self, _probed: &Probed) {}
    /// A message.
    fn message(&mut self, message: &Message);
    /// A collective operation.
    fn collective(&mut self, _instance: &CollectiveInstance) {}
    /// What all members of a communicator, window or file did together ([`Operation::Together`]), where it was
    /// asked for.
    ///
    /// [`Operation::Together`]: trace_format::meaning::Operation::Together
    fn together(&mut self, _instance: &CollectiveInstance) {}
    /// A send or receive without a partner.
    fn unmatched(&mut self, _unmatched: &Unmatched) {}
    /// An access to another rank's memory, or to its own.
    fn access(&mut self, _access: &Access) {}
    /// An operation that was not complete when its rank's events ended; these come last.
    fn active(&mut self, _operation: &ActiveOperation) {}
}
