//! Renders single events and messages, each as a line of text or of JSON.
//!
//! A line resolves what an event only refers to: the names of functions, communicators, regions and errors.

mod lines;
mod page;
mod screen;

use trace_format::markers::CounterSlot;
use trace_format::reader::Event;

use crate::timeline::calls::{Call, Created, EventReader, Record};
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{Message, Side, Unmatched};
use crate::timeline::{GlobalTimeline, RankClock};
use crate::trace::{RankTrace, Run};

pub use lines::{EventLine, MessageLine, UnmatchedLine};
use lines::{NumberOrWord, PollsLine, ReceiveHalf, RequestLine};
pub use screen::{event_titles, message_titles};

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

impl<'a> Dump<'a> {
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

    /// The details of an event for an HTML page, with communicators by number; `null` if there are none.
    pub(in crate::present) fn for_page(
        &self,
        (rank, thread): (usize, u32),
        event: &Event,
        communicator: impl FnMut(&str) -> u32,
    ) -> serde_json::Value {
        match event.is_call() {
            true => self.event(rank, thread, event).for_page(communicator),
            false => serde_json::Value::Null,
        }
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
