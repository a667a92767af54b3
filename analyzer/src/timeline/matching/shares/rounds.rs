//! All shares through the run at the same time, in rounds: up to a moment of the global timeline, or
//! [`EVENTS_IN_FLIGHT`] events, each takes the events of its ranks, one rank after the other; then it takes
//! what the others have forwarded to it. A rank that has run ahead waits until the slowest has come to the
//! same moment.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashSet;

use super::super::operations::Operations;
use super::super::settlement::Thoroughness;
use super::super::{MatchSink, Matcher, Matching, MatchingSummary, is_possible};
use super::meeting::Meeting;
use super::ranks::{Progress, RankOnItsWay, ShareOnItsWay};
use super::{Forwarded, SENDS_OF_A_SHARE, Share};
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::event_streams::{Part, RankEvents};
use crate::trace::Run;

/// Most events of a round, over all ranks, and what a rank takes in it at least and at most.
const EVENTS_IN_FLIGHT: usize = 1 << 16;
/// What a round should have: far enough below the most that ranks seldom wait for each other, and that
/// what is in flight stays in the caches.
const EVENTS_WANTED: usize = EVENTS_IN_FLIGHT / 2;
const LEAST_TURN: u64 = 8;
const MOST_TURN: u64 = 1 << 14;
/// Shortest step of the moment up to which a round goes, seconds.
const LEAST_STEP_S: f64 = 1e-6;

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

/// Up to which moment a round goes.
#[derive(Debug, Clone, Copy)]
struct Pace {
    until_s: f64,
    step_s: f64,
}

impl Pace {
    const FIRST: Self = Self { until_s: LEAST_STEP_S, step_s: LEAST_STEP_S };

    /// The next round's, from what all shares did in the last one; `None` when nothing is left.
    fn next(self, progress: impl Iterator<Item = Progress>) -> Option<Self> {
        let Self { until_s, mut step_s } = self;
        let (mut taken, mut next_s, mut forwarded) = (0, f64::INFINITY, false);
        for share in progress {
            taken += share.taken;
            next_s = next_s.min(share.next_s);
            forwarded |= share.forwarded;
        }
        if next_s == f64::INFINITY && !forwarded {
            return None;
        }
        if taken == 0 {
            // Too short a step for such large numbers.
            step_s *= 2.0;
        } else if next_s <= until_s {
            // Some rank has more than its turn: those that are ahead of it wait.
            step_s = (step_s / 2.0).max(LEAST_STEP_S);
        } else {
            step_s *= (EVENTS_WANTED as f64 / taken as f64).clamp(0.5, 2.0);
        }
        Some(Self { until_s: next_s + step_s, step_s })
    }
}

/// What the shares tell each other between two rounds. A share's own fields are only read by others when it
/// will write them no more, so that nobody waits for a lock.
struct Exchange {
    progress: Vec<Mutex<Option<Progress>>>,
    /// By the share that forwarded it, and by the one that takes it.
    forwarded: Vec<Vec<Mutex<Forwarded>>>,
}

impl Exchange {
    fn new(shares: usize) -> Self {
        let boxes = || (0..shares).map(|_| Mutex::default()).collect();
        let progress = (0..shares).map(|_| Mutex::default()).collect();
        Self { progress, forwarded: (0..shares).map(|_| boxes()).collect() }
    }

    fn progress(&self) -> impl Iterator<Item = Progress> + '_ {
        self.progress.iter().filter_map(|of_share| *lock(of_share))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Round after round, to the end; whether the run could be matched so.
fn go_through<S: MatchSink + Send>(shares: &mut [ShareOnItsWay<'_, S>], turn: u64) -> bool {
    let meeting = Meeting::new(shares.len());
    // Of rounds in turn: while some read what was exchanged behind one, others are in the next.
    let exchanges = [Exchange::new(shares.len()), Exchange::new(shares.len())];
    let go = |number: usize, share: &mut ShareOnItsWay<'_, S>| {
        let _takes_part = meeting.take_part();
        let mut pace = Pace::FIRST;
        for exchange in exchanges.iter().cycle() {
            *lock(&exchange.progress[number]) = Some(share.round(pace.until_s, turn));
            for (to, forwarded) in exchange.forwarded[number].iter().enumerate() {
                share.exchange_outbox(to, &mut lock(forwarded));
            }
            if !meeting.meet() || exchange.progress().any(|progress| progress.given_up) {
                return false;
            }
            match pace.next(exchange.progress()) {
                Some(next) => pace = next,
                None => return true,
            }
            for from in &exchange.forwarded {
                share.take_forwarded(&mut lock(&from[number]));
            }
        }
        true
    };
    let Some((first, others)) = shares.split_first_mut() else { return true };
    std::thread::scope(|scope| {
        let go = &go;
        let others = (1..).zip(others);
        let others: Vec<_> =
            others.map(|(number, share)| scope.spawn(move || go(number, share))).collect();
        let all = go(0, first);
        others.into_iter().fold(all, |all, other| match other.join() {
            Ok(through) => all && through,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
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
                outboxes: vec![Forwarded::default(); begins.len()],
                thoroughness,
                completes_collectives: keeps_open,
                doubted: FxHashSet::default(),
                given_up: false,
            },
            &new_sink,
        );
        if go_through(&mut on_their_way, turn) {
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
        ShareOnItsWay { ranks: ranks.collect(), matching, sink: new_sink() }
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
