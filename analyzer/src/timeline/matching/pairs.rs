//! Buffers pairs between the channels and the emitter. Pairs are written in place, because copying
//! one costs as much as finding it.

use super::call::Call;
use super::channel_key::ChannelKey;
use super::in_flight::{Receive, Send};

/// A send and the receive that it met.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub key: ChannelKey,
    pub send: Send,
    /// The call that completed the send, if it was asked for and is known.
    pub sent: Option<Call>,
    pub receive: Receive,
}

/// A send or receive that was cancelled, as its partners show.
#[derive(Debug, Clone, Copy)]
pub(super) enum Alone {
    Send(Send),
    Receive(Receive),
}

/// Pairs in the order in which they were found.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs {
    /// Slots from `count` on are free.
    slots: Vec<Pair>,
    count: usize,
    /// What turned out to have been cancelled; rare.
    pub withdrawn: Vec<(ChannelKey, Alone)>,
}

impl Pairs {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.withdrawn.is_empty()
    }

    /// Adds a pair.
    #[inline]
    pub fn push(&mut self, key: ChannelKey, send: &Send, receive: &Receive) {
        match self.slots.get_mut(self.count) {
            Some(slot) => {
                slot.key = key;
                slot.send = *send;
                slot.sent = None;
                slot.receive = *receive;
            }
            None => self.slots.push(Pair { key, send: *send, sent: None, receive: *receive }),
        }
        self.count += 1;
    }

    pub fn as_slice(&self) -> &[Pair] {
        self.slots.get(..self.count).unwrap_or_default()
    }

    /// Removes all pairs, keeping the memory.
    pub fn clear(&mut self) {
        self.count = 0;
    }
}

impl Extend<Pair> for Pairs {
    fn extend<I: IntoIterator<Item = Pair>>(&mut self, pairs: I) {
        self.slots.truncate(self.count);
        self.slots.extend(pairs);
        self.count = self.slots.len();
    }
}
