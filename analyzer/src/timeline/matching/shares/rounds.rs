//! All shares through the run, in rounds: up to a moment of the global timeline, or [`EVENTS_IN_FLIGHT`]
//! events, each takes the events of its ranks, one rank after the other; then the mail is handed over.
//! A rank that has run ahead waits until the slowest has come to the same moment.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashSet;
use trace_format::layout::Slot;
use trace_format::reader::StoredEvent;

use super::super::operations::Operations;
use super::super::rank_state::RankState;
use super::super::settlement::Thoroughness;
use super::super::{MatchSink, Matcher, Matching, MatchingSummary, is_possible};
use super::{Mail, SENDS_OF_A_SHARE, Share};
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::event_streams::{Part, RankEvents, TakeEvents};
use crate::timeline::{GlobalTimeline, RankClock};
use crate::trace::Run;

/// Most events of a round, over all ranks, and what a rank takes in it at least and at most.
const EVENTS_IN_FLIGHT: usize = 1 << 16;
/// What a round should have: far enough below the most that ranks seldom wait for each other, and that
/// what is in flight stays in the caches.
const EVENTS_WANTED: usize = EVENTS_IN_FLIGHT / 4;
const LEAST_TURN: u64 = 8;
const MOST_TURN: u64 = 1 << 14;
/// Shortest step of the moment up to which a round goes, seconds.
const LEAST_STEP_S: f64 = 1e-6;
/// Pairs that are handed on together: few enough to stay in the nearest cache.
const PAIRS_TOGETHER: usize = 64;

/// Calls of the rank at a position; at least 1.
fn calls(run: &Run, position: usize) -> u64 {
    let threads = run.ranks[position].threads.iter();
    threads.map(|thread| thread.calls).fold(1, u64::saturating_add)
}

/// Positions of ranks of equally many calls, as nearly as whole ranks allow.
fn shares(run: &Run, count: usize) -> Vec<Range<usize>> {
    let all: u128 = (0..run.ranks.len()).map(|position| u128::from(calls(run, position))).sum();
    let mut shares = Vec::with_capacity(count);
    let (mut begin, mut sum) = (0, 0u128);
    for position in 0..run.ranks.len() {
        sum += u128::from(calls(run, position));
        let enough = sum * count as u128 >= all * (shares.len() as u128 + 1);
        if enough || position + 1 == run.ranks.len() {
            shares.push(begin..position + 1);
            begin = position + 1;
        }
    }
    shares
}

/// One rank on its way.
struct RankOnItsWay<'a> {
    /// Its position in the run.
    position: usize,
    events: RankEvents<'a>,
    /// `None` when its file does not say what calls mean, and when it has ended.
    state: Option<RankState<'a>>,
    operations: &'a Operations,
    clock: &'a RankClock,
    /// Counter at the end of the event that it took last.
    now_ticks: u64,
    ended: bool,
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
    fn wants(&self, slot: &Slot) -> bool {
        self.operations.of_interest(slot, self.polls)
    }

    #[inline]
    fn take(&mut self, thread: u32, event: &StoredEvent<'_>) -> bool {
        let operation = self.operations.of(event.function());
        self.matching.take_event(self.state, thread, event, operation);
        if self.matching.channels.matched.len() >= PAIRS_TOGETHER {
            self.matching.hand_on_to(self.sink);
        }
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
            share.post_end(self.position, &calls);
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
        self.take_ready(|m, pair| {
            if let Some(message) = m.outlet.message(&pair) {
                sink.message(&message);
            }
        });
        let Self { collectives, outlet, .. } = self;
        collectives.drain(|instance| outlet.hand_on_instance(instance, sink));
        self.outlet.drain(sink);
    }
}

/// One share on its way.
struct ShareOnItsWay<'a, S> {
    matching: Matching<'a>,
    ranks: Vec<RankOnItsWay<'a>>,
    inboxes: Vec<Vec<Mail>>,
    sink: S,
    /// Of the last round: events that were taken, and global seconds from which on there are more.
    taken: u64,
    next_s: f64,
}

impl<S: MatchSink> ShareOnItsWay<'_, S> {
    /// What came from others, then the events of its own ranks up to a moment, at most so many each.
    fn round(&mut self, until_s: f64, turn: u64) {
        let Self { matching, ranks, inboxes, sink, .. } = self;
        for mail in inboxes.iter_mut().flat_map(|inbox| inbox.drain(..)) {
            matching.take_mail(mail);
            if matching.channels.matched.len() >= PAIRS_TOGETHER {
                matching.hand_on_to(sink);
            }
        }
        (self.taken, self.next_s) = (0, f64::INFINITY);
        for rank in ranks {
            self.taken += rank.take(until_s, turn, matching, sink);
            self.next_s = self.next_s.min(rank.next_s().unwrap_or(f64::INFINITY));
        }
        matching.hand_on_to(sink);
    }

    fn waits_for_nothing(&self) -> bool {
        self.next_s == f64::INFINITY && self.inboxes.iter().all(Vec::is_empty)
    }
}

/// Hands over what the shares have for each other.
fn hand_over<S>(shares: &mut [ShareOnItsWay<'_, S>]) {
    for from in 0..shares.len() {
        for to in 0..shares.len() {
            // What was read stands empty in the inbox, to be filled again.
            let mut inbox = std::mem::take(&mut shares[to].inboxes[from]);
            if let Some(share) = &mut shares[from].matching.share {
                std::mem::swap(&mut inbox, &mut share.outboxes[to]);
            }
            shares[to].inboxes[from] = inbox;
        }
    }
}

/// Round after round, to the end; whether the run could be matched so.
fn go_through<S: MatchSink + Send>(shares: &mut [ShareOnItsWay<'_, S>], turn: u64) -> bool {
    let (mut until_s, mut step_s) = (LEAST_STEP_S, LEAST_STEP_S);
    while !shares.iter().all(ShareOnItsWay::waits_for_nothing) {
        shares.par_iter_mut().for_each(|share| share.round(until_s, turn));
        if shares.iter().any(|share| share.matching.has_given_up()) {
            return false;
        }
        hand_over(shares);
        let taken: u64 = shares.iter().map(|share| share.taken).sum();
        let next_s = shares.iter().map(|share| share.next_s).fold(f64::INFINITY, f64::min);
        if taken == 0 {
            // Too short a step for such large numbers.
            step_s *= 2.0;
        } else if next_s <= until_s {
            // Some rank has more than its turn: those that are ahead of it wait.
            step_s = (step_s / 2.0).max(LEAST_STEP_S);
        } else {
            step_s *= (EVENTS_WANTED as f64 / taken as f64).clamp(0.5, 2.0);
        }
        until_s = next_s + step_s;
    }
    true
}

/// Matches everything in a run, in at most `most` shares at the same time; `None` when nothing can be
/// matched. In which order what is found comes: see [`MatchSink`]. Where a send was cancelled or failed,
/// new sinks are asked for and the run is begun anew.
pub fn match_in_shares<S: MatchSink + Send>(
    run: &Run,
    timeline: &GlobalTimeline,
    communicators: &CommunicatorTable,
    most: usize,
    new_sink: impl Fn() -> S + Sync,
) -> Option<Vec<(MatchingSummary, S)>> {
    if !is_possible(run) {
        return None;
    }
    let finished = run.all_finished();
    let wants = new_sink().wants();
    let first = match finished && !wants.completions {
        true => Thoroughness::Posted,
        false => Thoroughness::Completed,
    };
    let parts = shares(run, most.clamp(1, run.ranks.len()));
    let turn = (EVENTS_IN_FLIGHT as u64 / run.ranks.len() as u64).clamp(LEAST_TURN, MOST_TURN);
    for thoroughness in [first, Thoroughness::Doubting] {
        let matcher = Matcher::wanting(run, timeline, communicators, wants);
        let operations = matcher.operations.clone();
        let keeps_open = first == Thoroughness::Completed;
        let mut on_their_way = set_out(
            run,
            timeline,
            &parts,
            (matcher, &operations),
            |number, begins| Share {
                ranks: match (number, begins.get(number + 1)) {
                    (0, behind) => 0..behind.copied().unwrap_or(u32::MAX),
                    (_, behind) => begins[number]..behind.copied().unwrap_or(u32::MAX),
                },
                number,
                begins: begins.clone(),
                outboxes: vec![Vec::new(); begins.len()],
                thoroughness,
                completes_collectives: keeps_open,
                doubted: FxHashSet::default(),
                given_up: false,
            },
            &new_sink,
        );
        // Inside the pool: its threads need not be woken for every round.
        let (all, ()) = rayon::join(|| go_through(&mut on_their_way, turn), || ());
        if all {
            return Some(come_to_an_end(on_their_way));
        }
    }
    None
}

/// The shares, before the first event.
fn set_out<'a, S>(
    run: &'a Run,
    timeline: &'a GlobalTimeline,
    parts: &[Range<usize>],
    (matcher, operations): (Matcher<'a>, &'a [Operations]),
    share: impl Fn(usize, &Arc<[u32]>) -> Share,
    new_sink: impl Fn() -> S,
) -> Vec<ShareOnItsWay<'a, S>> {
    let begins: Arc<[u32]> = parts.iter().map(|part| run.ranks[part.start].rank).collect();
    // Of all ranks and for all shares; each takes what is its own.
    let Matcher { matching, ranks: mut states, .. } = matcher;
    let on_its_way = |(number, part): (usize, &Range<usize>)| {
        let ranks = part.clone().map(|position| RankOnItsWay {
            position,
            events: RankEvents::new(&run.ranks[position], Part::Unbroken),
            state: states[position].take(),
            operations: &operations[position],
            clock: &timeline.ranks[position].clock,
            now_ticks: 0,
            ended: false,
        });
        let mut matching = Matching { share: Some(share(number, &begins)), ..matching.clone() };
        matching.channels.number_from(number as u64 * SENDS_OF_A_SHARE);
        ShareOnItsWay {
            ranks: ranks.collect(),
            matching,
            inboxes: vec![Vec::new(); parts.len()],
            sink: new_sink(),
            taken: 0,
            next_s: 0.0,
        }
    };
    parts.iter().enumerate().map(on_its_way).collect()
}

/// What is left when all events are taken.
fn come_to_an_end<S: MatchSink>(
    mut shares: Vec<ShareOnItsWay<'_, S>>,
) -> Vec<(MatchingSummary, S)> {
    shares.iter_mut().for_each(|share| share.matching.begin_to_finish());
    let met = shares.iter().map(|share| {
        share.matching.met_sends(|to, number| {
            let there = share.matching.share.as_ref().map_or(0, |s| s.of_rank(to.0.destination));
            shares[there].matching.channels.is_unmet_send(to, number)
        })
    });
    let met: Vec<_> = met.collect();
    let ends = shares.into_iter().zip(met).map(|(mut share, met)| {
        share.matching.finish(&met);
        share.matching.outlet.drain(&mut share.sink);
        (share.matching.outlet.summary, share.sink)
    });
    ends.collect()
}
