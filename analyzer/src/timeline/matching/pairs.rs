//! Pairs on their way from the channels to who asked for messages. They are written where they stay, as each
//! copy of one costs as much as finding it.

use super::call::Call;
use super::channel::{Receive, Send};
use super::channels::ChannelKey;

/// A send and the receive that it met.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub key: ChannelKey,
    pub send: Send,
    /// The call that completed the send, where somebody asks for it and it is known.
    pub sent: Option<Call>,
    pub receive: Receive,
}

/// Pairs in the order in which they were found.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs {
    /// Behind `count` is room.
    places: Vec<Pair>,
    count: usize,
}

impl Pairs {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, key: ChannelKey, send: &Send, receive: &Receive) {
        match self.places.get_mut(self.count) {
            Some(place) => {
                place.key = key;
                place.send = *send;
                place.sent = None;
                place.receive = *receive;
            }
            None => self.places.push(Pair { key, send: *send, sent: None, receive: *receive }),
        }
        self.count += 1;
    }

    pub fn as_slice(&self) -> &[Pair] {
        self.places.get(..self.count).unwrap_or_default()
    }

    /// Keeps the room.
    pub fn clear(&mut self) {
        self.count = 0;
    }
}

impl Extend<Pair> for Pairs {
    fn extend<I: IntoIterator<Item = Pair>>(&mut self, pairs: I) {
        self.places.truncate(self.count);
        self.places.extend(pairs);
        self.count = self.places.len();
    }
}
