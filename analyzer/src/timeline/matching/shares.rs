//! Matching shared out over threads: a run whose ranks all finished comes in; for every share of it
//! what matching finds there goes out, to a sink of its own.
//!
//! A share reads the events of its own ranks. It matches the messages to them and the collective
//! operations on its own communicators: whatever meets in a channel, or in an instance, is in one share.
//! What its ranks send to others' ranks, and call on others' communicators, it passes on as [`Mail`].
//! Requests matter on their own rank only, as the sends of a finished rank are sent whether or not
//! somebody waits for them.
//!
//! The order in which the ranks' events are taken does not matter then, as long as each rank's own is
//! kept. So the shares work in rounds: up to a moment of the global timeline, or [`EVENTS_IN_FLIGHT`]
//! events, each takes the events of its ranks, one rank after the other; then the mail is handed over.
//! A rank that has run ahead waits until the slowest has come to the same moment.
//!
//! Where this does not hold, all is left to [`super::match_run`]: ranks without a file or not finished,
//! cancelled sends (whether they met a receive depends on time), persistent and partitioned operations.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use trace_format::functions::FIRST_FUNCTION;
use trace_format::layout::Slot;
use trace_format::reader::Event;

use super::channels::{ChannelKey, Post};
use super::collectives::{OpenMember, SequenceKey};
use super::operations::{Operation, Operations};
use super::rank_state::RankState;
use super::{MatchSink, Matcher, Matching, MatchingSummary, is_possible};
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::event_streams::{Part, RankEvents};
use crate::timeline::{GlobalTimeline, RankClock};
use crate::trace::Run;

/// Most events of a round, over all ranks, and what a rank takes in it at least and at most.
const EVENTS_IN_FLIGHT: usize = 1 << 16;
/// What a round should have: far enough below the most that ranks seldom wait for each other.
const EVENTS_WANTED: usize = EVENTS_IN_FLIGHT / 2;
const LEAST_TURN: usize = 8;
const MOST_TURN: usize = 1 << 14;
/// Shortest step of the moment up to which a round goes, seconds.
const LEAST_STEP_S: f64 = 1e-6;

/// What one share has to do with.
#[derive(Debug, Clone)]
pub(super) struct Share {
    /// Ranks of the world whose events are read, and whose messages received are matched.
    ranks: Range<u32>,
    number: usize,
    /// First rank of every share.
    begins: Arc<[u32]>,
    /// For each share what it has to know.
    outboxes: Vec<Vec<Mail>>,
}

/// What happens on a rank that another share has to know.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mail {
    /// A send to one of its ranks.
    Send { key: ChannelKey, post: Post, bytes: u64 },
    /// A call of a collective operation on one of its communicators.
    Collective { key: SequenceKey, function: u16, member: OpenMember },
    /// The rank at this position in the run has no more events.
    End { rank: usize },
}

impl Share {
    /// Whether the messages to a rank are matched here.
    #[inline]
    fn has_rank(&self, world_rank: u32) -> bool {
        self.ranks.contains(&world_rank)
    }

    fn of_rank(&self, world_rank: u32) -> usize {
        self.begins.partition_point(|begin| *begin <= world_rank).saturating_sub(1)
    }

    fn of_communicator(&self, communicator: u32) -> usize {
        // From the last on: the first ranks' shares tend to have more to do.
        let shares = self.begins.len();
        shares - 1 - communicator as usize % shares
    }

    fn post(&mut self, to: usize, mail: Mail) {
        if let Some(outbox) = self.outboxes.get_mut(to) {
            outbox.push(mail);
        }
    }
}

impl Matching<'_> {
    /// Passes a send on to the share that matches it; `false` when that is here.
    #[inline]
    pub(super) fn passes_on_send(&mut self, key: ChannelKey, post: Post, bytes: u64) -> bool {
        let Some(share) = &mut self.share else { return false };
        if share.has_rank(key.destination) {
            return false;
        }
        share.post(share.of_rank(key.destination), Mail::Send { key, post, bytes });
        true
    }

    /// As [`Matching::passes_on_send`], for a collective call. Whether it is complete does not matter to
    /// those who match in shares.
    pub(super) fn passes_on_collective(
        &mut self,
        key: SequenceKey,
        function: u16,
        member: OpenMember,
    ) -> bool {
        let Some(share) = &mut self.share else { return false };
        let to = share.of_communicator(key.communicator);
        if to == share.number {
            return false;
        }
        let member = OpenMember { pending: false, complete_ticks: member.end_ticks, ..member };
        share.post(to, Mail::Collective { key, function, member });
        true
    }

    fn take_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Send { key, post, bytes } => {
                self.channels.send(key, post, bytes, false);
                self.drop_orphaned_sends(key);
            }
            Mail::Collective { key, function, member } => {
                self.collectives.call(key, function, member);
            }
            Mail::End { rank } => self.end_of_rank(rank),
        }
    }

    /// Hands on what was found, messages by the shortest way.
    fn hand_on_to(&mut self, sink: &mut dyn MatchSink) {
        for pair in self.channels.matched.drain(..) {
            if let Some(message) = self.outlet.message(&pair) {
                sink.message(&message);
            }
        }
        self.hand_on();
        self.outlet.drain(sink);
    }
}

/// Whether a share alone cannot tell what an operation does.
pub(super) fn needs_all(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::SendInit
            | Operation::ReceiveInit
            | Operation::PartitionedSendInit
            | Operation::PartitionedReceiveInit
            | Operation::CollectiveInit
            | Operation::Start
            | Operation::Startall
    )
}

/// Whether a run may be matched in shares.
pub fn is_shareable(run: &Run) -> bool {
    is_possible(run)
        && run.missing.is_empty()
        && run.ranks.iter().all(|trace| trace.facts.finalized())
}

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
    /// `None` when its file does not say what calls mean.
    state: Option<RankState<'a>>,
    operations: &'a Operations,
    clock: &'a RankClock,
    ended: bool,
}

impl RankOnItsWay<'_> {
    fn advance(&mut self) {
        let operations = self.operations;
        let does_something = |function| {
            function >= FIRST_FUNCTION && operations.of(function).0 != Operation::Nothing
        };
        let of_interest = |slot: &Slot| does_something(slot.function());
        self.events.advance(&of_interest, &|event: &Event| {
            event.polls.is_none() && does_something(event.function)
        });
    }

    /// Takes events up to a moment, at most so many.
    fn take(&mut self, until_s: f64, most: usize, m: &mut Matching) -> u64 {
        let until_ticks = self.clock.ticks_at(until_s);
        let mut taken = 0;
        while let Some((thread, event)) = self.events.next_event() {
            if taken == most as u64 || event.end.unwrap_or(event.begin) > until_ticks {
                return taken;
            }
            if let Some(state) = &mut self.state {
                state.take(thread, event, self.operations.of(event.function), m);
            }
            taken += 1;
            self.advance();
        }
        if !std::mem::replace(&mut self.ended, true) {
            if let Some(state) = self.state.take() {
                state.finish(m);
            }
            m.end_of_rank(self.position);
            if let Some(share) = &mut m.share {
                let others = (0..share.begins.len()).filter(|other| *other != share.number);
                for other in others.collect::<Vec<_>>() {
                    share.post(other, Mail::End { rank: self.position });
                }
            }
        }
        taken
    }

    /// Global seconds of its next event, by its end.
    fn next_s(&self) -> Option<f64> {
        let (_, event) = self.events.next_event()?;
        Some(self.clock.seconds(event.end.unwrap_or(event.begin)))
    }
}

/// One share on its way.
struct ShareOnItsWay<'a, S> {
    matching: Matching<'a>,
    ranks: Vec<RankOnItsWay<'a>>,
    inboxes: Vec<Vec<Mail>>,
    sink: S,
    /// Of the last round: events that were taken, and global seconds of the earliest one that was not.
    taken: u64,
    next_s: f64,
}

impl<S: MatchSink> ShareOnItsWay<'_, S> {
    /// What came from others, then the events of its own ranks up to a moment, at most so many each.
    fn round(&mut self, until_s: f64, turn: usize) {
        let Self { matching, ranks, inboxes, sink, .. } = self;
        for mail in inboxes.iter_mut().flat_map(|inbox| inbox.drain(..)) {
            matching.take_mail(mail);
        }
        matching.hand_on_to(sink);
        (self.taken, self.next_s) = (0, f64::INFINITY);
        for rank in ranks {
            self.taken += rank.take(until_s, turn, matching);
            self.next_s = self.next_s.min(rank.next_s().unwrap_or(f64::INFINITY));
            matching.hand_on_to(sink);
        }
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

/// Round after round, to the end; whether the run could be matched in shares.
fn go_through<S: MatchSink + Send>(shares: &mut [ShareOnItsWay<'_, S>], turn: usize) -> bool {
    let (mut until_s, mut step_s) = (LEAST_STEP_S, LEAST_STEP_S);
    while !shares.iter().all(ShareOnItsWay::waits_for_nothing) {
        shares.par_iter_mut().for_each(|share| share.round(until_s, turn));
        if shares.iter().any(|share| share.matching.given_up) {
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

/// Matches everything in a run, in at most `most` shares at the same time; `None` when it cannot be
/// done so. What is found comes in no certain order, and operations that are still active are those of
/// one share each.
pub fn match_in_shares<S: MatchSink + Send>(
    run: &Run,
    timeline: &GlobalTimeline,
    communicators: &CommunicatorTable,
    most: usize,
    new_sink: impl Fn() -> S + Sync,
) -> Option<Vec<(MatchingSummary, S)>> {
    if !is_shareable(run) {
        return None;
    }
    let parts = shares(run, most.clamp(1, run.ranks.len()));
    let begins: Arc<[u32]> = parts.iter().map(|part| run.ranks[part.start].rank).collect();
    // Of all ranks and for all shares; each takes what is its own.
    let Matcher { operations, matching, ranks: mut states, .. } =
        Matcher::new(run, timeline, communicators);
    let mut on_their_way = Vec::with_capacity(parts.len());
    for (number, part) in parts.iter().enumerate() {
        let ranks = part.clone().map(|position| {
            let mut rank = RankOnItsWay {
                position,
                events: RankEvents::new(&run.ranks[position], Part::Unbroken),
                state: states[position].take(),
                operations: &operations[position],
                clock: &timeline.ranks[position].clock,
                ended: false,
            };
            rank.advance();
            rank
        });
        let share = Share {
            ranks: run.ranks[part.start].rank..run.ranks[part.end - 1].rank + 1,
            number,
            begins: begins.clone(),
            outboxes: vec![Vec::new(); parts.len()],
        };
        on_their_way.push(ShareOnItsWay {
            ranks: ranks.collect(),
            matching: Matching { share: Some(share), ..matching.clone() },
            inboxes: vec![Vec::new(); parts.len()],
            sink: new_sink(),
            taken: 0,
            next_s: 0.0,
        });
    }
    let turn = (EVENTS_IN_FLIGHT / run.ranks.len()).clamp(LEAST_TURN, MOST_TURN);
    // Inside the pool: its threads need not be woken for every round.
    let (all, ()) = rayon::join(|| go_through(&mut on_their_way, turn), || ());
    all.then_some(())?;
    let ends = on_their_way.into_iter().map(|mut share| {
        share.matching.finish();
        share.matching.outlet.drain(&mut share.sink);
        (share.matching.outlet.summary, share.sink)
    });
    Some(ends.collect())
}
