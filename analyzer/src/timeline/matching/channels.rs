//! MPI's rule on the order of messages: pairs sends in the order of sending with receives in the
//! order of posting.
//!
//! Messages on one channel (communicator, source, destination and tag) do not overtake each other.
//! A receive without wildcards joins its channel when it is posted, and is ready when it completes.
//! A receive with a wildcard joins its channel when its status is known, at the position of its
//! posting. Until then, later receives are not paired if they are on a channel from which it might
//! take.

use std::collections::{BTreeSet, HashMap, VecDeque};

use rustc_hash::FxHashMap;

use super::call::Call;
use super::channel::{Channel, Wildcards};
use super::channel_key::{Address, ChannelIndex, ChannelKey, UNKNOWN_INDEX};
use super::findings::Reason;
use super::in_flight::{Pattern, Receive, Send, State};
use super::pairs::Pairs;

/// With fewer channels, empty ones are kept for their next message.
const MIN_SWEPT_CHANNELS: usize = 4096;

/// Key of an unused entry; no channel has it.
const NO_KEY: ChannelKey = ChannelKey {
    communicator: u32::MAX,
    source: u32::MAX,
    destination: u32::MAX,
    tag: 0,
    lane: u32::MAX,
};

/// All channels of a run, or of a share of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Channels {
    table: Vec<Channel>,
    indices: FxHashMap<ChannelKey, ChannelIndex>,
    unused: Vec<ChannelIndex>,
    /// By communicator and destination.
    wildcards: FxHashMap<(u32, u32), Wildcards>,
    sends: u64,
    sweep_at: usize,
    /// Calls that completed sends that are still in a channel, by the send's number.
    sent: Option<FxHashMap<u64, Call>>,
    /// Pairs found since they were last emitted.
    pub matched: Pairs,
}

impl Channels {
    /// Sets the number from which sends are counted.
    pub fn number_from(&mut self, first: u64) {
        self.sends = first;
    }

    /// The number of the next send.
    #[inline]
    pub fn next_number(&mut self) -> u64 {
        self.sends += 1;
        self.sends
    }

    /// Records the completions of sends, for their pairs.
    pub fn keep_completions(&mut self) {
        self.sent = Some(FxHashMap::default());
    }

    /// Removes empty channels if there are many.
    fn sweep(&mut self) {
        if self.indices.len() < self.sweep_at.max(MIN_SWEPT_CHANNELS) {
            return;
        }
        for (at, channel) in (0..).zip(&mut self.table) {
            if channel.is_empty() && channel.key != NO_KEY {
                self.indices.remove(&channel.key);
                *channel = Channel::new(NO_KEY);
                self.unused.push(at);
            }
        }
        self.sweep_at = 2 * self.indices.len();
    }

    /// Index of a channel, which is added if necessary.
    #[inline(always)]
    pub fn index_of(&mut self, key: ChannelKey, guess: ChannelIndex) -> ChannelIndex {
        match self.table.get(guess as usize) {
            Some(channel) if channel.key == key => guess,
            _ => self.find_or_insert(key),
        }
    }

    fn find_or_insert(&mut self, key: ChannelKey) -> ChannelIndex {
        if let Some(at) = self.indices.get(&key) {
            return *at;
        }
        self.sweep();
        let at = match self.unused.pop() {
            Some(at) => {
                self.table[at as usize].key = key;
                at
            }
            None => {
                self.table.push(Channel::new(key));
                self.table.len() as ChannelIndex - 1
            }
        };
        self.indices.insert(key, at);
        at
    }

    #[inline]
    fn channel(&self, (key, at): Address) -> Option<&Channel> {
        match self.table.get(at as usize) {
            Some(channel) if channel.key == key => Some(channel),
            _ => self.indices.get(&key).map(|at| &self.table[*at as usize]),
        }
    }

    #[inline]
    fn channel_mut(&mut self, (key, at): Address) -> Option<&mut Channel> {
        let at = match self.table.get(at as usize) {
            Some(channel) if channel.key == key => at,
            _ => *self.indices.get(&key)?,
        };
        self.table.get_mut(at as usize)
    }

    /// Adds a send and updates the address of its channel.
    #[inline(always)]
    pub fn send(&mut self, (key, at): &mut Address, send: Send) {
        *at = self.index_of(*key, *at);
        let channel = &mut self.table[*at as usize];
        channel.sends.push_back(send);
        if !channel.receives.is_empty() {
            channel.advance(&mut self.wildcards, &mut self.matched);
        }
    }

    fn send_mut(&mut self, address: Address, number: u64) -> Option<&mut Send> {
        let channel = self.channel_mut(address)?;
        let at = channel.send_at(number)?;
        channel.sends.get_mut(at)
    }

    /// Keeps a send from being paired, because MPI_Cancel was called on it.
    pub fn mark_unconfirmed(&mut self, address: Address, number: u64) {
        if let Some(send) = self.send_mut(address, number) {
            send.unconfirmed = true;
        }
    }

    /// Records when, on the counter of its sender, MPI_Cancel returned that was called on a receive.
    pub fn cancel_requested_on_receive(&mut self, address: Address, sequence: u64, ticks: u64) {
        if let Some(channel) = self.channel_mut(address)
            && let Some(at) = channel.receive_at(sequence)
        {
            channel.receives[at].cancelled_ticks = ticks;
        }
    }

    /// Leaves it to the receives whether a send was sent.
    pub fn doubt(&mut self, address: Address, number: u64) {
        if let Some(send) = self.send_mut(address, number) {
            (send.active, send.unconfirmed, send.doubtful) = (false, false, true);
            self.advance(address);
        }
    }

    /// Whether a send is kept from being paired.
    pub fn is_unconfirmed(&mut self, address: Address, number: u64) -> bool {
        self.send_mut(address, number).is_some_and(|send| send.unconfirmed)
    }

    /// Marks a send as sent; returns whether it is still in the channel.
    pub fn settle(&mut self, address: Address, number: u64, by: Option<Call>) -> bool {
        let Some(send) = self.send_mut(address, number) else { return false };
        send.active = false;
        let was_unconfirmed = std::mem::take(&mut send.unconfirmed);
        if let (Some(sent), Some(by)) = (&mut self.sent, by) {
            sent.insert(number, by);
        }
        if was_unconfirmed {
            self.advance(address);
        }
        true
    }

    /// Allows a send to be paired although it is not complete, as its rank has no more events;
    /// returns whether it is still in the channel.
    pub fn release_send(&mut self, address: Address, number: u64) -> bool {
        let Some(send) = self.send_mut(address, number) else { return false };
        if std::mem::take(&mut send.unconfirmed) {
            self.advance(address);
        }
        true
    }

    /// The call that completed a send that has left its channel.
    pub fn take_completion(&mut self, number: u64) -> Option<Call> {
        self.sent.as_mut()?.remove(&number)
    }

    /// Whether an active send has met no receive.
    pub fn is_unmet_send(&self, address: Address, number: u64) -> bool {
        self.channel(address).is_some_and(|channel| channel.send_at(number).is_some())
    }

    /// Whether an active receive has met no send.
    pub fn is_unmet_receive(&self, address: Address, sequence: u64) -> bool {
        self.channel(address).is_some_and(|channel| channel.receive_at(sequence).is_some())
    }

    /// Channels with sends that met no receive, by communicator and destination.
    pub fn unmet_sends(&self) -> HashMap<(u32, u32), Vec<ChannelKey>> {
        let mut unmet: HashMap<(u32, u32), Vec<ChannelKey>> = HashMap::new();
        for Channel { key, sends, .. } in &self.table {
            if key.lane == 0 && !sends.is_empty() {
                unmet.entry((key.communicator, key.destination)).or_default().push(*key);
            }
        }
        unmet
    }

    /// Removes a send that was cancelled; `None` if it has been paired already.
    pub fn cancel_send(&mut self, address: Address, number: u64) -> Option<Send> {
        let channel = self.channel_mut(address)?;
        let send = channel.send_at(number).and_then(|at| channel.sends.remove(at));
        self.advance(address);
        send
    }

    /// Adds a receive that takes from this channel, and updates the channel's address.
    #[inline(always)]
    pub fn receive(&mut self, (key, at): &mut Address, receive: Receive) {
        *at = self.index_of(*key, *at);
        let channel = &mut self.table[*at as usize];
        let waits = receive.state == State::Waiting;
        channel.insert(receive);
        if !waits && !channel.sends.is_empty() {
            channel.advance(&mut self.wildcards, &mut self.matched);
        }
    }

    /// Completes the receive with this number in the order of posting.
    #[inline(always)]
    pub fn complete(
        &mut self,
        address: Address,
        sequence: u64,
        by: &Call,
        bytes: u64,
        truncated: bool,
    ) {
        self.change(address, sequence, |receive| {
            receive.state = State::Complete(*by);
            receive.bytes = (!truncated).then_some(bytes);
            receive.truncated |= truncated;
        });
    }

    /// Replaces the call that posted a receive: a matched probe took the message, and `call`
    /// receives it.
    pub fn repost(&mut self, address: Address, sequence: u64, call: Call) {
        if let Some(channel) = self.channel_mut(address)
            && let Some(at) = channel.receive_at(sequence)
        {
            channel.receives[at].call = call;
        }
    }

    /// Marks a receive whose rank has no more events. It still takes its message.
    pub fn release_receive(&mut self, address: Address, sequence: u64) {
        self.change(address, sequence, |receive| {
            receive.state = State::Lost(Reason::Open);
            receive.active = true;
        });
    }

    /// Marks a receive whose completion will never be known. It still takes its message.
    pub fn lose(&mut self, address: Address, sequence: u64, reason: Reason) {
        self.change(address, sequence, |receive| receive.state = State::Lost(reason));
    }

    #[inline(always)]
    fn change(&mut self, (key, at): Address, sequence: u64, change: impl FnOnce(&mut Receive)) {
        let Self { table, indices, wildcards, matched, .. } = self;
        let at = match table.get(at as usize) {
            Some(channel) if channel.key == key => at,
            _ => indices.get(&key).copied().unwrap_or(UNKNOWN_INDEX),
        };
        let channel = table.get_mut(at as usize);
        if let Some((channel, at)) = channel.and_then(|c| c.receive_at(sequence).map(|at| (c, at)))
        {
            change(&mut channel.receives[at]);
            if at == 0 && !channel.sends.is_empty() {
                channel.advance(wildcards, matched);
            }
        }
    }

    /// Removes a receive that was cancelled.
    pub fn cancel_receive(&mut self, address: Address, sequence: u64) -> Option<Receive> {
        let channel = self.channel_mut(address)?;
        let at = channel.receive_at(sequence)?;
        let receive = channel.receives.remove(at);
        self.advance(address);
        receive
    }

    /// Adds a receive with a wildcard.
    pub fn wildcard(&mut self, communicator: u32, rank: u32, pattern: Pattern, sequence: u64) {
        let wildcards = self.wildcards.entry((communicator, rank)).or_default();
        wildcards.open.entry(pattern).or_default().insert(sequence);
    }

    /// Removes a wildcard receive, which took the message in `received` or none.
    pub fn resolve(
        &mut self,
        (communicator, rank): (u32, u32),
        pattern: Pattern,
        sequence: u64,
        received: Option<(ChannelKey, Receive)>,
    ) {
        if let Some((key, receive)) = received {
            let at = self.index_of(key, UNKNOWN_INDEX);
            self.table[at as usize].insert(Receive { wildcard: true, ..receive });
        }
        let mut retry: BTreeSet<(u32, i32)> = BTreeSet::new();
        if let Some(wildcards) = self.wildcards.get_mut(&(communicator, rank)) {
            if let Some(open) = wildcards.open.get_mut(&pattern) {
                open.remove(&sequence);
                if open.is_empty() {
                    wildcards.open.remove(&pattern);
                }
            }
            retry = std::mem::take(&mut wildcards.held);
            if wildcards.open.is_empty() {
                self.wildcards.remove(&(communicator, rank));
            }
        }
        retry.extend(received.map(|(key, _)| (key.source, key.tag)));
        for (source, tag) in retry {
            let key = ChannelKey { communicator, source, destination: rank, tag, lane: 0 };
            self.advance((key, UNKNOWN_INDEX));
        }
    }

    /// Pairs sends and receives of a channel as far as possible.
    fn advance(&mut self, (key, at): Address) {
        let at = match self.table.get(at as usize) {
            Some(channel) if channel.key == key => at,
            _ => self.indices.get(&key).copied().unwrap_or(UNKNOWN_INDEX),
        };
        if let Some(channel) = self.table.get_mut(at as usize) {
            channel.advance(&mut self.wildcards, &mut self.matched);
        }
    }

    /// Removes the sends that no receive can meet any more, given that the destination has no more
    /// events.
    pub fn orphaned_sends(&mut self, address: Address) -> Vec<Send> {
        let orphaned: Vec<Send> = match self.channel_mut(address) {
            Some(channel) if channel.receives.is_empty() => {
                let (remaining, orphaned): (_, VecDeque<_>) = std::mem::take(&mut channel.sends)
                    .into_iter()
                    .partition(|send| send.unconfirmed || send.active);
                channel.sends = remaining;
                orphaned.into()
            }
            _ => Vec::new(),
        };
        for send in &orphaned {
            self.take_completion(send.number);
        }
        orphaned
    }

    /// Removes the complete receives that no send can meet any more, given that the source has no
    /// more events.
    pub fn orphaned_receives(&mut self, address: Address) -> Vec<Receive> {
        match self.channel_mut(address) {
            Some(channel) if channel.sends.is_empty() => {
                let (remaining, orphaned): (_, VecDeque<_>) = std::mem::take(&mut channel.receives)
                    .into_iter()
                    .partition(|receive| receive.state == State::Waiting || receive.active);
                channel.receives = remaining;
                orphaned.into()
            }
            _ => Vec::new(),
        }
    }

    /// Removes and returns everything that is left, ordered by channel.
    #[allow(clippy::type_complexity)] // Two similar lists.
    pub fn take_remaining(&mut self) -> (Vec<(ChannelKey, Send)>, Vec<(ChannelKey, Receive)>) {
        self.indices.clear();
        let mut channels = std::mem::take(&mut self.table);
        channels.sort_unstable_by_key(|channel| channel.key);
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for channel in channels {
            let key = channel.key;
            sends.extend(channel.sends.into_iter().map(|send| (key, send)));
            receives.extend(channel.receives.into_iter().map(|receive| (key, receive)));
        }
        (sends, receives)
    }
}
