//! A run as a graph: what every thread computed between its calls, and the dependencies between
//! calls. Times are seconds since the earliest begin of a rank.

use std::ops::Range;

use trace_format::meaning::SendMode;

use crate::causes::contexts::Contexts;
use crate::trace::Run;

use super::algorithm::Algorithm;
use super::beside::Beside;
use super::movement::{Movement, Needs};

/// The number of an operation in the graph.
pub(super) type OpNumber = u32;

pub(super) const NO_OP: OpNumber = u32::MAX;

/// A call, and what the thread did before it. An operation without links takes no time: it only
/// holds a stretch of computation, or is the thread's end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Op {
    /// Time before it in the recorder and in calls that need no other rank, seconds.
    pub library_s: f32,
    /// The context of the computation before it.
    pub context: u32,
    /// Its first link.
    pub(super) links: u32,
}

/// When a call was entered and left in the recorded run, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Recorded {
    /// Begin.
    pub entered_s: f64,
    /// End.
    pub left_s: f64,
}

/// What a call does to a message or collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkKind {
    /// Sends, and returns when the library has taken the message.
    Send,
    /// Begins to send.
    PostSend,
    /// Completes a send that an earlier call began.
    CompleteSend,
    Receive,
    PostReceive,
    /// Completes a receive that an earlier call posted.
    CompleteReceive,
    /// Takes part in a collective operation.
    Collective,
    /// Begins its part in a collective operation.
    PostCollective,
    /// Completes its part in a collective operation.
    CompleteCollective,
}

impl LinkKind {
    /// Whether the call begins something, which costs an overhead.
    pub fn begins(self) -> bool {
        matches!(self, Self::Send | Self::PostSend | Self::PostReceive | Self::PostCollective)
    }

    /// Whether the call ends a transfer, which costs an overhead, too; a blocking send does not.
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

/// The link of a call to a message, or to a member of a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub kind: LinkKind,
    /// Number of the message, or of the member.
    pub of: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// The calls that begin to send and that post the receive.
    pub send: OpNumber,
    pub receive: OpNumber,
    pub lines: [u32; 2],
    pub sending: SendMode,
    pub bytes: f64,
}

#[derive(Debug, Clone)]
pub(super) struct Collective {
    pub needs: Needs,
    pub movement: Movement,
    /// How it is carried out.
    pub algorithm: Algorithm,
    /// Maximum number of bytes that a member sends or receives.
    pub bytes: f64,
    /// Its members, in the order of their ranks in the communicator if that matters.
    pub members: Range<u32>,
    pub root: u32,
    /// Its communicator's index in the groups.
    pub group: u32,
}

/// A rank's part in a collective operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub collective: u32,
    /// The call that begins it.
    pub posted: OpNumber,
    pub sends: bool,
    pub receives: bool,
}

/// A thread in the graph.
#[derive(Debug, Clone)]
pub struct GraphLine {
    /// Position of its rank in the run.
    pub position: usize,
    /// Its number in the rank's file.
    pub thread: u32,
    /// Its operations; the last one is its end.
    pub(super) ops: Range<u32>,
    /// When it begins.
    pub begin_s: f64,
}

/// A run that can be replayed.
#[derive(Debug)]
pub struct Graph<'a> {
    pub run: &'a Run,
    /// Threads, rank by rank.
    pub lines: Vec<GraphLine>,
    /// Names of contexts.
    pub contexts: Contexts,
    /// Number of calls that are replayed.
    pub calls: usize,
    pub(super) ops: Vec<Op>,
    /// By operation the computation before it, in one context, seconds.
    pub(super) own: Vec<f64>,
    pub(super) links: Vec<Link>,
    pub(super) messages: Vec<Message>,
    pub(super) collectives: Vec<Collective>,
    pub(super) members: Vec<Member>,
    /// The lines of each communicator that has collective operations.
    pub(super) groups: Vec<Vec<u32>>,
    /// By operation.
    pub(super) recorded: Vec<Recorded>,
    /// From the earliest begin of a rank to the latest end, as recorded; seconds.
    pub elapsed_s: f64,
    /// Ticks of the common axis in a second, and its earliest begin of a rank.
    pub(super) axis: (f64, i64),
    /// Time in calls whose partners are unknown, which is replayed unchanged; sum over all ranks,
    /// seconds.
    pub fixed_s: f64,
    /// Parts of the computation.
    pub beside: Beside,
}

/// Operations from the begin of a run on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Window {
    /// The end of the operations of each line.
    pub ends: Vec<OpNumber>,
    /// From the earliest begin of a rank to the last of these operations, as recorded; seconds.
    pub elapsed_s: f64,
    /// Whether these are all operations.
    pub is_whole: bool,
}

impl Graph<'_> {
    /// All operations.
    pub(super) fn whole(&self) -> Window {
        let ends = self.lines.iter().map(|line| line.ops.end).collect();
        Window { ends, elapsed_s: self.elapsed_s, is_whole: true }
    }

    /// The operations that had begun when the line with the most had begun this share of them.
    pub(super) fn beginning(&self, share: f64) -> Window {
        let of_line =
            |line: &GraphLine| &self.recorded[line.ops.start as usize..line.ops.end as usize];
        let longest = self.lines.iter().map(of_line).max_by_key(|ops| ops.len());
        let until = longest.map_or(0.0, |ops| ops[(ops.len() as f64 * share) as usize].entered_s);
        let end = |line: &GraphLine| {
            let begun = of_line(line).partition_point(|op| op.entered_s <= until) as u32;
            line.ops.start + begun.max(1)
        };
        let ends: Vec<OpNumber> = self.lines.iter().map(end).collect();
        let last = ends.iter().map(|end| self.recorded[*end as usize - 1].entered_s);
        let begin = self.lines.iter().map(|line| line.begin_s).fold(f64::INFINITY, f64::min);
        let elapsed_s = last.fold(begin, f64::max) - begin;
        Window { ends, elapsed_s, is_whole: false }
    }

    /// The links of a call.
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

    /// Frees the operations and what they are linked to.
    pub(super) fn free_operations(&mut self) {
        (self.ops, self.own, self.links, self.recorded) = Default::default();
        (self.messages, self.collectives, self.members) = Default::default();
    }
}
