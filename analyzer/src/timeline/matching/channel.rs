//! One channel: its sends in the order in which they were sent, its receives in the order in which they
//! were posted; pairs go out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::call::Call;
use super::channels::ChannelKey;
use super::findings::Reason;
use super::pairs::Pairs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Send {
    /// Numbers ascend in each channel, and no two sends of a run have the same.
    pub number: u64,
    pub call: Call,
    pub bytes: u64,
    /// Complete when its call returned.
    pub blocking: bool,
    /// It may have been cancelled: whether it was sent is not known yet.
    pub in_doubt: bool,
    /// Not complete on the sender's side: it is kept until somebody asks whether it met a receive.
    pub active: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    /// By that call.
    Complete(Call),
    Lost(Reason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receive {
    /// Its place in the rank's order of posting.
    pub sequence: u64,
    /// The call that posted it.
    pub call: Call,
    /// From its status.
    pub bytes: Option<u64>,
    pub wildcard: bool,
    /// The message was longer than the buffer: its call says so.
    pub truncated: bool,
    pub state: State,
    /// Its rank's events ended before it was complete: kept like an active send.
    pub active: bool,
}

impl Receive {
    /// A receive that is complete.
    pub fn complete(sequence: u64, call: Call, by: Call, bytes: u64) -> Self {
        let state = State::Complete(by);
        Self { bytes: Some(bytes), state, ..Self::waiting(sequence, call) }
    }

    /// The receive, of a message that did not fit where `truncated`: how much of it was received no
    /// status says reliably.
    pub fn cut_if(self, truncated: bool) -> Self {
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
}

/// What a receive was posted for; `None` is a wildcard.
pub(super) type Wanted = (Option<u32>, Option<i32>);

/// Whether a receive with a wildcard may take from a channel.
pub(super) fn takes((source, tag): Wanted, key: &ChannelKey) -> bool {
    source.is_none_or(|source| source == key.source) && tag.is_none_or(|tag| tag == key.tag)
}

/// What of one channel is in flight.
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

/// Wildcard receives of one rank on one communicator that no status has resolved.
#[derive(Debug, Clone, Default)]
pub(super) struct Wildcards {
    /// Their places in the order of posting.
    pub open: BTreeMap<Wanted, BTreeSet<u64>>,
    /// Channels whose first receive is ready, but must wait for one of them.
    pub held: BTreeSet<(u32, i32)>,
}

impl Wildcards {
    /// Whether a wildcard that may take from a channel was posted before that place.
    fn precede(&self, key: &ChannelKey, sequence: u64) -> bool {
        let classes = [(None, Some(key.tag)), (Some(key.source), None), (None, None)];
        let first = |wanted| self.open.get(wanted).and_then(BTreeSet::first);
        classes.iter().filter_map(first).any(|posted| *posted < sequence)
    }
}

impl Channel {
    /// Pairs what can be paired.
    #[inline]
    pub fn advance(
        &mut self,
        wildcards: &mut FxHashMap<(u32, u32), Wildcards>,
        matched: &mut Pairs,
    ) {
        let key = self.key;
        while let (Some(send), Some(receive)) = (self.sends.front(), self.receives.front()) {
            if send.in_doubt || receive.state == State::Waiting {
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
            matched.push(key, send, receive);
            self.sends.pop_front();
            self.receives.pop_front();
        }
    }
}
