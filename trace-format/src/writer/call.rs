//! Calls recorded by another tool, and facts learned about them later.

use crate::layout::*;
use crate::slot::{bytes_fit, completion_flags};

/// A call that was recorded elsewhere.
#[derive(Debug, Clone, Default)]
pub struct NewCall {
    /// Function's number.
    pub function: u16,
    /// Begin in ticks.
    pub begin: u64,
    /// End in ticks; `None` if the trace ends inside the call.
    pub end: Option<u64>,
    /// Local id of its communicator.
    pub communicator: u16,
    /// For a call that completes one request, how it was completed; `None` if it completed none.
    pub completes: Option<Completes>,
    /// Peer or root.
    pub peer: i32,
    /// Tag.
    pub tag: i32,
    /// Bytes sent or moved.
    pub bytes: u64,
    /// Bytes received by a collective operation.
    pub received: Option<u64>,
    /// Request.
    pub request: u32,
    /// Receiving half.
    pub receive: Option<Half>,
    /// Requests of a call on several.
    pub requests: Vec<RequestState>,
    /// For a run of polls, their number and the ticks inside them.
    pub polls: Option<(u64, u64)>,
    /// For a compute call, its operations and bytes.
    pub compute: Option<(f64, u64)>,
}

/// How a request was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completes {
    /// Whether its operation was cancelled.
    pub cancelled: bool,
}

/// Index of the slot with a call's receiving half, counted from its own slot.
pub(super) const RECEIVE_SLOT: usize = 1;

impl NewCall {
    /// Slots of the call: its own, the receiving half, and all others.
    pub(super) fn slots(&self) -> Vec<Slot> {
        let duration = self.end.map_or(0, |end| end.saturating_sub(self.begin));
        let long = duration >= u64::from(DURATION_ESCAPE);
        let open = if self.end.is_none() { FUNCTION_OPEN } else { 0 };
        let short = if long || self.polls.is_some() { DURATION_ESCAPE } else { duration as u32 };
        let received = self.received.unwrap_or(0);
        let fits = bytes_fit(self.bytes, received, self.received.is_some());
        let flags = self.completes.map_or(0, |of| completion_flags(true, of.cancelled));
        let own = match self.compute {
            Some((flops, bytes)) => Slot::of_work(flops, bytes),
            None => Slot {
                peer: self.peer,
                detail: if self.received.is_some() { received as i32 } else { self.tag },
                bytes: if fits { self.bytes as u32 } else { BYTES_ESCAPE },
                request: self.request,
                ..Slot::default()
            },
        };
        let word = slot_word(short, self.function | open, self.communicator | flags);
        let mut slots = vec![Slot { begin: self.begin, word, ..own }];
        let mut add = |more: Continuation| slots.push(more.slot());
        if let Some(half) = self.receive {
            add(Continuation::Receive(half));
        }
        if let Some((count, inside)) = self.polls {
            add(Continuation::Polls { count, inside, span: duration });
        } else if long {
            add(Continuation::Duration { ticks: duration, error: 0 });
        }
        if !fits && self.compute.is_none() {
            add(Continuation::Bytes { sent: self.bytes, received });
        }
        self.requests.iter().for_each(|state| add(Continuation::Request(*state)));
        slots
    }
}

/// A fact learned about a call after it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amendment {
    /// Source and tag of its receiving half.
    Half {
        /// Source.
        peer: i32,
        /// Tag.
        tag: i32,
    },
    /// Source, tag and the communicator's local id.
    Source {
        /// Source.
        peer: i32,
        /// Tag.
        tag: i32,
        /// Local id.
        communicator: u16,
    },
    /// Root of a collective operation.
    Root(i32),
    /// All attributes of a collective operation. Numbers of bytes that do not fit are capped.
    Collective {
        /// Local id of the communicator.
        communicator: u16,
        /// Root.
        root: i32,
        /// Bytes sent.
        sent: u64,
        /// Bytes received.
        received: u64,
    },
}

impl Amendment {
    /// Index of the slot to change, counted from the call's own.
    pub(super) fn slot(&self) -> usize {
        if matches!(self, Self::Half { .. }) { RECEIVE_SLOT } else { 0 }
    }

    pub(super) fn put(self, slot: &mut Slot) {
        let word = slot.word & !(0xffff << 48);
        let with = |communicator: u16| word | u64::from(communicator) << 48;
        match self {
            Self::Half { peer, tag } => (slot.peer, slot.detail) = (peer, tag),
            Self::Source { peer, tag, communicator } => {
                (slot.peer, slot.detail, slot.word) = (peer, tag, with(communicator));
            }
            Self::Root(root) => slot.peer = root,
            Self::Collective { communicator, root, sent, received } => {
                (slot.word, slot.peer) = (with(communicator), root);
                slot.bytes = u32::try_from(sent).unwrap_or(BYTES_ESCAPE - 1).min(BYTES_ESCAPE - 1);
                slot.detail = i32::try_from(received).unwrap_or(i32::MAX);
            }
        }
    }
}
