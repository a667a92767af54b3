//! Single events and messages, for people and programs: an event with what its file and the
//! communicators say about it comes in, a line of text or of JSON goes out.

mod page;
mod screen;

use std::collections::HashMap;

use serde::Serialize;
use trace_format::errors::class_name;
use trace_format::functions::{Class, class_of};
use trace_format::layout::{
    CANCELLED, COMPLETED, CounterSlot, FIRST_FUNCTION, REGION_BEGIN, REGION_END, TOOL, ToolReason,
};
use trace_format::procedures;
use trace_format::reader::Event;

use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{Message, Side, Unmatched};
use crate::timeline::mpi_constants::MpiConstants;
use crate::timeline::{GlobalTimeline, RankClock};
use crate::trace::{Meaning, RankTrace, Run};
pub use screen::{event_titles, message_titles};

/// A rank, or what stands for one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum RankOrWord {
    Rank(i32),
    Word(&'static str),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ReceiveHalf {
    peer: RankOrWord,
    tag: RankOrWord,
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

/// An event as it is printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventLine {
    begin_s: f64,
    /// `None` when the call did not return, or was left.
    duration_s: Option<f64>,
    rank: u32,
    thread: u32,
    function: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    abandoned: bool,
    /// Name of the error that it returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    communicator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<RankOrWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<RankOrWord>,
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
    /// What a call made: a communicator's name, a window's or file's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    made: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flops: Option<f64>,
    /// A region's name, or what the recorder's own time was for.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<String>,
}

/// Makes lines of a run's events.
#[derive(Debug)]
pub struct Dump<'a> {
    run: &'a Run,
    timeline: &'a GlobalTimeline,
    communicators: &'a CommunicatorTable,
    meanings: HashMap<String, Meaning>,
}

/// To a nanosecond.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

fn word(value: i32, words: &[(i32, &'static str)]) -> RankOrWord {
    let found = words.iter().find(|(number, _)| *number == value);
    found.map_or(RankOrWord::Rank(value), |(_, word)| RankOrWord::Word(word))
}

impl<'a> Dump<'a> {
    /// Of a run.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
    ) -> Self {
        let meanings = procedures::all().into_iter();
        let meanings = meanings.map(|procedure| (procedure.name.clone(), Meaning::of(&procedure)));
        Self { run, timeline, communicators, meanings: meanings.collect() }
    }

    /// The line of an event; the rank by its position in [`Run::ranks`].
    pub fn event(&self, rank: usize, thread: u32, event: &Event) -> EventLine {
        let (trace, clock) = (&self.run.ranks[rank], &self.timeline.ranks[rank].clock);
        let duration = |ticks: u64| rounded(clock.duration_s(ticks));
        let family = &trace.file.header.mpi_family;
        let mut line = EventLine {
            begin_s: rounded(clock.seconds(event.begin)),
            duration_s: event.end.map(|end| duration(end - event.begin)),
            rank: trace.rank,
            thread,
            function: String::new(),
            abandoned: event.abandoned,
            error: (event.error != 0).then(|| class_name(family, event.error)),
            communicator: None,
            peer: None,
            tag: None,
            bytes: None,
            received_bytes: None,
            receive: None,
            request: None,
            completed: None,
            cancelled: false,
            requests: Vec::new(),
            polls: event.polls.map(|(count, ticks)| PollsLine { count, time_s: duration(ticks) }),
            object: None,
            made: None,
            flops: None,
            what: None,
        };
        if event.function < FIRST_FUNCTION {
            marker(trace, event, &mut line);
            return line;
        }
        let name = trace.file.function_name(event.function).unwrap_or("unknown");
        name.clone_into(&mut line.function);
        let meaning = self.meanings.get(name).copied().unwrap_or_else(Meaning::compute);
        if meaning.compute {
            line.flops = Some(f64::from_bits(event.payload[0])).filter(|flops| flops.is_finite());
            line.bytes = Some(event.payload[1]);
        } else if trace.file.fixed.level > 0 {
            let constants = MpiConstants::of_family(&trace.file.header.mpi_family);
            self.attributes(rank, event, &meaning, constants, &mut line);
        }
        line
    }

    fn attributes(
        &self,
        rank: usize,
        event: &Event,
        meaning: &Meaning,
        constants: Option<MpiConstants>,
        line: &mut EventLine,
    ) {
        let Some(constants) = constants else { return };
        let peer = |value| {
            let words = [
                (constants.any_source, "ANY_SOURCE"),
                (constants.proc_null, "PROC_NULL"),
                (constants.root, "ROOT"),
            ];
            word(value, &words)
        };
        let tag = |value| word(value, &[(constants.any_tag, "ANY_TAG")]);
        let half = |p, t, bytes| ReceiveHalf { peer: peer(p), tag: tag(t), bytes };
        if meaning.communicator {
            let standing = self.communicators.resolve(rank, event.communicator, event.begin);
            let label = standing.map(|standing| self.communicators.label(standing.communicator));
            line.communicator = Some(label.unwrap_or_else(|| "unknown".into()));
        }
        line.peer = meaning.peer.then(|| peer(event.peer));
        line.tag = meaning.tag.then(|| tag(event.tag));
        // Nothing goes to MPI_PROC_NULL.
        let nobody = meaning.peer && event.peer == constants.proc_null;
        line.bytes = meaning.bytes.then_some(if nobody { 0 } else { event.sent });
        let received = meaning.received || event.received > 0;
        line.received_bytes = (meaning.bytes && received).then_some(event.received);
        line.request = (meaning.request && event.request != 0).then_some(event.request);
        line.receive = event.receive.map(|r| half(r.peer, r.tag, r.bytes));
        line.object = meaning.object.then_some(event.tag);
        if meaning.completes {
            let completed = event.communicator & COMPLETED != 0;
            line.completed = Some(completed);
            if completed {
                line.cancelled = event.communicator & CANCELLED != 0;
                line.peer = Some(peer(event.peer));
                line.tag = Some(tag(event.tag));
                line.bytes = Some(event.sent);
            }
        }
        let trace = &self.run.ranks[rank];
        let requests = trace.file.requests(event).map(|state| RequestLine {
            request: state.request,
            completed: state.completed,
            cancelled: state.cancelled,
            status: state.completed.then(|| half(state.peer, state.tag, state.bytes)),
            error: (state.error != 0)
                .then(|| class_name(&trace.file.header.mpi_family, state.error)),
        });
        line.requests = requests.collect();
        if meaning.makes && event.end.is_some() && event.sent != 0 {
            // A communicator is defined right behind the call that makes it.
            let id = event.sent as u16;
            let end = event.end.unwrap_or(event.begin);
            let after = self.communicators.next_meaning(rank, id, end);
            let is_communicator = class_of(&line.function) == Class::Communicators;
            line.made = Some(match after.filter(|_| is_communicator) {
                Some(standing) => self.communicators.label(standing.communicator),
                None => format!("#{}", event.sent),
            });
        }
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

fn marker(trace: &RankTrace, event: &Event, line: &mut EventLine) {
    let (function, what) = match event.function {
        TOOL => {
            let reason = ToolReason::from_number(event.peer);
            let reason = reason.map_or("unknown".into(), |one| format!("{one:?}").to_lowercase());
            let reading = CounterSlot::from_payload(event.payload);
            let what = reading.map_or(reason.clone(), |CounterSlot { number, value, .. }| {
                let named = trace.facts.counters.iter().find(|counter| counter.number == number);
                let name = named.map_or_else(|| format!("#{number}"), |one| one.name.clone());
                format!("{reason} {name} {value}")
            });
            ("tool", what)
        }
        REGION_BEGIN | REGION_END => {
            let name = trace.facts.regions.get(&(event.peer as u32)).cloned();
            let name = name.unwrap_or_else(|| format!("#{}", event.peer));
            (if event.function == REGION_BEGIN { "region begin" } else { "region end" }, name)
        }
        _ => ("unknown", String::new()),
    };
    function.clone_into(&mut line.function);
    line.what = Some(what);
}

/// A message as it is printed.
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

/// A send or receive without a partner, as it is printed.
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
