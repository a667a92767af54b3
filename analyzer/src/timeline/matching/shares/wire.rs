//! What a share forwards to another process, in few bytes. A rank's calls follow each other closely, and
//! most have the same arguments as the one before: of each only differences are written, about a tenth
//! of what it takes in memory.

use bincode::{Decode, Encode};
use trace_format::encoded::{unzigzag, zigzag};

use crate::timeline::matching::channel_key::ChannelKey;
use crate::timeline::matching::fate::Fate;
use crate::timeline::matching::in_flight::Send;
use crate::timeline::matching::share::{CollectiveCall, CollectiveCompletion, Forwarded};

use super::super::call::Call;
use super::super::collectives::{CallCounts, Contribution, OpenMember, SequenceKey};

/// [`Forwarded`] on its way to another process.
#[derive(Debug, Encode, Decode)]
pub(super) struct Sent {
    /// Number of sends and of calls of collective operations.
    counts: [u64; 2],
    /// Both, each as differences to the one before.
    calls: Vec<u8>,
    fates: Vec<(ChannelKey, u64, Fate)>,
    completions: Vec<CollectiveCompletion>,
    ends: Vec<(usize, CallCounts)>,
}

impl From<Forwarded> for Sent {
    fn from(forwarded: Forwarded) -> Self {
        let Forwarded { sends, fates, collectives, completions, ends } = forwarded;
        let mut writer = Writer::default();
        writer.bytes.reserve(16 * (sends.len() + collectives.len()));
        let mut last = FIRST_SEND;
        for send in &sends {
            writer.send(&last, send);
            last = *send;
        }
        let mut last = FIRST_CALL;
        for call in &collectives {
            writer.collective(&last, call);
            last = *call;
        }
        let counts = [sends.len() as u64, collectives.len() as u64];
        Self { counts, calls: writer.bytes, fates, completions, ends }
    }
}

impl From<Sent> for Forwarded {
    fn from(sent: Sent) -> Self {
        let Sent { counts: [sends, collectives], calls, fates, completions, ends } = sent;
        let mut reader = Reader { bytes: &calls };
        let mut last = FIRST_SEND;
        let sends = (0..sends).map(|_| {
            last = reader.send(&last);
            last
        });
        let sends = sends.collect();
        let mut last = FIRST_CALL;
        let collectives = (0..collectives).map(|_| {
            last = reader.collective(&last);
            last
        });
        let collectives = collectives.collect();
        assert!(
            reader.bytes.is_empty(),
            "another process sent more calls: is its program another?"
        );
        Self { sends, fates, collectives, completions, ends }
    }
}

/// What the first send and the first call of a collective operation are compared with.
const FIRST_SEND: (ChannelKey, Send) = (
    ChannelKey { communicator: 0, source: 0, destination: 0, tag: 0, lane: 0 },
    Send {
        number: 0,
        call: Call::NONE,
        bytes: 0,
        blocking: false,
        unconfirmed: false,
        doubtful: false,
        active: false,
    },
);
const FIRST_CALL: CollectiveCall = CollectiveCall {
    key: SequenceKey { communicator: 0, lane: 0 },
    number: 0,
    function: 0,
    member: OpenMember {
        rank: 0,
        call: Call::NONE,
        completed: None,
        pending: false,
        contribution: Contribution { sent_bytes: 0, received_bytes: 0, root: None },
    },
};

/// In the first byte of a send or call: its arguments, and function and thread, are those of the one
/// before.
const SAME_ARGUMENTS: u8 = 1;
const SAME_FUNCTION: u8 = 1 << 1;
const BLOCKING: u8 = 1 << 2;
const UNCONFIRMED: u8 = 1 << 3;
const ACTIVE: u8 = 1 << 4;
const PENDING: u8 = 1 << 2;
/// A collective operation that its own call completed.
const COMPLETED_BY_ITSELF: u8 = 1 << 3;
const COMPLETED_BY_OTHER: u8 = 1 << 4;

fn flag(bit: u8, is_set: bool) -> u8 {
    if is_set { bit } else { 0 }
}

/// Writes numbers of few bits in few bytes, seven bits in each.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    #[inline]
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A number near the one before.
    #[inline]
    fn difference(&mut self, last: u64, value: u64) {
        self.number(zigzag(value.wrapping_sub(last) as i64));
    }

    #[inline]
    fn call(&mut self, last: &Call, call: &Call, same_function: bool) {
        self.difference(last.begin_ticks, call.begin_ticks);
        self.number(call.end_ticks.wrapping_sub(call.begin_ticks));
        self.difference(last.event, call.event);
        if !same_function {
            self.number(call.thread.into());
            self.number(call.function.into());
        }
    }

    fn send(&mut self, (last_key, last): &(ChannelKey, Send), (key, send): &(ChannelKey, Send)) {
        // A send is forwarded before it can be in doubt.
        let Send { number, call, bytes, blocking, unconfirmed, doubtful: _, active } = send;
        let same_arguments = key == last_key && *bytes == last.bytes;
        let same_function = call.is_like(&last.call);
        self.bytes.push(
            flag(SAME_ARGUMENTS, same_arguments)
                | flag(SAME_FUNCTION, same_function)
                | flag(BLOCKING, *blocking)
                | flag(UNCONFIRMED, *unconfirmed)
                | flag(ACTIVE, *active),
        );
        if !same_arguments {
            self.number(key.communicator.into());
            self.number(key.source.into());
            self.number(key.destination.into());
            self.number((key.tag as u32).into());
            self.number(key.lane.into());
            self.number(*bytes);
        }
        self.difference(last.number, *number);
        self.call(&last.call, call, same_function);
    }

    fn collective(&mut self, last: &CollectiveCall, of: &CollectiveCall) {
        let OpenMember { rank, call, completed, pending, contribution } = &of.member;
        let before = &last.member;
        let same_arguments = (of.key, of.function, *rank, *contribution)
            == (last.key, last.function, before.rank, before.contribution);
        let same_function = call.is_like(&before.call);
        let other = completed.filter(|by| by != call);
        self.bytes.push(
            flag(SAME_ARGUMENTS, same_arguments)
                | flag(SAME_FUNCTION, same_function)
                | flag(PENDING, *pending)
                | flag(COMPLETED_BY_ITSELF, *completed == Some(*call))
                | flag(COMPLETED_BY_OTHER, other.is_some()),
        );
        if !same_arguments {
            self.number(of.key.communicator.into());
            self.number(of.key.lane.into());
            self.number(of.function.into());
            self.number(*rank as u64);
            self.number(contribution.sent_bytes);
            self.number(contribution.received_bytes);
            self.number(contribution.root.map_or(0, |root| u64::from(root) + 1));
        }
        self.difference(last.number, of.number);
        self.call(&before.call, call, same_function);
        if let Some(by) = other {
            self.call(call, &by, false);
        }
    }
}

/// Reads what [`Writer`] wrote in another process of the same program.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    #[inline]
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.bytes.split_first().expect("another process sent fewer calls");
        self.bytes = rest;
        *first
    }

    #[inline]
    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << (shift & 63);
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    #[inline]
    fn difference(&mut self, last: u64) -> u64 {
        last.wrapping_add(unzigzag(self.number()) as u64)
    }

    #[inline]
    fn call(&mut self, last: &Call, same_function: bool) -> Call {
        let begin_ticks = self.difference(last.begin_ticks);
        let end_ticks = begin_ticks.wrapping_add(self.number());
        let event = self.difference(last.event);
        let (thread, function) = match same_function {
            true => (last.thread, last.function),
            false => (self.number() as u32, self.number() as u16),
        };
        Call { begin_ticks, end_ticks, event, thread, function }
    }

    fn send(&mut self, (last_key, last): &(ChannelKey, Send)) -> (ChannelKey, Send) {
        let flags = self.byte();
        let (key, bytes) = match flags & SAME_ARGUMENTS {
            0 => {
                let key = ChannelKey {
                    communicator: self.number() as u32,
                    source: self.number() as u32,
                    destination: self.number() as u32,
                    tag: self.number() as u32 as i32,
                    lane: self.number() as u32,
                };
                (key, self.number())
            }
            _ => (*last_key, last.bytes),
        };
        let number = self.difference(last.number);
        let call = self.call(&last.call, flags & SAME_FUNCTION != 0);
        let send = Send {
            number,
            call,
            bytes,
            blocking: flags & BLOCKING != 0,
            unconfirmed: flags & UNCONFIRMED != 0,
            doubtful: false,
            active: flags & ACTIVE != 0,
        };
        (key, send)
    }

    fn collective(&mut self, last: &CollectiveCall) -> CollectiveCall {
        let flags = self.byte();
        let before = &last.member;
        let (key, function, rank, contribution) = match flags & SAME_ARGUMENTS {
            0 => {
                let key =
                    SequenceKey { communicator: self.number() as u32, lane: self.number() as u32 };
                let (function, rank) = (self.number() as u16, self.number() as usize);
                let contribution = Contribution {
                    sent_bytes: self.number(),
                    received_bytes: self.number(),
                    root: self.number().checked_sub(1).map(|root| root as u32),
                };
                (key, function, rank, contribution)
            }
            _ => (last.key, last.function, before.rank, before.contribution),
        };
        let number = self.difference(last.number);
        let call = self.call(&before.call, flags & SAME_FUNCTION != 0);
        let completed = match () {
            () if flags & COMPLETED_BY_ITSELF != 0 => Some(call),
            () if flags & COMPLETED_BY_OTHER != 0 => Some(self.call(&call, false)),
            () => None,
        };
        let pending = flags & PENDING != 0;
        let member = OpenMember { rank, call, completed, pending, contribution };
        CollectiveCall { key, number, function, member }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call() -> impl Strategy<Value = Call> {
        let ticks = prop_oneof![any::<u64>(), 0..1000u64];
        (ticks.clone(), ticks, any::<u64>(), 0..3u32, 0..3u16).prop_map(
            |(begin_ticks, end_ticks, event, thread, function)| Call {
                begin_ticks,
                end_ticks,
                event,
                thread,
                function,
            },
        )
    }

    fn send() -> impl Strategy<Value = (ChannelKey, Send)> {
        let key = (0..2u32, 0..2u32, any::<u32>(), any::<i32>(), 0..2u32);
        let flags = any::<[bool; 3]>();
        (key, any::<u64>(), call(), 0..2u64, flags).prop_map(
            |(key, number, call, bytes, [blocking, unconfirmed, active])| {
                let (communicator, source, destination, tag, lane) = key;
                let key = ChannelKey { communicator, source, destination, tag, lane };
                let doubtful = false;
                (key, Send { number, call, bytes, blocking, unconfirmed, doubtful, active })
            },
        )
    }

    fn collective() -> impl Strategy<Value = CollectiveCall> {
        let completed = proptest::option::of(proptest::option::of(call()));
        let contribution = (0..2u64, any::<u64>(), proptest::option::of(any::<u32>()));
        let key = (0..2u32, any::<u32>(), any::<u64>(), 0..2u16, 0..2usize);
        (key, call(), completed, any::<bool>(), contribution).prop_map(
            |((communicator, lane, number, function, rank), call, completed, pending, given)| {
                let (sent_bytes, received_bytes, root) = given;
                let contribution = Contribution { sent_bytes, received_bytes, root };
                let completed = completed.map(|other| other.unwrap_or(call));
                let member = OpenMember { rank, call, completed, pending, contribution };
                let key = SequenceKey { communicator, lane };
                CollectiveCall { key, number, function, member }
            },
        )
    }

    proptest! {
        #[test]
        fn sent_calls_arrive_unchanged(
            sends in proptest::collection::vec(send(), 0..20),
            collectives in proptest::collection::vec(collective(), 0..20),
            repeated in 1..3usize,
        ) {
            let repeat = |count| (0..count).flat_map(|at| std::iter::repeat_n(at, repeated));
            let forwarded = Forwarded {
                sends: repeat(sends.len()).map(|at| sends[at]).collect(),
                collectives: repeat(collectives.len()).map(|at| collectives[at]).collect(),
                ..Forwarded::default()
            };
            let arrived = Forwarded::from(Sent::from(forwarded.clone()));
            prop_assert_eq!(arrived.sends, forwarded.sends);
            prop_assert_eq!(arrived.collectives, forwarded.collectives);
        }
    }

    #[test]
    fn repeated_calls_take_few_bytes() {
        let calls = (0..1000).map(|at| {
            let begin_ticks = 1_000_000 * at;
            let call =
                Call { begin_ticks, end_ticks: begin_ticks + 20_000, event: 7 * at, ..Call::NONE };
            let member = OpenMember { call, completed: Some(call), ..FIRST_CALL.member };
            CollectiveCall { number: 2 * at, member, ..FIRST_CALL }
        });
        let sent = Sent::from(Forwarded { collectives: calls.collect(), ..Forwarded::default() });
        assert!(sent.calls.len() < 10_000, "{}", sent.calls.len());
    }
}
