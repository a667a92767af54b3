//! The findings that matching passes to a [`MatchSink`]: messages, collective instances, sends and
//! receives without a partner, runs of polls; and their counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trace_format::meaning::EpochCall;

use super::call::Call;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MessageEnd {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Thread that sent, or posted the receive.
    pub thread: u32,
    /// Global seconds at the begin of the call that sends (for a persistent operation its start) or
    /// posts the receive.
    pub begin_s: f64,
    /// For a send, when that call returns; for a receive, when the call that completes it returns.
    /// `None` if it never did.
    pub end_s: Option<f64>,
    /// Counter of the rank at the begin.
    pub begin_ticks: u64,
    /// Counter of the rank at the end.
    pub end_ticks: Option<u64>,
    /// The call that sends (for a persistent operation its start) or posts the receive.
    pub posted: Call,
    /// The call that completed it, which for a blocking call is the same. Always known for a
    /// receive; for a send only if [`MatchInterest::completions`] was set and it completed.
    pub completed: Option<Call>,
}

/// A matched send and receive.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Message {
    pub send: MessageEnd,
    pub receive: MessageEnd,
    /// Position of the communicator in the table.
    pub communicator: u32,
    pub tag: i32,
    /// Bytes sent.
    pub bytes: u64,
    /// Whether the receive was posted with a wildcard; not recorded for blocking receives.
    pub wildcard: bool,
    /// Whether it was longer than the receive's buffer, so that the receive returned
    /// MPI_ERR_TRUNCATE.
    pub truncated: bool,
}

/// One rank's part in a collective operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectiveMember {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Thread that called.
    pub thread: u32,
    /// Global seconds when the call (for a persistent operation its start) begins.
    pub begin_s: f64,
    /// When the call returns; `None` if it did not.
    pub end_s: Option<f64>,
    /// When the operation is complete on this rank: the end of a blocking call, or of the call that
    /// completes the request; `None` if that was not seen.
    pub complete_s: Option<f64>,
    /// Counter of the rank at the begin.
    pub begin_ticks: u64,
    /// The call (for a persistent operation its start).
    pub posted: Call,
    /// The call that completed it, which for a blocking call is the same; `None` if that was not
    /// seen.
    pub completed: Option<Call>,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

/// The collective calls that belong together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CollectiveInstance {
    /// Position of the communicator in the table.
    pub communicator: u32,
    /// Name of the operation's blocking form; if members called different ones, of the one that the
    /// run's files name first.
    pub function: String,
    /// Number of the operation on its communicator, from 0; each persistent operation is counted
    /// separately.
    pub number: u64,
    /// 0; for a persistent operation 1 + its number on the communicator, in order of initialisation.
    /// With communicator and number it identifies the instance.
    pub lane: u32,
    /// World rank of the root, if the operation has one and it is known.
    pub root: Option<u32>,
    /// Its members in the order in which their calls ended.
    pub members: Vec<CollectiveMember>,
    /// Number of ranks whose call is missing: no file, died before, recording ended, other world.
    pub missing: u32,
    /// Whether members called different operations: either the program is wrong or events are
    /// missing.
    pub mismatched: bool,
}

/// A call that reads or writes another rank's memory (MPI_Put and the like). It has no partner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Access {
    /// Rank in MPI_COMM_WORLD that calls.
    pub origin: u32,
    /// Rank in MPI_COMM_WORLD whose memory is accessed.
    pub target: u32,
    /// Position of the window's communicator in the table.
    pub communicator: u32,
    /// The window's number on the rank that calls.
    pub window: u32,
    /// Global seconds when the call begins.
    pub begin_s: f64,
    /// Bytes written to the target.
    pub put_bytes: u64,
    /// Bytes read from the target.
    pub got_bytes: u64,
    pub call: Call,
}

/// A call that begins, ends or waits for an epoch of one-sided communication among some ranks of a
/// window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    pub call: Call,
    /// What it does.
    pub what: EpochCall,
    /// The window's number on the rank.
    pub window: u32,
    /// Number on the rank of the group that MPI_Win_start or MPI_Win_post names; 0 if unknown.
    pub group: u32,
    /// World rank whose memory is locked, unlocked or flushed, if the call names one that is known.
    pub target: Option<u32>,
    /// Whether a lock is exclusive; `None` if that was not recorded.
    pub exclusive: Option<bool>,
}

/// One end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    Send,
    Receive,
}

/// Why a send or receive has no partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// It was cancelled.
    Cancelled,
    /// It ended with an error.
    Failed,
    /// A receive that was never completed in the recorded part, or the send that it would take.
    Open,
    /// A receive whose request was freed before its completion, or the send that it would take.
    Freed,
    /// A wildcard receive whose source is unknown, because its call failed.
    SourceUnknown,
    /// The partner's file is missing or cannot be read.
    FileMissing,
    /// The partner died or had not finished.
    PartnerUnfinished,
    /// The partner's recording ended early, or part of it is damaged.
    PartnerCut,
    /// The partner was recorded at level 0, or with an MPI library that is not known.
    PartnerWithoutAttributes,
    /// The partner has no matching call, for example if a message is sent and never received.
    NoPartner,
    /// The communicator, or its members, are not known.
    UnknownCommunicator,
    /// A receive by a message handle of an unknown matched probe.
    UnknownHandle,
    /// The partner is a process of another world (spawned or connected).
    OutsideWorld,
    /// The communicator has no such rank.
    InvalidPeer,
}

impl Reason {
    /// All reasons, in their order.
    pub const ALL: [Self; 14] = [
        Self::Cancelled,
        Self::Failed,
        Self::Open,
        Self::Freed,
        Self::SourceUnknown,
        Self::FileMissing,
        Self::PartnerUnfinished,
        Self::PartnerCut,
        Self::PartnerWithoutAttributes,
        Self::NoPartner,
        Self::UnknownCommunicator,
        Self::UnknownHandle,
        Self::OutsideWorld,
        Self::InvalidPeer,
    ];

    /// Its name on screens and in JSON reports.
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
    /// Which end it is.
    pub side: Side,
    /// Why it has no partner.
    pub reason: Reason,
    /// Rank in MPI_COMM_WORLD that sends or receives.
    pub rank: u32,
    /// Counter of that rank when the call that sends or posts begins.
    pub begin_ticks: u64,
    /// The same in global seconds.
    pub begin_s: f64,
    /// World rank of its partner, if known.
    pub partner: Option<u32>,
    /// Position of the communicator in the table, if known.
    pub communicator: Option<u32>,
    /// Bytes of a send.
    pub bytes: u64,
}

/// Numbers of sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sides {
    /// Sends.
    pub sends: u64,
    /// Receives.
    pub receives: u64,
}

impl Sides {
    /// Counts one send or receive.
    pub fn add(&mut self, side: Side) {
        match side {
            Side::Send => self.sends += 1,
            Side::Receive => self.receives += 1,
        }
    }

    /// Adds other counts.
    pub fn add_all(&mut self, other: Self) {
        self.sends += other.sends;
        self.receives += other.receives;
    }
}

/// Counts of what matching found in the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MatchingSummary {
    /// Messages.
    pub matched: u64,
    /// Sends and receives without a partner, by reason.
    pub unmatched: BTreeMap<Reason, Sides>,
    /// Messages for which the receive's status and the send disagree on the size, which means that
    /// the matching or the trace is wrong.
    pub size_mismatches: u64,
    /// Messages that were longer than their receive's buffer (MPI_ERR_TRUNCATE).
    pub truncated: u64,
    /// Completions of requests whose creation was not recorded.
    pub unknown_requests: u64,
    /// Collective calls on an unknown communicator.
    pub unknown_collectives: u64,
    /// Collective instances with all members.
    pub complete_instances: u64,
    /// Collective instances with missing members.
    pub incomplete_instances: u64,
    /// Collective instances whose members called different operations.
    pub mismatched_instances: u64,
}

impl MatchingSummary {
    /// Adds the counts of another part of the same run.
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

/// Optional findings that a sink asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatchInterest {
    /// The calls that completed sends and, when matching in shares, non-blocking collective
    /// operations. A message is passed on only when both its sides are complete or will never be.
    pub completions: bool,
    /// Runs of polls that found nothing.
    pub polls: bool,
    /// Calls that wait for others although they have neither a message nor a collective operation:
    /// probes, operations that ranks do together, and epochs of one-sided communication.
    pub waiting: bool,
}

impl MatchInterest {
    /// Everything that one of the two asks for.
    pub fn or(self, other: Self) -> Self {
        Self {
            completions: self.completions || other.completions,
            polls: self.polls || other.polls,
            waiting: self.waiting || other.waiting,
        }
    }
}

/// A run of polls (tests, probes) that found nothing. A poll that finds something is a separate
/// call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polls {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// The whole run of polls, from the begin of the first to the end of the last.
    pub call: Call,
    /// Number of polls.
    pub count: u64,
    pub inside_ticks: u64,
    /// The request that they test, truncated; 0 for none or several.
    pub request: u32,
}

/// A probe, and the call that receives the message that it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbedMessage {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    pub probe: Call,
    /// The call that posts the message's receive ([`MessageEnd::posted`]).
    pub posted: Call,
}

/// Receives what matching finds.
///
/// The order depends on the caller. [`match_run`](super::match_run) follows all ranks at once, by
/// the end of their calls: messages arrive when they are certain, roughly in the order of their
/// completion. [`match_in_shares`](super::match_in_shares) proceeds rank by rank, in rounds: within
/// a share, messages arrive when they are certain there; across shares they have no order, and
/// neither do the members of an instance. Results that must be the same either way must not depend
/// on the order.
pub trait MatchSink {
    /// Optional findings that this sink asks for.
    fn wants(&self) -> MatchInterest {
        MatchInterest::default()
    }

    fn take(&mut self, finding: &MatchFinding);
}

/// The sink that ignores everything.
impl MatchSink for () {
    fn take(&mut self, _finding: &MatchFinding) {}
}

/// Two sinks as one.
impl<A: MatchSink, B: MatchSink> MatchSink for (A, B) {
    fn wants(&self) -> MatchInterest {
        self.0.wants().or(self.1.wants())
    }

    fn take(&mut self, finding: &MatchFinding) {
        self.0.take(finding);
        self.1.take(finding);
    }
}

/// An optional sink.
impl<A: MatchSink> MatchSink for Option<A> {
    fn wants(&self) -> MatchInterest {
        self.as_ref().map(MatchSink::wants).unwrap_or_default()
    }

    fn take(&mut self, finding: &MatchFinding) {
        if let Some(sink) = self {
            sink.take(finding);
        }
    }
}

/// Something that matching found.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // Most are messages, and all are short-lived.
pub enum MatchFinding {
    Message(Message),
    Collective(CollectiveInstance),
    /// An operation that all members of a communicator, window or file did together
    /// ([`Operation::Together`]), if asked for.
    ///
    /// [`Operation::Together`]: trace_format::meaning::Operation::Together
    ImplicitCollective(CollectiveInstance),
    /// A send or receive without a partner.
    Unmatched(Unmatched),
    /// An access to another rank's memory or to the rank's own.
    Access(Access),
    /// A call of an epoch of one-sided communication, if asked for. Those of a rank, and its
    /// accesses, arrive in the rank's own order.
    Epoch(Epoch),
    /// A run of polls, if asked for.
    Polls(Polls),
    /// A probe whose message is received; precedes the message.
    Probed(ProbedMessage),
    /// An operation that was not complete when its rank's events ended. These come last.
    Active(ActiveOperation),
}

/// An operation that was not complete when its rank's events ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveOperation {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Its request, truncated; `None` for a call that did not return.
    pub request: Option<u32>,
    /// Counter of the rank when the call that started the operation began (for a persistent one its
    /// start); `None` if the operation is not known.
    pub begin_ticks: Option<u64>,
    /// Kind of operation.
    pub work: ActiveWork,
}

/// What an active operation is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActiveWork {
    Send {
        /// World rank of the receiver.
        to: u32,
        tag: i32,
        /// Position of the communicator in the table.
        communicator: u32,
        /// Whether a receive for it is posted.
        met: bool,
    },
    Receive {
        /// World rank of the sender; `None` for MPI_ANY_SOURCE.
        from: Option<u32>,
        /// Tag; `None` for MPI_ANY_TAG.
        tag: Option<i32>,
        /// Position of the communicator in the table.
        communicator: u32,
        /// Whether a send for it has begun.
        met: bool,
    },
    /// A non-blocking collective operation.
    Collective {
        /// Position of the communicator in the table.
        communicator: u32,
    },
    /// Something else, or with a partner that is not known.
    Other,
}
