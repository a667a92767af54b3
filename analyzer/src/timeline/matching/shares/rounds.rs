//! Runs all shares concurrently, in rounds. In a round each share handles the events of its ranks,
//! one rank after the other, up to a moment of the global timeline or up to [`EVENTS_IN_FLIGHT`]
//! events over all ranks; then it handles what the others forwarded to it. A rank that is ahead
//! waits until the slowest has reached the same moment.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashSet;

use super::super::operations::Operations;
use super::super::settlement::SendTracking;
use super::super::{MatchSink, Matcher, Matching, MatchingSummary, is_possible};
use super::barrier::RoundBarrier;
use super::ranks::{Progress, RankCursor, ShareRunner};
use super::{Forwarded, SENDS_PER_SHARE, Share};
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::event_streams::{Part, RankEvents};
use crate::trace::Run;

/// Most events of a round over all ranks.
const EVENTS_IN_FLIGHT: usize = 1 << 16;
/// Target for the events of a round: far enough below the maximum that ranks seldom wait for each
/// other, and few enough that what is in flight stays in the caches.
const TARGET_EVENTS: usize = EVENTS_IN_FLIGHT / 2;
/// Bounds for the maximum number of events that a rank handles in a round.
const MIN_TURN: u64 = 8;
const MAX_TURN: u64 = 1 << 14;
/// Shortest time by which a round advances, seconds.
const MIN_STEP_S: f64 = 1e-6;

/// Calls of the rank at a position; at least 1.
fn calls(run: &Run, position: usize) -> u64 {
    let threads = run.ranks[position].threads.iter();
    threads.map(|thread| thread.calls).fold(1, u64::saturating_add)
}

/// Divides the positions of the ranks into ranges with as nearly equal numbers of calls as whole
/// ranks allow.
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

/// The moment up to which a round goes.
#[derive(Debug, Clone, Copy)]
struct Pace {
    until_s: f64,
    step_s: f64,
}

impl Pace {
    const FIRST: Self = Self { until_s: MIN_STEP_S, step_s: MIN_STEP_S };

    /// The pace of the next round, given what all shares did in the last one; `None` if nothing is
    /// left.
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
            // The step was too short for such large numbers.
            step_s *= 2.0;
        } else if next_s <= until_s {
            // Some rank has more events than its turn allows; those ahead of it wait.
            step_s = (step_s / 2.0).max(MIN_STEP_S);
        } else {
            step_s *= (TARGET_EVENTS as f64 / taken as f64).clamp(0.5, 2.0);
        }
        Some(Self { until_s: next_s + step_s, step_s })
    }
}

/// What the shares exchange between two rounds. Others read a share's fields only when it has
/// finished writing them, so nobody waits for a lock.
struct Exchange {
    progress: Vec<Mutex<Option<Progress>>>,
    /// Indexed by the sending share, then by the receiving one.
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

/// Runs rounds to the end of the run; returns `false` if the run has to be matched again.
fn run_rounds<S: MatchSink + Send>(shares: &mut [ShareRunner<'_, S>], turn: u64) -> bool {
    let barrier = RoundBarrier::new(shares.len());
    // Used in turn: while some shares read the exchange of one round, others are already in the
    // next.
    let exchanges = [Exchange::new(shares.len()), Exchange::new(shares.len())];
    let go = |number: usize, share: &mut ShareRunner<'_, S>| {
        let _participant = barrier.join();
        let mut pace = Pace::FIRST;
        for exchange in exchanges.iter().cycle() {
            *lock(&exchange.progress[number]) = Some(share.round(pace.until_s, turn));
            for (to, forwarded) in exchange.forwarded[number].iter().enumerate() {
                share.exchange_outbox(to, &mut lock(forwarded));
            }
            if !barrier.wait() || exchange.progress().any(|progress| progress.must_restart) {
                return false;
            }
            match pace.next(exchange.progress()) {
                Some(next) => pace = next,
                None => return true,
            }
            for from in &exchange.forwarded {
                share.handle_forwarded(&mut lock(&from[number]));
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

/// Matches a whole run in at most `max_shares` concurrent shares; `None` if nothing can be matched.
/// [`MatchSink`] describes the order of the findings. If a send was cancelled or failed, the run is
/// matched again with new sinks.
pub fn match_in_shares<S: MatchSink + Send>(
    run: &Run,
    timeline: &GlobalTimeline,
    communicators: &CommunicatorTable,
    max_shares: usize,
    new_sink: impl Fn() -> S + Sync,
) -> Option<Vec<(MatchingSummary, S)>> {
    if !is_possible(run) {
        return None;
    }
    let finished = run.all_finished();
    let wants = new_sink().wants();
    let first = match finished && !wants.completions {
        true => SendTracking::Posted,
        false => SendTracking::Completed,
    };
    let parts = shares(run, max_shares.clamp(1, run.ranks.len()));
    let turn = (EVENTS_IN_FLIGHT as u64 / run.ranks.len() as u64).clamp(MIN_TURN, MAX_TURN);
    for tracking in [first, SendTracking::Confirmed] {
        let matcher = Matcher::wanting(run, timeline, communicators, wants);
        let operations = matcher.operations.clone();
        let keeps_open = first == SendTracking::Completed;
        let mut runners = start_shares(
            run,
            timeline,
            &parts,
            (matcher, &operations),
            |number, begins| Share {
                ranks: match (number, begins.get(number + 1)) {
                    (0, next) => 0..next.copied().unwrap_or(u32::MAX),
                    (_, next) => begins[number]..next.copied().unwrap_or(u32::MAX),
                },
                number,
                begins: begins.clone(),
                outboxes: vec![Forwarded::default(); begins.len()],
                tracking,
                completes_collectives: keeps_open,
                cancel_requested: FxHashSet::default(),
                must_restart: false,
            },
            &new_sink,
        );
        if run_rounds(&mut runners, turn) {
            return Some(finish_shares(runners));
        }
    }
    None
}

/// The shares before the first event.
fn start_shares<'a, S>(
    run: &'a Run,
    timeline: &'a GlobalTimeline,
    parts: &[Range<usize>],
    (matcher, operations): (Matcher<'a>, &'a [Operations]),
    share: impl Fn(usize, &Arc<[u32]>) -> Share,
    new_sink: impl Fn() -> S,
) -> Vec<ShareRunner<'a, S>> {
    let begins: Arc<[u32]> = parts.iter().map(|part| run.ranks[part.start].rank).collect();
    // The states of all ranks; each share takes those of its own.
    let Matcher { matching, ranks: mut states, .. } = matcher;
    let runner = |(number, part): (usize, &Range<usize>)| {
        let ranks = part.clone().map(|position| RankCursor {
            position,
            events: RankEvents::new(&run.ranks[position], Part::BeforeTotals),
            state: states[position].take(),
            operations: &operations[position],
            clock: &timeline.ranks[position].clock,
            now_ticks: 0,
            ended: false,
        });
        let mut matching = Matching { share: Some(share(number, &begins)), ..matching.clone() };
        matching.channels.number_from(number as u64 * SENDS_PER_SHARE);
        ShareRunner { ranks: ranks.collect(), matching, sink: new_sink() }
    };
    parts.iter().enumerate().map(runner).collect()
}

/// Emits what is left after the last event.
fn finish_shares<S: MatchSink>(mut shares: Vec<ShareRunner<'_, S>>) -> Vec<(MatchingSummary, S)> {
    shares.iter_mut().for_each(|share| share.matching.begin_to_finish());
    let met = shares.iter().map(|share| {
        share.matching.matched_sends(|to, number| {
            let there = share.matching.share.as_ref().map_or(0, |s| s.of_rank(to.0.destination));
            shares[there].matching.channels.is_unmet_send(to, number)
        })
    });
    let met: Vec<_> = met.collect();
    let ends = shares.into_iter().zip(met).map(|(mut share, met)| {
        share.matching.finish(&met);
        share.matching.emitter.drain(&mut share.sink);
        (share.matching.emitter.summary, share.sink)
    });
    ends.collect()
}
