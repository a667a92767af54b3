//! Reads the events of a share's ranks in turn.

use bincode::{Decode, Encode};
use trace_format::reader::{Head, StoredEvent};

use crate::timeline::event_streams::{RankEventObserver, RankEvents};
use crate::timeline::matching::findings::{MatchFinding, MatchSink};
use crate::timeline::matching::share::Forwarded;
use crate::timeline::matching::state::Matching;
use crate::timeline::rank_clock::RankClock;

use super::super::operations::Operations;
use super::super::rank_state::RankState;

/// Findings are emitted in batches of this size, which fit into the first-level cache.
const PAIRS_PER_BATCH: usize = 64;
const INSTANCES_PER_BATCH: usize = 16;

/// The progress of one rank.
pub(super) struct RankCursor<'a> {
    /// Position of the rank in the run.
    pub position: usize,
    pub events: RankEvents<'a>,
    /// `None` if its file has no arguments, or if it has ended.
    pub state: Option<RankState<'a>>,
    pub operations: &'a Operations,
    pub clock: &'a RankClock,
    /// Counter at the end of the last event that was handled.
    pub now_ticks: u64,
    pub ended: bool,
}

struct Turn<'t, 'a, S> {
    state: &'t mut RankState<'a>,
    operations: &'a Operations,
    matching: &'t mut Matching<'a>,
    sink: &'t mut S,
    polls: bool,
    taken: u64,
    max: u64,
    until_ticks: u64,
    now_ticks: u64,
}

impl<S: MatchSink> RankEventObserver for Turn<'_, '_, S> {
    #[inline]
    fn wants(&self, head: &Head) -> bool {
        self.operations.may_want(head, self.polls)
    }

    #[inline]
    fn observe(&mut self, thread: u32, event: &StoredEvent<'_>) -> bool {
        let operation = self.operations.operation(event.function());
        self.matching.take_event(self.state, thread, event, operation);
        self.matching.emit_if_many(self.sink);
        self.taken += 1;
        self.now_ticks = event.end_or_begin();
        self.taken < self.max && self.now_ticks <= self.until_ticks
    }
}

impl<'a> RankCursor<'a> {
    /// Handles at most `max` events, until one ends after a moment; returns how many.
    fn take<S: MatchSink>(
        &mut self,
        until_s: f64,
        max: u64,
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
                polls: m.emitter.wants.polls,
                matching: m,
                sink,
                taken: 0,
                max,
                until_ticks,
                now_ticks: self.now_ticks,
            };
            let has_more = self.events.for_each_event(&mut turn);
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

    /// Global seconds from which on it may have more events; `None` if it has ended.
    fn next_s(&self) -> Option<f64> {
        (!self.ended).then(|| self.clock.seconds(self.now_ticks))
    }
}

impl Matching<'_> {
    /// Emits everything that was found, passing messages directly to the sink.
    fn emit_all_matched(&mut self, sink: &mut impl MatchSink) {
        self.emitter.drain(sink);
        self.take_ready(|m, pair| {
            if let Some(message) = m.emitter.message(pair) {
                sink.take(&MatchFinding::Message(message));
            }
        });
        let Self { collectives, emitter, .. } = self;
        collectives.drain(|instance| emitter.emit_instance(instance, sink));
        self.emitter.drain(sink);
    }

    /// Emits what was found, if there is enough for a batch.
    #[inline]
    fn emit_if_many(&mut self, sink: &mut impl MatchSink) {
        let pairs = self.channels.matched.len() + self.settled.len();
        if pairs >= PAIRS_PER_BATCH || self.collectives.completed_count() >= INSTANCES_PER_BATCH {
            self.emit_all_matched(sink);
        }
    }
}

/// The progress of one share.
pub(super) struct ShareRunner<'a, S> {
    pub matching: Matching<'a>,
    pub ranks: Vec<RankCursor<'a>>,
    pub sink: S,
}

/// What a share did in a round.
#[derive(Debug, Clone, Copy, Encode, Decode)]
pub(super) struct Progress {
    /// Events that were handled.
    pub taken: u64,
    /// Global seconds from which on there may be more events; infinite if there are none.
    pub next_s: f64,
    /// Whether something was forwarded.
    pub forwarded: bool,
    /// Whether the run has to be matched again, because a send was not sent and the share did not
    /// allow for that.
    pub must_restart: bool,
}

impl Progress {
    /// Of shares that have nothing to do.
    pub const NONE: Self =
        Self { taken: 0, next_s: f64::INFINITY, forwarded: false, must_restart: false };

    /// What two shares did.
    pub fn and(self, other: Self) -> Self {
        Self {
            taken: self.taken + other.taken,
            next_s: self.next_s.min(other.next_s),
            forwarded: self.forwarded | other.forwarded,
            must_restart: self.must_restart | other.must_restart,
        }
    }
}

impl<S: MatchSink> ShareRunner<'_, S> {
    /// Handles what another share forwarded.
    pub fn handle_forwarded(&mut self, forwarded: &mut Forwarded) {
        let Self { matching, sink, .. } = self;
        matching.handle_forwarded(forwarded, |m| m.emit_if_many(sink));
    }

    /// Handles the events of its ranks up to a moment, at most `turn` events each.
    pub fn round(&mut self, until_s: f64, turn: u64) -> Progress {
        let Self { matching, ranks, sink, .. } = self;
        let (mut taken, mut next_s) = (0, f64::INFINITY);
        for rank in ranks {
            taken += rank.take(until_s, turn, matching, sink);
            next_s = next_s.min(rank.next_s().unwrap_or(f64::INFINITY));
        }
        matching.emit_all_matched(sink);
        let share = matching.share.as_ref();
        let forwarded = share.is_some_and(|share| share.outboxes.iter().any(|o| !o.is_empty()));
        Progress { taken, next_s, forwarded, must_restart: matching.must_restart() }
    }

    /// Swaps the outbox for another share with an empty one.
    pub fn exchange_outbox(&mut self, to: usize, empty: &mut Forwarded) {
        let share = self.matching.share.as_mut();
        if let Some(outbox) = share.and_then(|share| share.outboxes.get_mut(to)) {
            std::mem::swap(outbox, empty);
        }
    }
}
