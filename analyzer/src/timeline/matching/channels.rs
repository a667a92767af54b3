//! MPI's order rule: sends in the order in which they were sent and receives in the order in which
//! they were posted come in; pairs go out.
//!
//! A channel is what cannot overtake: one communicator, source, destination and tag. Receives that
//! are posted for one channel queue in it at once, and are ready when they complete. A receive with
//! a wildcard enters its channel when its status has said which, at the place that its posting gives
//! it; until then nothing posted after it that it could have taken from may be paired.

use std::collections::{BTreeSet, HashMap, VecDeque};

use rustc_hash::FxHashMap;

use super::call::Call;
use super::channel::{Channel, Receive, Send, State, Wanted, Wildcards};
use super::findings::Reason;
use super::pairs::Pairs;

/// What messages cannot overtake each other in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ChannelKey {
    /// Position of the communicator in the table.
    pub communicator: u32,
    /// World rank of the sender.
    pub source: u32,
    /// World rank of the receiver.
    pub destination: u32,
    pub tag: i32,
    /// 0, or for partitioned operations 1 + their number by initialisation.
    pub lane: u32,
}

/// Where a channel stands in the table: good as long as the channel there has the same key, else a
/// place to be found anew.
pub(super) type At = u32;

/// Nowhere yet.
pub(super) const UNKNOWN: At = At::MAX;

/// Entries up to which empty channels are kept for their next message.
const KEPT_CHANNELS: usize = 4096;

/// A key that no channel has.
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
    places: FxHashMap<ChannelKey, At>,
    unused: Vec<At>,
    /// By communicator and destination.
    wildcards: FxHashMap<(u32, u32), Wildcards>,
    sends: u64,
    sweep_at: usize,
    /// Calls that completed sends which are in a channel still, by the send's number.
    sent: Option<FxHashMap<u64, Call>>,
    /// Pairs since they were last handed on.
    pub matched: Pairs,
}

impl Channels {
    /// Numbers its sends from a number on.
    pub fn number_from(&mut self, first: u64) {
        self.sends = first;
    }

    /// A number for a send.
    #[inline]
    pub fn next_number(&mut self) -> u64 {
        self.sends += 1;
        self.sends
    }

    /// Pairs will say what completed their sends.
    pub fn keep_completions(&mut self) {
        self.sent = Some(FxHashMap::default());
    }

    /// Gives up empty channels where there are many.
    fn sweep(&mut self) {
        if self.places.len() < self.sweep_at.max(KEPT_CHANNELS) {
            return;
        }
        for (at, channel) in (0..).zip(&mut self.table) {
            if channel.is_empty() && channel.key != NO_KEY {
                self.places.remove(&channel.key);
                *channel = Channel::new(NO_KEY);
                self.unused.push(at);
            }
        }
        self.sweep_at = 2 * self.places.len();
    }

    /// Where a channel stands, made if need be.
    #[inline(always)]
    pub fn place(&mut self, key: ChannelKey, guess: At) -> At {
        match self.table.get(guess as usize) {
            Some(channel) if channel.key == key => guess,
            _ => self.find_or_make(key),
        }
    }

    fn find_or_make(&mut self, key: ChannelKey) -> At {
        if let Some(at) = self.places.get(&key) {
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
                self.table.len() as At - 1
            }
        };
        self.places.insert(key, at);
        at
    }

    #[inline]
    fn channel(&self, (key, at): Address) -> Option<&Channel> {
        match self.table.get(at as usize) {
            Some(channel) if channel.key == key => Some(channel),
            _ => self.places.get(&key).map(|at| &self.table[*at as usize]),
        }
    }

    #[inline]
    fn channel_mut(&mut self, (key, at): Address) -> Option<&mut Channel> {
        let at = match self.table.get(at as usize) {
            Some(channel) if channel.key == key => at,
            _ => *self.places.get(&key)?,
        };
        self.table.get_mut(at as usize)
    }

    /// Adds a send; the address is told where its channel stands.
    #[inline(always)]
    pub fn send(&mut self, (key, at): &mut Address, send: Send) {
        *at = self.place(*key, *at);
        let channel = &mut self.table[*at as usize];
        channel.sends.push_back(send);
        if !channel.receives.is_empty() {
            channel.advance(&mut self.wildcards, &mut self.matched);
        }
    }

    fn send_mut(&mut self, place: Address, number: u64) -> Option<&mut Send> {
        let channel = self.channel_mut(place)?;
        let at = channel.send_at(number)?;
        channel.sends.get_mut(at)
    }

    /// Keeps a send from being paired: MPI_Cancel was called on it.
    pub fn doubt(&mut self, place: Address, number: u64) {
        if let Some(send) = self.send_mut(place, number) {
            send.in_doubt = true;
        }
    }

    /// Whether a send is kept from being paired.
    pub fn is_in_doubt(&mut self, place: Address, number: u64) -> bool {
        self.send_mut(place, number).is_some_and(|send| send.in_doubt)
    }

    /// A send was sent for certain; gives whether it is still there.
    pub fn settle(&mut self, place: Address, number: u64, by: Option<Call>) -> bool {
        let Some(send) = self.send_mut(place, number) else { return false };
        send.active = false;
        let was_in_doubt = std::mem::take(&mut send.in_doubt);
        if let (Some(sent), Some(by)) = (&mut self.sent, by) {
            sent.insert(number, by);
        }
        if was_in_doubt {
            self.advance(place);
        }
        true
    }

    /// A send whose rank has no more events may be paired, though it is not complete; gives whether it is
    /// still there.
    pub fn leave_send(&mut self, place: Address, number: u64) -> bool {
        let Some(send) = self.send_mut(place, number) else { return false };
        if std::mem::take(&mut send.in_doubt) {
            self.advance(place);
        }
        true
    }

    /// The call that completed a send that is in no channel any more.
    pub fn take_completion(&mut self, number: u64) -> Option<Call> {
        self.sent.as_mut()?.remove(&number)
    }

    /// Whether a send that was kept has met no receive.
    pub fn is_unmet_send(&self, place: Address, number: u64) -> bool {
        self.channel(place).is_some_and(|channel| channel.send_at(number).is_some())
    }

    /// Whether a receive that was kept has met no send.
    pub fn is_unmet_receive(&self, place: Address, sequence: u64) -> bool {
        self.channel(place).is_some_and(|channel| channel.receive_at(sequence).is_some())
    }

    /// Channels with a send that met no receive, by communicator and destination.
    pub fn unmet_sends(&self) -> HashMap<(u32, u32), Vec<ChannelKey>> {
        let mut unmet: HashMap<(u32, u32), Vec<ChannelKey>> = HashMap::new();
        for Channel { key, sends, .. } in &self.table {
            if key.lane == 0 && !sends.is_empty() {
                unmet.entry((key.communicator, key.destination)).or_default().push(*key);
            }
        }
        unmet
    }

    /// Takes out a send that was cancelled; `None` when it has been paired before.
    pub fn cancel_send(&mut self, place: Address, number: u64) -> Option<Send> {
        let channel = self.channel_mut(place)?;
        let send = channel.send_at(number).and_then(|at| channel.sends.remove(at));
        self.advance(place);
        send
    }

    /// Adds a receive that is known to take from this channel; the address is told where it stands.
    #[inline(always)]
    pub fn receive(&mut self, (key, at): &mut Address, receive: Receive) {
        *at = self.place(*key, *at);
        let channel = &mut self.table[*at as usize];
        let waits = receive.state == State::Waiting;
        channel.insert(receive);
        if !waits && !channel.sends.is_empty() {
            channel.advance(&mut self.wildcards, &mut self.matched);
        }
    }

    /// Completes the receive of that place in the order of posting.
    #[inline(always)]
    pub fn complete(
        &mut self,
        place: Address,
        sequence: u64,
        by: &Call,
        bytes: u64,
        truncated: bool,
    ) {
        self.change(place, sequence, |receive| {
            receive.state = State::Complete(*by);
            receive.bytes = (!truncated).then_some(bytes);
            receive.truncated |= truncated;
        });
    }

    /// A call posts a receive anew whose message a matched probe took.
    pub fn repost(&mut self, place: Address, sequence: u64, call: Call) {
        if let Some(channel) = self.channel_mut(place)
            && let Some(at) = channel.receive_at(sequence)
        {
            channel.receives[at].call = call;
        }
    }

    /// A receive whose rank has no more events: it takes its message all the same.
    pub fn leave_receive(&mut self, place: Address, sequence: u64) {
        self.change(place, sequence, |receive| {
            receive.state = State::Lost(Reason::Open);
            receive.active = true;
        });
    }

    /// A receive whose completion will not be known: it takes its message all the same.
    pub fn lose(&mut self, place: Address, sequence: u64, reason: Reason) {
        self.change(place, sequence, |receive| receive.state = State::Lost(reason));
    }

    #[inline(always)]
    fn change(&mut self, (key, at): Address, sequence: u64, change: impl FnOnce(&mut Receive)) {
        let Self { table, places, wildcards, matched, .. } = self;
        let at = match table.get(at as usize) {
            Some(channel) if channel.key == key => at,
            _ => places.get(&key).copied().unwrap_or(UNKNOWN),
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

    /// Takes out a receive that was cancelled.
    pub fn cancel_receive(&mut self, place: Address, sequence: u64) -> Option<Receive> {
        let channel = self.channel_mut(place)?;
        let at = channel.receive_at(sequence)?;
        let receive = channel.receives.remove(at);
        self.advance(place);
        receive
    }

    /// Adds a receive with a wildcard.
    pub fn wildcard(&mut self, communicator: u32, rank: u32, wanted: Wanted, sequence: u64) {
        let wildcards = self.wildcards.entry((communicator, rank)).or_default();
        wildcards.open.entry(wanted).or_default().insert(sequence);
    }

    /// Takes out a wildcard: it is complete and `received` says where, or it takes nothing.
    pub fn resolve(
        &mut self,
        (communicator, rank): (u32, u32),
        wanted: Wanted,
        sequence: u64,
        received: Option<(ChannelKey, Receive)>,
    ) {
        if let Some((key, receive)) = received {
            let at = self.place(key, UNKNOWN);
            self.table[at as usize].insert(Receive { wildcard: true, ..receive });
        }
        let mut retry: BTreeSet<(u32, i32)> = BTreeSet::new();
        if let Some(wildcards) = self.wildcards.get_mut(&(communicator, rank)) {
            if let Some(open) = wildcards.open.get_mut(&wanted) {
                open.remove(&sequence);
                if open.is_empty() {
                    wildcards.open.remove(&wanted);
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
            self.advance((key, UNKNOWN));
        }
    }

    /// Pairs what can be paired.
    fn advance(&mut self, (key, at): Address) {
        let at = match self.table.get(at as usize) {
            Some(channel) if channel.key == key => at,
            _ => self.places.get(&key).copied().unwrap_or(UNKNOWN),
        };
        if let Some(channel) = self.table.get_mut(at as usize) {
            channel.advance(&mut self.wildcards, &mut self.matched);
        }
    }

    /// Takes out the sends that no receive can meet any more, when the destination has no more
    /// events.
    pub fn orphaned_sends(&mut self, place: Address) -> Vec<Send> {
        let orphaned: Vec<Send> = match self.channel_mut(place) {
            Some(channel) if channel.receives.is_empty() => {
                let (kept, orphaned): (_, VecDeque<_>) = std::mem::take(&mut channel.sends)
                    .into_iter()
                    .partition(|send| send.in_doubt || send.active);
                channel.sends = kept;
                orphaned.into()
            }
            _ => Vec::new(),
        };
        for send in &orphaned {
            self.take_completion(send.number);
        }
        orphaned
    }

    /// Takes out the complete receives that no send can meet any more, when the source has no more
    /// events.
    pub fn orphaned_receives(&mut self, place: Address) -> Vec<Receive> {
        match self.channel_mut(place) {
            Some(channel) if channel.sends.is_empty() => {
                let (kept, orphaned): (_, VecDeque<_>) = std::mem::take(&mut channel.receives)
                    .into_iter()
                    .partition(|receive| receive.state == State::Waiting || receive.active);
                channel.receives = kept;
                orphaned.into()
            }
            _ => Vec::new(),
        }
    }

    /// Everything that is left, by channel.
    #[allow(clippy::type_complexity)] // Two lists of the same make.
    pub fn left(&mut self) -> (Vec<(ChannelKey, Send)>, Vec<(ChannelKey, Receive)>) {
        self.places.clear();
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

/// A channel's key, and where it may stand in the table.
pub(super) type Address = (ChannelKey, At);
