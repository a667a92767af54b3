//! The events of all ranks as one stream: a run and its timeline come in, events in order of global
//! time go out, those of one rank always in order of their begin on its own counter.
//!
//! How good the clocks are decides how the ranks interleave, nothing else. Memory is bounded by the
//! threads of the run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trace_format::layout::Slot;
use trace_format::reader::{Event, Events, Thread};

use super::GlobalTimeline;
use crate::trace::{RankTrace, Run};

/// Which moment of an event places it among those of other ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Its begin.
    Begin,
    /// Its end; of a call that did not return its begin.
    End,
}

/// Which of the kept events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    All,
    /// Those before a thread's totals: behind, the order of what was sent and received is lost.
    Unbroken,
}

/// A step of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'e> {
    /// An event of a rank, given by its position in [`Run::ranks`], and its thread's number.
    Event {
        /// The rank's position.
        rank: usize,
        /// The thread's number.
        thread: u32,
        /// The event.
        event: &'e Event,
    },
    /// The rank at this position has no more events.
    End {
        /// The rank's position.
        rank: usize,
    },
}

/// One thread's events.
#[derive(Debug, Clone)]
struct ThreadEvents<'a> {
    number: u32,
    events: Events<'a>,
    /// The next one, once it was looked at.
    ahead: Option<Option<Event>>,
}

impl ThreadEvents<'_> {
    fn begin_of_next(&mut self) -> Option<u64> {
        let Self { events, ahead, .. } = self;
        ahead.get_or_insert_with(|| events.next()).as_ref().map(|event| event.begin)
    }

    fn next(&mut self) -> Option<Event> {
        self.ahead.take().unwrap_or_else(|| self.events.next())
    }
}

/// One rank's events, those of its threads merged by their begin.
#[derive(Debug, Clone)]
pub(super) struct RankEvents<'a> {
    threads: Vec<ThreadEvents<'a>>,
    next: Option<Event>,
    /// The thread of that event.
    thread: u32,
}

impl<'a> RankEvents<'a> {
    /// Before the first event.
    pub fn new(trace: &'a RankTrace, part: Part) -> Self {
        let file = &trace.file;
        let events = |thread: &'a Thread| match part {
            Part::All => file.events(thread),
            Part::Unbroken => file.events_before_totals(thread),
        };
        let of_thread = |thread: &'a Thread| ThreadEvents {
            number: thread.number,
            events: events(thread).fetching(),
            ahead: None,
        };
        let threads = file.threads.iter().map(of_thread).collect();
        Self { threads, next: None, thread: 0 }
    }

    /// The event that was read last, and its thread; `None` behind the last one.
    #[inline]
    pub fn next_event(&self) -> Option<(u32, &Event)> {
        self.next.as_ref().map(|event| (self.thread, event))
    }

    /// Reads the next event that is wanted.
    pub fn advance(
        &mut self,
        of_interest: &impl Fn(&Slot) -> bool,
        wanted: &impl Fn(&Event) -> bool,
    ) {
        if let [ThreadEvents { number, events, .. }] = self.threads.as_mut_slice() {
            self.thread = *number;
            loop {
                // In place: an event is some 200 bytes.
                self.next = events.next_where(of_interest);
                if self.next.as_ref().is_none_or(wanted) {
                    return;
                }
            }
        }
        self.next = loop {
            let heads = self.threads.iter_mut().enumerate();
            let begins = heads.filter_map(|(index, thread)| Some((thread.begin_of_next()?, index)));
            let Some((_, index)) = begins.min() else { break None };
            let thread = &mut self.threads[index];
            match thread.next() {
                Some(event) if wanted(&event) => {
                    self.thread = thread.number;
                    break Some(event);
                }
                _ => {}
            }
        };
    }
}

/// Which events are handed out.
pub trait Wanted {
    /// Whether an event of a rank with that slot may be; asked first, of ranks with one thread.
    fn of_interest(&self, _rank: usize, _slot: &Slot) -> bool {
        true
    }

    /// Whether an event of a rank, given by its position in [`Run::ranks`], is.
    fn wants(&self, rank: usize, event: &Event) -> bool;
}

impl<F: Fn(usize, &Event) -> bool> Wanted for F {
    fn wants(&self, rank: usize, event: &Event) -> bool {
        self(rank, event)
    }
}

/// Hands out the events of all ranks; each rank's end is a step of its own.
#[derive(Clone)]
pub struct EventStreams<'a, F> {
    timeline: &'a GlobalTimeline,
    ranks: Vec<RankEvents<'a>>,
    /// Nanoseconds of the next event of each rank that has one.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    ended: Vec<usize>,
    /// The rank whose event was handed out last.
    out: Option<usize>,
    now_ns: i64,
    moment: Moment,
    wanted: F,
}

impl<'a, F: Wanted> EventStreams<'a, F> {
    /// Of the events for which `wanted` says yes, given the rank's position.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        (part, moment): (Part, Moment),
        wanted: F,
    ) -> Self {
        let ranks: Vec<_> = run.ranks.iter().map(|rank| RankEvents::new(rank, part)).collect();
        let (heap, ended) = (BinaryHeap::with_capacity(ranks.len()), Vec::new());
        let mut streams =
            Self { timeline, ranks, heap, ended, out: None, now_ns: 0, moment, wanted };
        (0..streams.ranks.len()).for_each(|rank| streams.begin(rank));
        streams.ended.reverse();
        streams
    }

    /// Reads the next event of a rank.
    fn read(&mut self, rank: usize) {
        let wanted = &self.wanted;
        let of_interest = |slot: &Slot| wanted.of_interest(rank, slot);
        self.ranks[rank].advance(&of_interest, &|event| wanted.wants(rank, event));
    }

    /// Nanoseconds of a rank's next event, unless there is none.
    fn time_ns(&self, rank: usize) -> Option<i64> {
        let event = self.ranks[rank].next.as_ref()?;
        let ticks = match self.moment {
            Moment::Begin => event.begin,
            Moment::End => event.end.unwrap_or(event.begin),
        };
        Some((self.timeline.ranks[rank].clock.seconds(ticks) * 1e9) as i64)
    }

    fn begin(&mut self, rank: usize) {
        self.read(rank);
        match self.time_ns(rank) {
            Some(time_ns) => self.heap.push(Reverse((time_ns, rank))),
            None => self.ended.push(rank),
        }
    }
}

impl<F: Wanted> EventStreams<'_, F> {
    /// Nanoseconds of global time of the event that was handed out last.
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// The next step; `None` when all ranks have ended.
    pub fn next_step(&mut self) -> Option<Step<'_>> {
        if let Some(rank) = self.out.take() {
            self.read(rank);
            match self.time_ns(rank) {
                // Sinks from the top to its place: less work than to take out and to put in.
                Some(time_ns) => {
                    if let Some(mut top) = self.heap.peek_mut() {
                        *top = Reverse((time_ns, rank));
                    }
                }
                None => {
                    self.heap.pop();
                    self.ended.push(rank);
                }
            }
        }
        if let Some(rank) = self.ended.pop() {
            return Some(Step::End { rank });
        }
        let &Reverse((time_ns, rank)) = self.heap.peek()?;
        (self.out, self.now_ns) = (Some(rank), time_ns);
        let RankEvents { next, thread, .. } = &self.ranks[rank];
        Some(Step::Event { rank, thread: *thread, event: next.as_ref()? })
    }
}
