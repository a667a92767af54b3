//! Renders single events and messages, each as a line of text or of JSON.
//!
//! A line resolves what an event only refers to: the names of functions, communicators, regions and errors.

mod page;
mod screen;

use serde::Serialize;
use trace_format::markers::CounterSlot;
use trace_format::reader::Event;

use crate::timeline::calls::{Call, Created, EventReader, PeerArgument, Received, Record, Tag};
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{Message, Side, Unmatched};
use crate::timeline::{GlobalTimeline, RankClock};
use crate::trace::{RankTrace, Run};
pub use screen::{event_titles, message_titles};

/// A number such as a rank or tag, or the word for a special value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum NumberOrWord {
    Number(i32),
    Word(&'static str),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ReceiveHalf {
    peer: NumberOrWord,
    tag: NumberOrWord,
    bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct RequestLine {
    request: u32,
    completed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    status: Option<ReceiveHalf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct PollsLine {
    count: u64,
    time_s: f64,
}

/// A printed event.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EventLine {
    begin_s: f64,
    /// `None` if the call did not return or was abandoned.
    duration_s: Option<f64>,
    rank: u32,
    thread: u32,
    function: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    abandoned: bool,
    /// Name of the error that the call returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    communicator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<NumberOrWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<NumberOrWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receive: Option<ReceiveHalf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<RequestLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    polls: Option<PollsLine>,
    /// Number of a window or file.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<i32>,
    /// What the call created: a communicator's name, a window's or file's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    made: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flops: Option<f64>,
    /// A region's name, or the purpose of the recorder's own time.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<String>,
}

/// Renders a run's events and messages as lines.
#[derive(Debug)]
pub struct Dump<'a> {
    timeline: &'a GlobalTimeline,
    communicators: &'a CommunicatorTable,
    readings: Vec<EventReader<'a>>,
}

/// Rounds to nanoseconds.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

impl From<PeerArgument> for NumberOrWord {
    fn from(named: PeerArgument) -> Self {
        match named {
            PeerArgument::Rank(rank) => Self::Number(rank),
            PeerArgument::AnySource => Self::Word("ANY_SOURCE"),
            PeerArgument::ProcNull => Self::Word("PROC_NULL"),
            PeerArgument::Root => Self::Word("ROOT"),
        }
    }
}

impl From<Tag> for NumberOrWord {
    fn from(tag: Tag) -> Self {
        match tag {
            Tag::Is(tag) => Self::Number(tag),
            Tag::Any => Self::Word("ANY_TAG"),
        }
    }
}

impl From<Received> for ReceiveHalf {
    fn from(Received { peer, tag, bytes }: Received) -> Self {
        Self { peer: peer.into(), tag: tag.into(), bytes }
    }
}

impl<'a> Dump<'a> {
    /// A dump of a run.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
    ) -> Self {
        let ranks = run.ranks.iter().enumerate();
        let readings =
            ranks.map(|(position, trace)| EventReader::new(position, trace, communicators));
        Self { timeline, communicators, readings: readings.collect() }
    }

    /// The line of an event; the rank by its position in [`Run::ranks`].
    pub fn event(&self, rank: usize, thread: u32, event: &Event) -> EventLine {
        let (reading, clock) = (&self.readings[rank], &self.timeline.ranks[rank].clock);
        let duration = |ticks: u64| rounded(clock.duration_s(ticks));
        let mut line = EventLine {
            begin_s: rounded(clock.seconds(event.begin)),
            duration_s: event.end.map(|end| duration(end - event.begin)),
            rank: reading.trace.rank,
            thread,
            abandoned: event.abandoned,
            error: (event.error != 0).then(|| reading.error_name(event.error)),
            polls: event.polls.map(|(count, ticks)| PollsLine { count, time_s: duration(ticks) }),
            ..EventLine::default()
        };
        match reading.record(event) {
            Record::Call(call) => self.call(&call, &mut line),
            marker => name_marker(reading.trace, marker, &mut line),
        }
        line
    }

    fn call(&self, call: &Call, line: &mut EventLine) {
        call.function().clone_into(&mut line.function);
        if call.has_communicator() {
            let standing = call.communicator();
            let label = standing.map(|standing| self.communicators.label(standing.communicator));
            line.communicator = Some(label.unwrap_or_else(|| "unknown".into()));
        }
        line.peer = call.peer().map(NumberOrWord::from);
        line.tag = call.tag().map(NumberOrWord::from);
        line.bytes = call.bytes();
        line.received_bytes = call.received_bytes();
        line.receive = call.receive().map(ReceiveHalf::from);
        line.request = call.request();
        line.object = call.object().map(|(_, number)| number);
        if let Some(outcome) = call.outcome() {
            (line.completed, line.cancelled) = (Some(outcome.completed), outcome.cancelled);
        }
        let requests = call.requests().map(|state| RequestLine {
            request: state.request,
            completed: state.completed,
            cancelled: state.cancelled,
            status: call.status(&state).map(ReceiveHalf::from),
            error: call.error_of(&state),
        });
        line.requests = requests.collect();
        line.made = call.created().map(|made| match made {
            Created::Communicator(standing) => self.communicators.label(standing.communicator),
            Created::Number(number) => format!("#{number}"),
        });
        line.flops = call.flops();
    }

    /// The line of a message.
    pub fn message(&self, message: &Message) -> MessageLine {
        let (send, receive) = (&message.send, &message.receive);
        MessageLine {
            source: send.rank,
            destination: receive.rank,
            communicator: self.communicators.label(message.communicator),
            tag: message.tag,
            bytes: message.bytes,
            send_begin_s: rounded(send.begin_s),
            send_end_s: send.end_s.map(rounded),
            send_thread: send.thread,
            receive_begin_s: rounded(receive.begin_s),
            receive_end_s: receive.end_s.map(rounded),
            receive_thread: receive.thread,
            wildcard: message.wildcard,
            truncated: message.truncated,
        }
    }

    /// The line of a send or receive without a partner.
    pub fn unmatched(&self, unmatched: &Unmatched) -> UnmatchedLine {
        UnmatchedLine {
            unmatched: match unmatched.side {
                Side::Send => "send",
                Side::Receive => "receive",
            },
            reason: unmatched.reason.name(),
            rank: unmatched.rank,
            begin_s: rounded(unmatched.begin_s),
            partner: unmatched.partner,
            communicator: unmatched.communicator.map(|index| self.communicators.label(index)),
            bytes: (unmatched.side == Side::Send).then_some(unmatched.bytes),
        }
    }

    /// A rank's clock, by its position in [`Run::ranks`].
    pub fn clock(&self, rank: usize) -> &RankClock {
        &self.timeline.ranks[rank].clock
    }
}

fn name_marker(trace: &RankTrace, marker: Record, line: &mut EventLine) {
    let region =
        |id: u32| trace.facts.regions.get(&id).cloned().unwrap_or_else(|| format!("#{id}"));
    let (function, what) = match marker {
        Record::Tool(reason) => {
            let name = reason.map(|reason| format!("{reason:?}").to_lowercase());
            ("tool", name.unwrap_or_else(|| "unknown".into()))
        }
        Record::Counter(CounterSlot { number, value, .. }) => {
            let named = trace.facts.counters.iter().find(|counter| counter.number == number);
            let name = named.map_or_else(|| format!("#{number}"), |one| one.name.clone());
            ("tool", format!("counters {name} {value}"))
        }
        Record::RegionBegin(id) => ("region begin", region(id)),
        Record::RegionEnd(id) => ("region end", region(id)),
        Record::Call(_) => unreachable!("a call is not a marker"),
    };
    function.clone_into(&mut line.function);
    line.what = Some(what);
}

/// A printed message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageLine {
    source: u32,
    destination: u32,
    communicator: String,
    tag: i32,
    bytes: u64,
    send_begin_s: f64,
    send_end_s: Option<f64>,
    send_thread: u32,
    receive_begin_s: f64,
    receive_end_s: Option<f64>,
    receive_thread: u32,
    wildcard: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// A printed send or receive without a partner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnmatchedLine {
    unmatched: &'static str,
    reason: &'static str,
    rank: u32,
    begin_s: f64,
    partner: Option<u32>,
    communicator: Option<String>,
    bytes: Option<u64>,
}
