//! Pairs the sends of one channel, in the order of sending, with its receives, in the order of
//! posting.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::channel_key::ChannelKey;
use super::in_flight::{Pattern, Receive, Send, State};
use super::pairs::{Alone, Pairs};

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
