//! A run as a graph: what every thread computed between its calls, and which calls needed what of whom.
//! Times in it are seconds from the earliest begin of a rank on.

use std::ops::Range;

use crate::causes::contexts::Contexts;
use crate::causes::semantics::SendMode;
use crate::trace::Run;

/// The number of an operation among all.
pub(super) type OpNumber = u32;

/// Not there.
pub(super) const NO_OP: OpNumber = u32::MAX;

/// What a thread did up to a call, and the call. One without links takes no time: it only holds a stretch of
/// computation, or is the thread's end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Op {
    /// Computation before it, in one context, seconds.
    pub own_s: f64,
    /// Time before it in calls that need nobody, and in the recorder, seconds.
    pub library_s: f32,
    /// Where it computed.
    pub context: u32,
    /// Its first link.
    pub(super) links: u32,
}

/// When a call was entered and left in the run as it was recorded, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Recorded {
    /// Begin.
    pub entered_s: f64,
    /// End.
    pub left_s: f64,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkKind {
    /// Sends, and returns when the library has the message.
    Send,
    /// Begins to send.
    PostSend,
    /// Completes a send that an earlier call began.
    CompleteSend,
    /// Receives.
    Receive,
    /// Posts a receive.
    PostReceive,
    /// Completes a receive that an earlier call posted.
    CompleteReceive,
    /// Takes part in a collective operation.
    Collective,
    /// Begins its part.
    PostCollective,
    /// Completes it.
    CompleteCollective,
}

impl LinkKind {
    /// Whether the call begins something, at the price of an overhead.
    pub fn begins(self) -> bool {
        matches!(self, Self::Send | Self::PostSend | Self::PostReceive | Self::PostCollective)
    }

    /// Whether it ends a transfer, at the same price; a send that blocks does not.
    pub fn completes(self) -> bool {
        matches!(self, Self::Receive | Self::CompleteReceive | Self::CompleteSend)
    }

    pub fn completes_send(self) -> bool {
        matches!(self, Self::Send | Self::CompleteSend)
    }

    pub fn completes_receive(self) -> bool {
        matches!(self, Self::Receive | Self::CompleteReceive)
    }

    pub fn is_collective(self) -> bool {
        matches!(self, Self::Collective | Self::PostCollective | Self::CompleteCollective)
    }
}

/// What a call does to a message, or with its part in a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub kind: LinkKind,
    /// Number of the message, or of the member.
    pub of: u32,
}

/// A message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// The call that begins to send, and the one that posts the receive.
    pub send: OpNumber,
    pub receive: OpNumber,
    /// Their lines.
    pub lines: [u32; 2],
    pub sending: SendMode,
    pub bytes: f64,
}

/// Which part of a collective operation needs which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// All, and all send: in rounds.
    Everybody,
    /// All of those that send.
    All,
    /// The root's.
    Root,
    /// The root those of all that send.
    AtRoot,
    /// Those of lower ranks, and its own.
    Lower,
}

/// How data moves in a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Movement {
    /// None: a barrier.
    Nothing,
    /// None, and what it takes behind the last member's entry stays as it was: what makes communicators, windows and
    /// files, fences.
    Meeting,
    /// The same to or from everybody: broadcast, reduce, allreduce, scan.
    Same,
    /// Other data to each: gather, scatter, allgather, reduce_scatter.
    Parts,
    /// Other data between any two: alltoall.
    Pairs,
}

/// A collective operation.
#[derive(Debug, Clone)]
pub(super) struct Collective {
    pub needs: Needs,
    pub movement: Movement,
    /// The most bytes that a member sends or receives.
    pub bytes: f64,
    /// Its members, by rank in the communicator where that matters.
    pub members: Range<u32>,
    /// The member that is the root.
    pub root: u32,
    /// Its communicator's number among the groups.
    pub group: u32,
}

/// A rank's part in a collective operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub collective: u32,
    /// The call that begins it, and its line.
    pub posted: OpNumber,
    pub line: u32,
    pub sends: bool,
    pub receives: bool,
}

/// A thread.
#[derive(Debug, Clone)]
pub struct GraphLine {
    /// Position of its rank in the run.
    pub position: usize,
    /// Its operations; the last one is its end.
    pub(super) ops: Range<u32>,
    /// When it begins.
    pub begin_s: f64,
}

/// A run that can be replayed.
#[derive(Debug)]
pub struct Graph<'a> {
    /// The run.
    pub run: &'a Run,
    /// Threads, rank by rank.
    pub lines: Vec<GraphLine>,
    /// Names of contexts.
    pub contexts: Contexts,
    pub(super) ops: Vec<Op>,
    pub(super) links: Vec<Link>,
    pub(super) messages: Vec<Message>,
    pub(super) collectives: Vec<Collective>,
    pub(super) members: Vec<Member>,
    /// The lines of each communicator that has collective operations.
    pub(super) groups: Vec<Vec<u32>>,
    /// By operation.
    pub(super) recorded: Vec<Recorded>,
    /// From the earliest begin of a rank to the latest end, as recorded.
    pub elapsed_s: f64,
    /// Time in calls whose partners are not known, which is replayed as it was; of all ranks together.
    pub fixed_s: f64,
}

impl Graph<'_> {
    /// What a call does.
    #[inline]
    pub(super) fn links(&self, op: OpNumber) -> &[Link] {
        let from = self.ops[op as usize].links as usize;
        let to = self.ops.get(op as usize + 1).map_or(self.links.len(), |next| next.links as usize);
        &self.links[from..to]
    }

    /// The line that an operation is on.
    pub(super) fn line_of(&self, op: OpNumber) -> u32 {
        self.lines.partition_point(|line| line.ops.end <= op) as u32
    }

    /// How many calls are replayed.
    pub fn calls(&self) -> usize {
        self.ops.len()
    }
}
