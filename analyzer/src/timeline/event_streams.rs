//! Merges the events of all ranks into one stream, in order of global time. The events of one rank
//! are always in order of their begin on its own counter, so errors of the clocks only affect how
//! the ranks interleave.
//!
//! Memory is bounded by the threads of the run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trace_format::reader::{
    Event, EventLocation, Events, Head, StoredEvent, StoredEventObserver, Thread,
};

use crate::trace::{RankTrace, Run};

use super::global::GlobalTimeline;

/// The moment of an event that determines its position among the events of other ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Begin,
    /// Its end; for a call that did not return its begin.
    End,
}

/// Selects a part of the recorded events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    All,
    /// Events before a thread's totals, after which the order of sends and receives is lost.
    BeforeTotals,
}

/// A step of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<E> {
    /// An event of a rank, given by its position in [`Run::ranks`], and its thread's number.
    Event {
        /// The rank's position.
        rank: usize,
        /// The thread's number.
        thread: u32,
        event: E,
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
    /// The next wanted event; the outer `None` means that it has not been searched for.
    ahead: Option<Option<EventLocation>>,
}

/// Events of one rank, merged from its threads by their begin.
#[derive(Debug, Clone)]
pub(super) struct RankEvents<'a> {
    threads: Vec<ThreadEvents<'a>>,
    /// The rank's next event, and the index of its thread.
    next: Option<(usize, EventLocation)>,
}

/// Observes the events of a rank.
pub(super) trait RankEventObserver {
    /// Whether to pass on an event with this fixed part.
    fn wants(&self, head: &Head) -> bool;

    /// Handles an event of the thread with this number; returns whether to continue.
    fn observe(&mut self, thread: u32, event: &StoredEvent<'_>) -> bool;
}

/// Passes on the events of a rank's only thread.
struct SingleThread<'t, T> {
    number: u32,
    observer: &'t mut T,
    /// The observer has asked to stop.
    done: bool,
}

impl<T: RankEventObserver> StoredEventObserver for SingleThread<'_, T> {
    #[inline]
    fn wants(&self, head: &Head) -> bool {
        self.observer.wants(head)
    }

    #[inline]
    fn take(&mut self, event: &StoredEvent<'_>) -> bool {
        self.done = !self.observer.observe(self.number, event);
        !self.done
    }
}

impl<'a> RankEvents<'a> {
    /// Starts before the first event.
    pub fn new(trace: &'a RankTrace, part: Part) -> Self {
        let file = &trace.file;
        let events = |thread: &'a Thread| match part {
            Part::All => file.events(thread),
            Part::BeforeTotals => file.events_before_totals(thread),
        };
        let of_thread = |thread: &'a Thread| ThreadEvents {
            number: thread.number,
            events: events(thread).fetching(),
            ahead: None,
        };
        let threads = file.threads.iter().map(of_thread).collect();
        Self { threads, next: None }
    }

    /// Passes the remaining events that `observer` wants to it until it stops; returns `false` if
    /// none are left. Do not mix with [`RankEvents::advance`].
    pub fn for_each_event(&mut self, observer: &mut impl RankEventObserver) -> bool {
        if let [ThreadEvents { number, events, .. }] = self.threads.as_mut_slice() {
            let mut thread = SingleThread { number: *number, observer, done: false };
            events.for_each_stored_event(&mut thread);
            return thread.done;
        }
        loop {
            self.advance(&|head| observer.wants(head));
            let Some((thread, event)) = self.next_event() else { return false };
            if !observer.observe(thread, &event) {
                return true;
            }
        }
    }

    /// The event that was read last, with its thread; `None` after the last event.
    #[inline]
    fn next_event(&self) -> Option<(u32, StoredEvent<'_>)> {
        let (index, location) = self.next.as_ref()?;
        let ThreadEvents { number, events, .. } = self.threads.get(*index)?;
        Some((*number, events.stored(location)))
    }

    /// The same event, decoded completely.
    fn whole_of_next(&self) -> Option<Event> {
        let (index, location) = self.next.as_ref()?;
        Some(self.threads.get(*index)?.events.whole_of(location))
    }

    /// Reads the next wanted event.
    pub fn advance(&mut self, wanted: &impl Fn(&Head) -> bool) {
        if let [ThreadEvents { events, .. }] = self.threads.as_mut_slice() {
            self.next = events.next_location(wanted).map(|location| (0, location));
            return;
        }
        if let Some((index, _)) = self.next.take() {
            self.threads[index].ahead = None;
        }
        let heads = self.threads.iter_mut().enumerate().filter_map(|(index, thread)| {
            let ThreadEvents { events, ahead, .. } = thread;
            let location = ahead.get_or_insert_with(|| events.next_location(wanted)).as_ref()?;
            Some((index, *location))
        });
        self.next = heads.min_by_key(|(index, location)| (location.head.begin(), *index));
    }
}

/// Selects the events of a stream.
pub trait EventFilter {
    /// Whether an event of a rank with this fixed part may be wanted; asked first.
    fn may_want(&self, _rank: usize, _head: &Head) -> bool {
        true
    }

    /// Whether an event of the rank at this position in [`Run::ranks`] is wanted; `whole` decodes
    /// it completely.
    fn wants(&self, rank: usize, event: &StoredEvent<'_>, whole: impl FnOnce() -> Event) -> bool;
}

impl<F: Fn(usize, &Event) -> bool> EventFilter for F {
    fn wants(&self, rank: usize, _event: &StoredEvent<'_>, whole: impl FnOnce() -> Event) -> bool {
        self(rank, &whole())
    }
}

/// The events of all ranks; each rank's end is a step of its own.
#[derive(Clone)]
pub struct EventStreams<'a, F> {
    timeline: &'a GlobalTimeline,
    /// Position in the run, ascending, and events of each rank.
    ranks: Vec<(usize, RankEvents<'a>)>,
    /// Nanoseconds of the next event of each rank that has one, and the rank's index in `ranks`.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    /// Indices of ranks whose end has not been returned yet.
    ended: Vec<usize>,
    /// Index of the rank whose event was returned last.
    current: Option<usize>,
    /// That event, if it was decoded completely.
    whole: Option<Event>,
    now_ns: i64,
    moment: Moment,
    wanted: F,
}

impl<'a, F: EventFilter> EventStreams<'a, F> {
    /// Streams the events that `wanted` selects, of the ranks at the given ascending positions.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        positions: impl IntoIterator<Item = usize>,
        (part, moment): (Part, Moment),
        wanted: F,
    ) -> Self {
        let of_rank = |position: usize| (position, RankEvents::new(&run.ranks[position], part));
        let ranks: Vec<_> = positions.into_iter().map(of_rank).collect();
        let (heap, ended) = (BinaryHeap::with_capacity(ranks.len()), Vec::new());
        let (current, whole) = (None, None);
        let mut streams =
            Self { timeline, ranks, heap, ended, current, whole, now_ns: 0, moment, wanted };
        (0..streams.ranks.len()).for_each(|index| streams.begin(index));
        streams.ended.reverse();
        streams
    }

    /// Reads the next event of the rank at an index.
    fn read(&mut self, index: usize) {
        let wanted = &self.wanted;
        let (position, events) = &mut self.ranks[index];
        loop {
            events.advance(&|head| wanted.may_want(*position, head));
            let Some((thread, next)) = &events.next else { return };
            let thread = &events.threads[*thread].events;
            if wanted.wants(*position, &thread.stored(next), || thread.whole_of(next)) {
                return;
            }
        }
    }

    /// Nanoseconds of the next event of the rank at an index; `None` if there is none.
    fn time_ns(&self, index: usize) -> Option<i64> {
        let (position, events) = &self.ranks[index];
        let (_, next) = events.next.as_ref()?;
        let ticks = match self.moment {
            Moment::Begin => next.head.begin(),
            Moment::End => next.end,
        };
        Some(self.timeline.ranks[*position].clock.whole_ns(ticks))
    }

    fn begin(&mut self, index: usize) {
        self.read(index);
        match self.time_ns(index) {
            Some(time_ns) => self.heap.push(Reverse((time_ns, index))),
            None => self.ended.push(index),
        }
    }
}

impl<F: EventFilter> EventStreams<'_, F> {
    /// Nanoseconds of global time of the event that was returned last.
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// Advances to the next step: index of a rank, and whether it has an event or has ended.
    fn next_rank(&mut self) -> Option<(usize, bool)> {
        if let Some(index) = self.current.take() {
            self.read(index);
            match self.time_ns(index) {
                // Replacing the top costs less than a pop and a push.
                Some(time_ns) => {
                    if let Some(mut top) = self.heap.peek_mut() {
                        *top = Reverse((time_ns, index));
                    }
                }
                None => {
                    self.heap.pop();
                    self.ended.push(index);
                }
            }
        }
        if let Some(index) = self.ended.pop() {
            return Some((index, false));
        }
        let &Reverse((time_ns, index)) = self.heap.peek()?;
        (self.current, self.now_ns) = (Some(index), time_ns);
        Some((index, true))
    }

    /// The next step; `None` after all ranks have ended.
    pub fn next_step(&mut self) -> Option<Step<&Event>> {
        let (index, has_event) = self.next_rank()?;
        let (rank, events) = &self.ranks[index];
        if !has_event {
            return Some(Step::End { rank: *rank });
        }
        self.whole = events.whole_of_next();
        let (thread, _) = events.next_event()?;
        Some(Step::Event { rank: *rank, thread, event: self.whole.as_ref()? })
    }

    /// Like [`EventStreams::next_step`], with the event as it is stored.
    pub fn next_stored(&mut self) -> Option<Step<StoredEvent<'_>>> {
        let (index, has_event) = self.next_rank()?;
        let (rank, events) = &self.ranks[index];
        if !has_event {
            return Some(Step::End { rank: *rank });
        }
        let (thread, event) = events.next_event()?;
        Some(Step::Event { rank: *rank, thread, event })
    }
}
