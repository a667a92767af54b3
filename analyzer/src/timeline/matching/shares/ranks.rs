//! One rank's events in turns, and the ranks of a share.

use trace_format::reader::{Head, StoredEvent};

use super::super::operations::Operations;
use super::super::rank_state::RankState;
use super::super::{MatchSink, Matching};
use super::Forwarded;
use crate::timeline::RankClock;
use crate::timeline::event_streams::{RankEvents, TakeEvents};

/// Findings that are handed on together: few enough to stay in the nearest cache.
const PAIRS_TOGETHER: usize = 64;
const INSTANCES_TOGETHER: usize = 16;

/// One rank on its way.
pub(super) struct RankOnItsWay<'a> {
    /// Its position in the run.
    pub position: usize,
    pub events: RankEvents<'a>,
    /// `None` when its file does not say what calls mean, and when it has ended.
    pub state: Option<RankState<'a>>,
    pub operations: &'a Operations,
    pub clock: &'a RankClock,
    /// Counter at the end of the event that it took last.
    pub now_ticks: u64,
    pub ended: bool,
}

/// One rank's turn.
struct Turn<'t, 'a, S> {
    state: &'t mut RankState<'a>,
    operations: &'a Operations,
    matching: &'t mut Matching<'a>,
    sink: &'t mut S,
    polls: bool,
    taken: u64,
    most: u64,
    until_ticks: u64,
    now_ticks: u64,
}

impl<S: MatchSink> TakeEvents for Turn<'_, '_, S> {
    #[inline]
    fn wants(&self, head: &Head) -> bool {
        self.operations.of_interest(head, self.polls)
    }

    #[inline]
    fn take(&mut self, thread: u32, event: &StoredEvent<'_>) -> bool {
        let operation = self.operations.of(event.function());
        self.matching.take_event(self.state, thread, event, operation);
        self.matching.hand_on_where_much(self.sink);
        self.taken += 1;
        self.now_ticks = event.end_or_begin();
        self.taken < self.most && self.now_ticks <= self.until_ticks
    }
}

impl<'a> RankOnItsWay<'a> {
    /// Takes events until one ends behind a moment, at most so many; gives how many.
    fn take<S: MatchSink>(
        &mut self,
        until_s: f64,
        most: u64,
        m: &mut Matching<'a>,
        sink: &mut S,
    ) -> u64 {
        if self.ended {
            return 0;
        }
        let until_ticks = self.clock.ticks_at(until_s);
        let mut taken = 0;
        if let Some(state) = &mut self.state {
            if self.now_ticks > until_ticks {
                return 0;
            }
            let mut turn = Turn {
                state,
                operations: self.operations,
                polls: m.outlet.wants.polls,
                matching: m,
                sink,
                taken: 0,
                most,
                until_ticks,
                now_ticks: self.now_ticks,
            };
            let has_more = self.events.hand_on(&mut turn);
            (taken, self.now_ticks) = (turn.taken, turn.now_ticks);
            if has_more {
                return taken;
            }
        }
        self.ended = true;
        let calls = self.state.take().map(|state| state.finish(m)).unwrap_or_default();
        m.end_of_rank(self.position, &calls);
        if let Some(share) = &mut m.share {
            share.forward_end(self.position, &calls);
        }
        taken
    }

    /// Global seconds from which on it has more.
    fn next_s(&self) -> Option<f64> {
        (!self.ended).then(|| self.clock.seconds(self.now_ticks))
    }
}

impl Matching<'_> {
    /// Hands on what was found, messages by the shortest way.
    fn hand_on_to(&mut self, sink: &mut impl MatchSink) {
        self.outlet.drain(sink);
        self.take_ready(|m, pair| {
            if let Some(message) = m.outlet.message(pair) {
                sink.message(message);
            }
        });
        let Self { collectives, outlet, .. } = self;
        collectives.drain(|instance| outlet.hand_on_instance(instance, sink));
        self.outlet.drain(sink);
    }

    /// Hands on what was found once that is much.
    #[inline]
    fn hand_on_where_much(&mut self, sink: &mut impl MatchSink) {
        let pairs = self.channels.matched.len() + self.settled.len();
        if pairs >= PAIRS_TOGETHER || self.collectives.completed_count() >= INSTANCES_TOGETHER {
            self.hand_on_to(sink);
        }
    }
}

/// One share on its way.
pub(super) struct ShareOnItsWay<'a, S> {
    pub matching: Matching<'a>,
    pub ranks: Vec<RankOnItsWay<'a>>,
    pub sink: S,
}

/// What became of a share in a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Events that were taken.
    pub taken: u64,
    /// Global seconds from which on there are more; infinite where there are none.
    pub next_s: f64,
    /// Something was forwarded.
    pub forwarded: bool,
    /// There is a send that was not sent, and the share does not reckon with that.
    pub given_up: bool,
}

impl<S: MatchSink> ShareOnItsWay<'_, S> {
    /// What another share forwarded.
    pub fn take_forwarded(&mut self, forwarded: &mut Forwarded) {
        let Self { matching, sink, .. } = self;
        matching.take_forwarded(forwarded, |m| m.hand_on_where_much(sink));
    }

    /// The events of its ranks up to a moment, at most so many each.
    pub fn round(&mut self, until_s: f64, turn: u64) -> Progress {
        let Self { matching, ranks, sink, .. } = self;
        let (mut taken, mut next_s) = (0, f64::INFINITY);
        for rank in ranks {
            taken += rank.take(until_s, turn, matching, sink);
            next_s = next_s.min(rank.next_s().unwrap_or(f64::INFINITY));
        }
        matching.hand_on_to(sink);
        let share = matching.share.as_ref();
        let forwarded = share.is_some_and(|share| share.outboxes.iter().any(|o| !o.is_empty()));
        Progress { taken, next_s, forwarded, given_up: matching.has_given_up() }
    }

    /// Exchanges what it has for another share for an empty one.
    pub fn exchange_outbox(&mut self, to: usize, empty: &mut Forwarded) {
        let share = self.matching.share.as_mut();
        if let Some(outbox) = share.and_then(|share| share.outboxes.get_mut(to)) {
            std::mem::swap(outbox, empty);
        }
    }
}
