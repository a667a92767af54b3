//! The events of all ranks as one stream: a run and its timeline come in, events in order of global
//! time go out, those of one rank always in order of their begin on its own counter.
//!
//! How good the clocks are decides how the ranks interleave, nothing else. Memory is bounded by the
//! threads of the run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::ops::Range;

use trace_format::reader::{Event, Events};

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
pub enum Step {
    /// An event of a rank, given by its position in [`Run::ranks`], and its thread's number.
    Event {
        /// The rank's position.
        rank: usize,
        /// The thread's number.
        thread: u32,
        /// The event.
        event: Event,
    },
    /// The rank at this position has no more events.
    End {
        /// The rank's position.
        rank: usize,
    },
}

/// One rank's events, those of its threads merged by their begin.
#[derive(Debug)]
struct RankEvents<'a> {
    threads: Vec<(u32, Peekable<Events<'a>>)>,
    next: Option<(u32, Event)>,
}

impl<'a> RankEvents<'a> {
    fn new(trace: &'a RankTrace, part: Part) -> Self {
        let file = &trace.file;
        let events = |thread| match part {
            Part::All => file.events(thread).peekable(),
            Part::Unbroken => file.events_before_totals(thread).peekable(),
        };
        let threads = file.threads.iter().map(|thread| (thread.number, events(thread))).collect();
        Self { threads, next: None }
    }

    /// The next event that is wanted.
    fn advance(&mut self, wanted: &impl Fn(&Event) -> bool) {
        self.next = loop {
            let heads = self.threads.iter_mut().enumerate();
            let begins =
                heads.filter_map(|(index, (_, events))| Some((events.peek()?.begin, index)));
            let Some((_, index)) = begins.min() else { break None };
            let (number, events) = &mut self.threads[index];
            match events.next() {
                Some(event) if wanted(&event) => break Some((*number, event)),
                _ => {}
            }
        };
    }
}

/// Iterates over the events of all ranks; each rank's end is a step of its own.
pub struct EventStreams<'a, F> {
    timeline: &'a GlobalTimeline,
    /// Position of the first of the ranks.
    first: usize,
    ranks: Vec<RankEvents<'a>>,
    /// Nanoseconds of the next event of each rank that has one.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    ended: Vec<usize>,
    moment: Moment,
    wanted: F,
}

impl<'a, F: Fn(usize, &Event) -> bool> EventStreams<'a, F> {
    /// Of the events for which `wanted` says yes, given the rank's position.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        (part, moment): (Part, Moment),
        wanted: F,
    ) -> Self {
        Self::of_ranks(run, timeline, &(0..run.ranks.len()), (part, moment), wanted)
    }

    /// As [`EventStreams::new`], of the ranks at these positions alone.
    pub fn of_ranks(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        positions: &Range<usize>,
        (part, moment): (Part, Moment),
        wanted: F,
    ) -> Self {
        let first = positions.start;
        let traces = &run.ranks[positions.clone()];
        let ranks: Vec<_> = traces.iter().map(|rank| RankEvents::new(rank, part)).collect();
        let (heap, ended) = (BinaryHeap::with_capacity(ranks.len()), Vec::new());
        let mut streams = Self { timeline, first, ranks, heap, ended, moment, wanted };
        (first..positions.end).for_each(|rank| streams.advance(rank));
        streams.ended.reverse();
        streams
    }

    fn advance(&mut self, rank: usize) {
        let wanted = &self.wanted;
        self.ranks[rank - self.first].advance(&|event| wanted(rank, event));
        match &self.ranks[rank - self.first].next {
            Some((_, event)) => {
                let ticks = match self.moment {
                    Moment::Begin => event.begin,
                    Moment::End => event.end.unwrap_or(event.begin),
                };
                let time_ns = self.timeline.ranks[rank].clock.seconds(ticks) * 1e9;
                self.heap.push(Reverse((time_ns.round() as i64, rank)));
            }
            None => self.ended.push(rank),
        }
    }
}

impl<F: Fn(usize, &Event) -> bool> Iterator for EventStreams<'_, F> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if let Some(rank) = self.ended.pop() {
            return Some(Step::End { rank });
        }
        let Reverse((_, rank)) = self.heap.pop()?;
        let (thread, event) = self.ranks[rank - self.first].next.take()?;
        self.advance(rank);
        Some(Step::Event { rank, thread, event })
    }
}
