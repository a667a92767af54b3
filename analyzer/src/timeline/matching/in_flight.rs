//! Sends and receives that are in flight.

use super::call::Call;
use super::channel_key::ChannelKey;
use super::findings::Reason;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Send {
    /// Ascending within each channel, and unique among the sends of a run.
    pub number: u64,
    pub call: Call,
    pub bytes: u64,
    /// Whether it was complete when its call returned.
    pub blocking: bool,
    /// It may have been cancelled, so it is not known yet whether it was sent.
    pub unconfirmed: bool,
    /// MPI_Cancel was called on it, and then its request was freed: only the receives show whether
    /// it was sent.
    pub doubtful: bool,
    /// Not complete on the sender's side. It is kept to find out at the end whether it met a
    /// receive.
    pub active: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Complete(Call),
    Lost(Reason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receive {
    /// Number in the rank's order of posting.
    pub sequence: u64,
    /// The call that posted it.
    pub call: Call,
    /// Bytes from its status.
    pub bytes: Option<u64>,
    pub wildcard: bool,
    /// Its call returned that the message was longer than the buffer.
    pub truncated: bool,
    /// Counter of the sender's rank when MPI_Cancel on this receive returned; `u64::MAX` if it was
    /// not called.
    pub cancelled_ticks: u64,
    pub state: State,
    /// Its rank's events ended before it was complete. It is kept like an active send.
    pub active: bool,
}

impl Receive {
    /// A receive that is complete.
    pub fn complete(sequence: u64, call: Call, by: Call, bytes: u64) -> Self {
        let state = State::Complete(by);
        Self { bytes: Some(bytes), state, ..Self::waiting(sequence, call) }
    }

    /// Marks the receive as truncated if `truncated`. Its size is unknown then, because the status
    /// is not reliable.
    pub fn truncated_if(self, truncated: bool) -> Self {
        if truncated { Self { bytes: None, truncated, ..self } } else { self }
    }

    /// A receive that is not complete yet.
    pub fn waiting(sequence: u64, call: Call) -> Self {
        let state = State::Waiting;
        Self {
            sequence,
            call,
            bytes: None,
            wildcard: false,
            truncated: false,
            cancelled_ticks: u64::MAX,
            state,
            active: false,
        }
    }

    pub fn completed(&self) -> Option<Call> {
        match self.state {
            State::Complete(by) => Some(by),
            _ => None,
        }
    }

    /// Counter when that call returned.
    pub fn completed_ticks(&self) -> Option<u64> {
        match &self.state {
            State::Complete(by) => by.end_ticks(),
            _ => None,
        }
    }

    /// Why its completion is not known.
    pub fn lost(&self) -> Option<Reason> {
        match self.state {
            State::Complete(_) => None,
            State::Waiting => Some(Reason::Open),
            State::Lost(reason) => Some(reason),
        }
    }

    /// Why it took no message, if that is not its partner's doing.
    pub fn why_alone(&self) -> Option<Reason> {
        let cancelled = self.cancelled_ticks != u64::MAX;
        self.lost().map(|reason| if cancelled { Reason::Cancelled } else { reason })
    }

    /// Whether it was cancelled before a send began. Only for a receive whose completion was not
    /// seen.
    pub(super) fn was_withdrawn_before(&self, send: &Send) -> bool {
        matches!(self.state, State::Lost(_)) && send.call.begin_ticks >= self.cancelled_ticks
    }

    /// Whether it certainly took another message than this, because its status has another size.
    pub(super) fn contradicts(&self, send: &Send) -> bool {
        let received = self.bytes.filter(|bytes| *bytes < MAX_STATUS_BYTES);
        matches!(self.state, State::Complete(_))
            && received.is_some_and(|received| received != send.bytes)
    }
}

/// Larger byte counts in a status may be recorded as this number.
pub(super) const MAX_STATUS_BYTES: u64 = u32::MAX as u64 - 1;

/// Source and tag for which a receive was posted; `None` is a wildcard.
pub(super) type Pattern = (Option<u32>, Option<i32>);

/// Whether a receive with this pattern may take messages from a channel.
pub(super) fn accepts((source, tag): Pattern, key: &ChannelKey) -> bool {
    source.is_none_or(|source| source == key.source) && tag.is_none_or(|tag| tag == key.tag)
}
