//! MPI's order rule: sends in the order in which they were sent and receives in the order in which
//! they were posted come in; pairs go out.
//!
//! A channel is what cannot overtake: one communicator, source, destination and tag. Receives that
//! are posted for one channel queue in it at once, and are ready when they complete. A receive with
//! a wildcard enters its channel when its status has said which, at the place that its posting gives
//! it; until then nothing posted after it that it could have taken from may be paired.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use rustc_hash::FxHashMap;

use super::outcome::Reason;

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

/// The call that sends, or posts a receive, on the rank's own counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Post {
    /// Position of the rank in the run.
    pub rank: usize,
    pub thread: u32,
    pub begin_ticks: u64,
    /// `None` when the call did not return.
    pub end_ticks: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Send {
    number: u64,
    pub post: Post,
    pub bytes: u64,
    /// MPI_Cancel was called on it; whether it was sent is not known yet.
    in_doubt: bool,
    /// Not complete on the sender's side: it is kept until somebody asks whether it met a receive.
    active: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Complete { end_ticks: Option<u64> },
    Lost(Reason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receive {
    sequence: u64,
    pub post: Post,
    /// From its status.
    pub bytes: Option<u64>,
    pub wildcard: bool,
    /// The message was longer than the buffer: its call says so.
    pub truncated: bool,
    state: State,
    /// Its rank's events ended before it was complete: kept like an active send.
    active: bool,
}

impl Receive {
    /// A receive that is complete.
    pub fn complete(sequence: u64, post: Post, end_ticks: Option<u64>, bytes: u64) -> Self {
        let state = State::Complete { end_ticks };
        Self { bytes: Some(bytes), state, ..Self::waiting(sequence, post) }
    }

    /// The receive, of a message that did not fit where `truncated`: how much of it was received no
    /// status says reliably.
    pub fn cut_if(self, truncated: bool) -> Self {
        if truncated { Self { bytes: None, truncated, ..self } } else { self }
    }

    /// A receive that is not complete yet.
    pub fn waiting(sequence: u64, post: Post) -> Self {
        let state = State::Waiting;
        Self {
            sequence,
            post,
            bytes: None,
            wildcard: false,
            truncated: false,
            state,
            active: false,
        }
    }

    /// When it was completed.
    pub fn end_ticks(&self) -> Option<u64> {
        match self.state {
            State::Complete { end_ticks } => end_ticks,
            _ => None,
        }
    }

    /// Why its completion is not known.
    pub fn lost(&self) -> Option<Reason> {
        match self.state {
            State::Complete { .. } => None,
            State::Waiting => Some(Reason::Open),
            State::Lost(reason) => Some(reason),
        }
    }
}

/// A send and the receive that it met.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub key: ChannelKey,
    pub send: Send,
    pub receive: Receive,
}

/// What a receive was posted for; `None` is a wildcard.
pub(super) type Wanted = (Option<u32>, Option<i32>);

/// Whether a receive with a wildcard may take from a channel.
pub(super) fn takes((source, tag): Wanted, key: &ChannelKey) -> bool {
    source.is_none_or(|source| source == key.source) && tag.is_none_or(|tag| tag == key.tag)
}

#[derive(Debug, Clone, Default)]
struct Channel {
    sends: VecDeque<Send>,
    receives: VecDeque<Receive>,
}

impl Channel {
    fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty()
    }

    fn insert(&mut self, receive: Receive) {
        let at = match self.receives.back() {
            Some(last) if last.sequence > receive.sequence => {
                self.receives.partition_point(|other| other.sequence < receive.sequence)
            }
            _ => self.receives.len(),
        };
        self.receives.insert(at, receive);
    }

    fn receive_at(&self, sequence: u64) -> Option<usize> {
        if self.receives.front().is_some_and(|first| first.sequence == sequence) {
            return Some(0);
        }
        self.receives.binary_search_by_key(&sequence, |receive| receive.sequence).ok()
    }

    fn send_at(&self, number: u64) -> Option<usize> {
        self.sends.binary_search_by_key(&number, |send| send.number).ok()
    }
}

/// Wildcard receives of one rank on one communicator that no status has resolved.
#[derive(Debug, Clone, Default)]
struct Wildcards {
    /// Their places in the order of posting.
    open: BTreeMap<Wanted, BTreeSet<u64>>,
    /// Channels whose first receive is ready, but must wait for one of them.
    held: BTreeSet<(u32, i32)>,
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
    fn advance(
        &mut self,
        key: ChannelKey,
        wildcards: &mut FxHashMap<(u32, u32), Wildcards>,
        matched: &mut Vec<Pair>,
    ) {
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
            matched.push(Pair { key, send: *send, receive: *receive });
            self.sends.pop_front();
            self.receives.pop_front();
        }
    }
}

/// Entries up to which empty channels are kept for their next message.
const KEPT_CHANNELS: usize = 4096;

/// All channels of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Channels {
    channels: FxHashMap<ChannelKey, Channel>,
    /// By communicator and destination.
    wildcards: FxHashMap<(u32, u32), Wildcards>,
    sends: u64,
    sweep_at: usize,
    /// Pairs since they were last drained.
    pub matched: Vec<Pair>,
}

impl Channels {
    fn sweep(&mut self) {
        if self.channels.len() >= self.sweep_at.max(KEPT_CHANNELS) {
            self.channels.retain(|_, channel| !channel.is_empty());
            self.sweep_at = 2 * self.channels.len();
        }
    }

    /// Adds a send; gives the number that names it. One that is `active` is complete only when
    /// [`Channels::settle`] says so.
    pub fn send(&mut self, key: ChannelKey, post: Post, bytes: u64, active: bool) -> u64 {
        self.sends += 1;
        let number = self.sends;
        let send = Send { number, post, bytes, in_doubt: false, active };
        self.sweep();
        let Self { channels, wildcards, matched, .. } = self;
        let channel = channels.entry(key).or_default();
        channel.sends.push_back(send);
        channel.advance(key, wildcards, matched);
        number
    }

    fn send_mut(&mut self, key: ChannelKey, number: u64) -> Option<&mut Send> {
        let channel = self.channels.get_mut(&key)?;
        let at = channel.send_at(number)?;
        channel.sends.get_mut(at)
    }

    /// Keeps a send from being paired: MPI_Cancel was called on it.
    pub fn doubt(&mut self, key: ChannelKey, number: u64) {
        if let Some(send) = self.send_mut(key, number) {
            send.in_doubt = true;
        }
    }

    /// Whether a send is kept from being paired.
    pub fn is_in_doubt(&mut self, key: ChannelKey, number: u64) -> bool {
        self.send_mut(key, number).is_some_and(|send| send.in_doubt)
    }

    /// A send was sent for certain.
    pub fn settle(&mut self, key: ChannelKey, number: u64) {
        let Some(send) = self.send_mut(key, number) else { return };
        send.active = false;
        if std::mem::take(&mut send.in_doubt) {
            self.advance(key);
        }
    }

    /// A send whose rank has no more events may be paired, though it is not complete.
    pub fn leave_send(&mut self, key: ChannelKey, number: u64) {
        if let Some(send) = self.send_mut(key, number)
            && std::mem::take(&mut send.in_doubt)
        {
            self.advance(key);
        }
    }

    /// Whether a send that was kept has met no receive.
    pub fn is_unmet_send(&mut self, key: ChannelKey, number: u64) -> bool {
        self.send_mut(key, number).is_some()
    }

    /// Whether a receive that was kept has met no send.
    pub fn is_unmet_receive(&self, key: ChannelKey, sequence: u64) -> bool {
        self.channels.get(&key).is_some_and(|channel| channel.receive_at(sequence).is_some())
    }

    /// Channels with a send that met no receive, by communicator and destination.
    pub fn unmet_sends(&self) -> HashMap<(u32, u32), Vec<ChannelKey>> {
        let mut unmet: HashMap<(u32, u32), Vec<ChannelKey>> = HashMap::new();
        for (key, channel) in &self.channels {
            if key.lane == 0 && !channel.sends.is_empty() {
                unmet.entry((key.communicator, key.destination)).or_default().push(*key);
            }
        }
        unmet
    }

    /// Takes out a send that was cancelled; `None` when it has been paired before.
    pub fn cancel_send(&mut self, key: ChannelKey, number: u64) -> Option<Send> {
        let channel = self.channels.get_mut(&key)?;
        let send = channel.send_at(number).and_then(|at| channel.sends.remove(at));
        self.advance(key);
        send
    }

    /// Adds a receive that is known to take from this channel.
    pub fn receive(&mut self, key: ChannelKey, receive: Receive) {
        self.sweep();
        let Self { channels, wildcards, matched, .. } = self;
        let channel = channels.entry(key).or_default();
        channel.insert(receive);
        channel.advance(key, wildcards, matched);
    }

    /// Completes the receive of that place in the order of posting.
    pub fn complete(&mut self, key: ChannelKey, complete: Receive) {
        self.change(key, complete.sequence, |receive| *receive = complete);
    }

    /// A receive whose rank has no more events: it takes its message all the same.
    pub fn leave_receive(&mut self, key: ChannelKey, sequence: u64) {
        self.change(key, sequence, |receive| {
            receive.state = State::Lost(Reason::Open);
            receive.active = true;
        });
    }

    /// A receive whose completion will not be known: it takes its message all the same.
    pub fn lose(&mut self, key: ChannelKey, sequence: u64, reason: Reason) {
        self.change(key, sequence, |receive| receive.state = State::Lost(reason));
    }

    fn change(&mut self, key: ChannelKey, sequence: u64, change: impl FnOnce(&mut Receive)) {
        let Self { channels, wildcards, matched, .. } = self;
        let channel = channels.get_mut(&key);
        if let Some((channel, at)) = channel.and_then(|c| c.receive_at(sequence).map(|at| (c, at)))
        {
            change(&mut channel.receives[at]);
            if at == 0 {
                channel.advance(key, wildcards, matched);
            }
        }
    }

    /// Takes out a receive that was cancelled.
    pub fn cancel_receive(&mut self, key: ChannelKey, sequence: u64) {
        if let Some(channel) = self.channels.get_mut(&key)
            && let Some(at) = channel.receive_at(sequence)
        {
            channel.receives.remove(at);
            self.advance(key);
        }
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
            self.sweep();
            self.channels.entry(key).or_default().insert(Receive { wildcard: true, ..receive });
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
            self.advance(ChannelKey { communicator, source, destination: rank, tag, lane: 0 });
        }
    }

    /// Pairs what can be paired.
    fn advance(&mut self, key: ChannelKey) {
        if let Some(channel) = self.channels.get_mut(&key) {
            channel.advance(key, &mut self.wildcards, &mut self.matched);
        }
    }

    /// Takes out the sends that no receive can meet any more, when the destination has no more
    /// events.
    pub fn orphaned_sends(&mut self, key: ChannelKey) -> Vec<Send> {
        match self.channels.get_mut(&key) {
            Some(channel) if channel.receives.is_empty() => {
                let (kept, orphaned): (_, VecDeque<_>) = std::mem::take(&mut channel.sends)
                    .into_iter()
                    .partition(|send| send.in_doubt || send.active);
                channel.sends = kept;
                orphaned.into()
            }
            _ => Vec::new(),
        }
    }

    /// Takes out the complete receives that no send can meet any more, when the source has no more
    /// events.
    pub fn orphaned_receives(&mut self, key: ChannelKey) -> Vec<Receive> {
        match self.channels.get_mut(&key) {
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
        let mut channels: Vec<_> = self.channels.drain().collect();
        channels.sort_unstable_by_key(|(key, _)| *key);
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for (key, channel) in channels {
            sends.extend(channel.sends.into_iter().map(|send| (key, send)));
            receives.extend(channel.receives.into_iter().map(|receive| (key, receive)));
        }
        (sends, receives)
    }
}
