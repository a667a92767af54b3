//! Pairs the sends of one channel, in the order of sending, with its receives, in the order of
//! posting.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::call::Call;
use super::channels::ChannelKey;
use super::findings::Reason;
use super::pairs::{Alone, Pairs};

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
    /// Completed by this call.
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

    /// The call that completed it.
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
    fn was_withdrawn_before(&self, send: &Send) -> bool {
        matches!(self.state, State::Lost(_)) && send.call.begin_ticks >= self.cancelled_ticks
    }

    /// Whether it certainly took another message than this, because its status has another size.
    fn contradicts(&self, send: &Send) -> bool {
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

/// The sends and receives of one channel that are in flight.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    pub key: ChannelKey,
    pub sends: VecDeque<Send>,
    pub receives: VecDeque<Receive>,
}

impl Channel {
    pub fn new(key: ChannelKey) -> Self {
        Self { key, sends: VecDeque::new(), receives: VecDeque::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty()
    }

    #[inline]
    pub fn insert(&mut self, receive: Receive) {
        let at = match self.receives.back() {
            Some(last) if last.sequence > receive.sequence => {
                self.receives.partition_point(|other| other.sequence < receive.sequence)
            }
            _ => self.receives.len(),
        };
        match at == self.receives.len() {
            true => self.receives.push_back(receive),
            false => self.receives.insert(at, receive),
        }
    }

    #[inline]
    pub fn receive_at(&self, sequence: u64) -> Option<usize> {
        if self.receives.front().is_some_and(|first| first.sequence == sequence) {
            return Some(0);
        }
        if self.receives.back().is_some_and(|last| last.sequence == sequence) {
            return Some(self.receives.len() - 1);
        }
        self.receives.binary_search_by_key(&sequence, |receive| receive.sequence).ok()
    }

    pub fn send_at(&self, number: u64) -> Option<usize> {
        if self.sends.front().is_some_and(|first| first.number == number) {
            return Some(0);
        }
        self.sends.binary_search_by_key(&number, |send| send.number).ok()
    }
}

/// Wildcard receives of one rank on one communicator whose channel is not known yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Wildcards {
    /// Their numbers in the order of posting.
    pub open: BTreeMap<Pattern, BTreeSet<u64>>,
    /// Channels whose first receive is ready but has to wait for one of these.
    pub held: BTreeSet<(u32, i32)>,
}

impl Wildcards {
    /// Whether a wildcard receive that may take from the channel was posted before `sequence`.
    fn precede(&self, key: &ChannelKey, sequence: u64) -> bool {
        let classes = [(None, Some(key.tag)), (Some(key.source), None), (None, None)];
        let first = |pattern| self.open.get(pattern).and_then(BTreeSet::first);
        classes.iter().filter_map(first).any(|posted| *posted < sequence)
    }
}

impl Channel {
    /// Pairs sends and receives as far as possible.
    #[inline]
    pub fn advance(
        &mut self,
        wildcards: &mut FxHashMap<(u32, u32), Wildcards>,
        matched: &mut Pairs,
    ) {
        let key = self.key;
        while let (Some(send), Some(receive)) = (self.sends.front(), self.receives.front()) {
            if send.unconfirmed || receive.state == State::Waiting {
                break;
            }
            if key.lane == 0
                && !wildcards.is_empty()
                && let Some(wildcards) = wildcards.get_mut(&(key.communicator, key.destination))
                && wildcards.precede(&key, receive.sequence)
            {
                wildcards.held.insert((key.source, key.tag));
                break;
            }
            if receive.was_withdrawn_before(send) {
                matched
                    .withdrawn
                    .extend(self.receives.pop_front().map(|r| (key, Alone::Receive(r))));
                continue;
            }
            if send.doubtful && receive.contradicts(send) {
                matched.withdrawn.extend(self.sends.pop_front().map(|s| (key, Alone::Send(s))));
                continue;
            }
            matched.push(key, send, receive);
            self.sends.pop_front();
            self.receives.pop_front();
        }
    }
}
