//! The events of all ranks as one stream: a run and its timeline come in, events in order of global
//! time go out, those of one rank always in order of their begin on its own counter.
//!
//! How good the clocks are decides how the ranks interleave, nothing else. Memory is bounded by the
//! threads of the run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trace_format::reader::{
    Event, EventLocation, Events, Head, StoredEvent, StoredEventObserver, Thread,
};

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
pub enum Step<E> {
    /// An event of a rank, given by its position in [`Run::ranks`], and its thread's number.
    Event {
        /// The rank's position.
        rank: usize,
        /// The thread's number.
        thread: u32,
        /// The event.
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
    /// The next one that is wanted, once it was looked for.
    ahead: Option<Option<EventLocation>>,
}

/// One rank's events, those of its threads merged by their begin.
#[derive(Debug, Clone)]
pub(super) struct RankEvents<'a> {
    threads: Vec<ThreadEvents<'a>>,
    /// The thread whose next event is the rank's, and that event.
    next: Option<(usize, EventLocation)>,
}

/// Takes the events of a rank.
pub(super) trait TakeEvents {
    /// Whether an event with that fixed part is handed on.
    fn wants(&self, head: &Head) -> bool;

    /// Takes an event of a thread, given by its number, and says whether it wants more.
    fn take(&mut self, thread: u32, event: &StoredEvent<'_>) -> bool;
}

/// Takes the events of a rank's only thread.
struct OfThread<'t, T> {
    number: u32,
    take: &'t mut T,
    /// It wants no more.
    enough: bool,
}

impl<T: TakeEvents> StoredEventObserver for OfThread<'_, T> {
    #[inline]
    fn wants(&self, head: &Head) -> bool {
        self.take.wants(head)
    }

    #[inline]
    fn take(&mut self, event: &StoredEvent<'_>) -> bool {
        self.enough = !self.take.take(self.number, event);
        !self.enough
    }
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
        Self { threads, next: None }
    }

    /// Hands on what is left, as far as `take` wants it, until `take` has enough; `false` when nothing
    /// is left. Not to be mixed with [`RankEvents::advance`].
    pub fn hand_on(&mut self, take: &mut impl TakeEvents) -> bool {
        if let [ThreadEvents { number, events, .. }] = self.threads.as_mut_slice() {
            let mut of_thread = OfThread { number: *number, take, enough: false };
            events.for_each_stored_event(&mut of_thread);
            return of_thread.enough;
        }
        loop {
            self.advance(&|head| take.wants(head));
            let Some((thread, event)) = self.next_event() else { return false };
            if !take.take(thread, &event) {
                return true;
            }
        }
    }

    /// The event that was read last, and its thread; `None` behind the last one.
    #[inline]
    fn next_event(&self) -> Option<(u32, StoredEvent<'_>)> {
        let (index, place) = self.next.as_ref()?;
        let ThreadEvents { number, events, .. } = self.threads.get(*index)?;
        Some((*number, events.stored(place)))
    }

    /// The same as one value.
    fn whole_of_next(&self) -> Option<Event> {
        let (index, place) = self.next.as_ref()?;
        Some(self.threads.get(*index)?.events.whole_of(place))
    }

    /// Reads the next event that is wanted.
    pub fn advance(&mut self, wanted: &impl Fn(&Head) -> bool) {
        if let [ThreadEvents { events, .. }] = self.threads.as_mut_slice() {
            self.next = events.next_location(wanted).map(|place| (0, place));
            return;
        }
        if let Some((index, _)) = self.next.take() {
            self.threads[index].ahead = None;
        }
        let heads = self.threads.iter_mut().enumerate().filter_map(|(index, thread)| {
            let ThreadEvents { events, ahead, .. } = thread;
            let place = ahead.get_or_insert_with(|| events.next_location(wanted)).as_ref()?;
            Some((index, *place))
        });
        self.next = heads.min_by_key(|(index, place)| (place.head.begin(), *index));
    }
}

/// Which events are handed out.
pub trait Wanted {
    /// Whether an event of a rank with that fixed part may be; asked first.
    fn of_interest(&self, _rank: usize, _head: &Head) -> bool {
        true
    }

    /// Whether an event of a rank, given by its position in [`Run::ranks`], is; `whole` gives all of it.
    fn wants(&self, rank: usize, event: &StoredEvent<'_>, whole: impl FnOnce() -> Event) -> bool;
}

impl<F: Fn(usize, &Event) -> bool> Wanted for F {
    fn wants(&self, rank: usize, _event: &StoredEvent<'_>, whole: impl FnOnce() -> Event) -> bool {
        self(rank, &whole())
    }
}

/// Hands out the events of all ranks; each rank's end is a step of its own.
#[derive(Clone)]
pub struct EventStreams<'a, F> {
    timeline: &'a GlobalTimeline,
    /// Their positions in the run, ascending, and their events.
    ranks: Vec<(usize, RankEvents<'a>)>,
    /// Nanoseconds of the next event of each rank that has one, and its place in `ranks`.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    /// Places of ranks whose end is to be handed out.
    ended: Vec<usize>,
    /// Place of the rank whose event was handed out last.
    out: Option<usize>,
    /// That event, where it was asked for whole.
    whole: Option<Event>,
    now_ns: i64,
    moment: Moment,
    wanted: F,
}

impl<'a, F: Wanted> EventStreams<'a, F> {
    /// Of the events of the ranks at some positions, ascending, for which `wanted` says yes, given the
    /// rank's position.
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
        let (out, whole) = (None, None);
        let mut streams =
            Self { timeline, ranks, heap, ended, out, whole, now_ns: 0, moment, wanted };
        (0..streams.ranks.len()).for_each(|place| streams.begin(place));
        streams.ended.reverse();
        streams
    }

    /// Reads the next event of the rank at a place.
    fn read(&mut self, place: usize) {
        let wanted = &self.wanted;
        let (position, events) = &mut self.ranks[place];
        loop {
            events.advance(&|head| wanted.of_interest(*position, head));
            let Some((index, next)) = &events.next else { return };
            let thread = &events.threads[*index].events;
            if wanted.wants(*position, &thread.stored(next), || thread.whole_of(next)) {
                return;
            }
        }
    }

    /// Nanoseconds of the next event of the rank at a place, unless there is none.
    fn time_ns(&self, place: usize) -> Option<i64> {
        let (position, events) = &self.ranks[place];
        let (_, next) = events.next.as_ref()?;
        let ticks = match self.moment {
            Moment::Begin => next.head.begin(),
            Moment::End => next.end,
        };
        Some(self.timeline.ranks[*position].clock.whole_ns(ticks))
    }

    fn begin(&mut self, place: usize) {
        self.read(place);
        match self.time_ns(place) {
            Some(time_ns) => self.heap.push(Reverse((time_ns, place))),
            None => self.ended.push(place),
        }
    }
}

impl<F: Wanted> EventStreams<'_, F> {
    /// Nanoseconds of global time of the event that was handed out last.
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// Goes to the next step: the place of a rank with an event, or of one that has ended (`false`).
    fn go_on(&mut self) -> Option<(usize, bool)> {
        if let Some(place) = self.out.take() {
            self.read(place);
            match self.time_ns(place) {
                // Sinks from the top to its place: less work than to take out and to put in.
                Some(time_ns) => {
                    if let Some(mut top) = self.heap.peek_mut() {
                        *top = Reverse((time_ns, place));
                    }
                }
                None => {
                    self.heap.pop();
                    self.ended.push(place);
                }
            }
        }
        if let Some(place) = self.ended.pop() {
            return Some((place, false));
        }
        let &Reverse((time_ns, place)) = self.heap.peek()?;
        (self.out, self.now_ns) = (Some(place), time_ns);
        Some((place, true))
    }

    /// The next step; `None` when all ranks have ended.
    pub fn next_step(&mut self) -> Option<Step<&Event>> {
        let (place, has_event) = self.go_on()?;
        let (rank, events) = &self.ranks[place];
        if !has_event {
            return Some(Step::End { rank: *rank });
        }
        self.whole = events.whole_of_next();
        let (thread, _) = events.next_event()?;
        Some(Step::Event { rank: *rank, thread, event: self.whole.as_ref()? })
    }

    /// As [`EventStreams::next_step`], the event where it lies.
    pub fn next_stored(&mut self) -> Option<Step<StoredEvent<'_>>> {
        let (place, has_event) = self.go_on()?;
        let (rank, events) = &self.ranks[place];
        if !has_event {
            return Some(Step::End { rank: *rank });
        }
        let (thread, event) = events.next_event()?;
        Some(Step::Event { rank: *rank, thread, event })
    }
}
