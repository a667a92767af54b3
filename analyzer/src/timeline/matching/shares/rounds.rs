//! Runs all shares concurrently, in rounds. In a round each share handles the events of its ranks,
//! one rank after the other, up to a moment of the global timeline or up to
//! [`Division::events_in_flight`] events over all ranks; then it handles what the others forwarded to it. A rank that is ahead
//! waits until the slowest has reached the same moment.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::processes::Processes;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::event_streams::{Part, RankEvents};
use crate::timeline::global::GlobalTimeline;
use crate::timeline::matching::fate::SendTracking;
use crate::timeline::matching::findings::{MatchSink, MatchingSummary};
use crate::timeline::matching::share::{Forwarded, SENDS_PER_SHARE, Share};
use crate::timeline::matching::start::{Start, is_possible};
use crate::timeline::matching::state::Matching;
use crate::trace::Run;

use super::super::operations::Operations;
use super::barrier::RoundBarrier;
use super::division::{Division, ProcessShare};
use super::exchange::Exchange;
use super::ranks::{Progress, RankCursor, ShareRunner};
use super::unmet::met_sends;

/// Bounds for the maximum number of events that a rank handles in a round.
const MIN_TURN: u64 = 8;
const MAX_TURN: u64 = 1 << 14;
/// Shortest time by which a round advances, seconds.
const MIN_STEP_S: f64 = 1e-6;

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
    fn next(self, progress: Progress, target_events: usize) -> Option<Self> {
        let Self { until_s, mut step_s } = self;
        let Progress { taken, next_s, forwarded, .. } = progress;
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
            step_s *= (target_events as f64 / taken as f64).clamp(0.5, 2.0);
        }
        Some(Self { until_s: next_s + step_s, step_s })
    }
}

/// Runs rounds to the end of the run; returns `false` if the run has to be matched again.
fn run_rounds<S: MatchSink + Send>(
    shares: &mut [ShareRunner<'_, S>],
    (division, processes): (&Division, &Processes),
    turn: u64,
) -> bool {
    // A process without ranks takes part in the exchange, too.
    let barrier = RoundBarrier::new(shares.len().max(1));
    // Used in turn: while some shares read the exchange of one round, others are already in the
    // next.
    let exchanges = [Exchange::new(division), Exchange::new(division)];
    let go = |number: usize, mut share: Option<&mut ShareRunner<'_, S>>| {
        let _participant = barrier.join();
        let mut pace = Pace::FIRST;
        for exchange in exchanges.iter().cycle() {
            if let Some(share) = &mut share {
                let progress = share.round(pace.until_s, turn);
                exchange.put(number, progress, |to, empty| share.exchange_outbox(to, empty));
            }
            if !barrier.wait() {
                return false;
            }
            if !processes.is_alone() {
                if number == 0 {
                    exchange.with_other_processes(division, processes);
                }
                if !barrier.wait() {
                    return false;
                }
            }
            let progress = exchange.progress();
            if progress.must_restart {
                return false;
            }
            match pace.next(progress, division.target_events()) {
                Some(next) => pace = next,
                None => return true,
            }
            if let Some(share) = &mut share {
                exchange.take(division.own.start + number, number, |f| share.handle_forwarded(f));
            }
        }
        true
    };
    let (first, others) = match shares.split_first_mut() {
        Some((first, others)) => (Some(first), others),
        None => (None, Default::default()),
    };
    std::thread::scope(|scope| {
        let go = &go;
        let others = (1..).zip(others);
        let others: Vec<_> =
            others.map(|(number, share)| scope.spawn(move || go(number, Some(share)))).collect();
        let all = go(0, first);
        others.into_iter().fold(all, |all, other| match other.join() {
            Ok(through) => all && through,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// Matches a whole run in concurrent shares, those of this process here; `None` if nothing can be
/// matched. All processes of `here` call this. [`MatchSink`] describes the order of the findings. If
/// a send was cancelled or failed, the run is matched again with new sinks.
pub fn match_in_shares<S: MatchSink + Send>(
    run: &Run,
    timeline: &GlobalTimeline,
    communicators: &CommunicatorTable,
    here: &ProcessShare,
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
    let division = Division::new(run, here);
    let turn = division.events_in_flight() as u64 / run.ranks.len() as u64;
    let turn = turn.clamp(MIN_TURN, MAX_TURN);
    for tracking in [first, SendTracking::Confirmed] {
        let start = Start::new(run, timeline, communicators, wants);
        let operations = start.operations.clone();
        let keeps_open = first == SendTracking::Completed;
        let mut runners = start_shares(
            run,
            timeline,
            &division,
            (start, &operations),
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
        if run_rounds(&mut runners, (&division, &here.processes), turn) {
            return Some(finish_shares(runners, &division, &here.processes));
        }
    }
    None
}

/// The shares before the first event.
fn start_shares<'a, S>(
    run: &'a Run,
    timeline: &'a GlobalTimeline,
    division: &Division,
    (start, operations): (Start<'a>, &'a [Arc<Operations>]),
    share: impl Fn(usize, &Arc<[u32]>) -> Share,
    new_sink: impl Fn() -> S,
) -> Vec<ShareRunner<'a, S>> {
    let begins: Arc<[u32]> = division.all.iter().map(|part| run.ranks[part.start].rank).collect();
    // The states of all ranks; each share here takes those of its own.
    let Start { matching, ranks: mut states, .. } = start;
    let runner = |number: usize| {
        let part = &division.all[number];
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
        matching.collectives.share_with(division.all.len());
        matching.channels.number_from(number as u64 * SENDS_PER_SHARE);
        ShareRunner { ranks: ranks.collect(), matching, sink: new_sink() }
    };
    division.own.clone().map(runner).collect()
}

/// Emits what is left after the last event.
fn finish_shares<S: MatchSink>(
    mut shares: Vec<ShareRunner<'_, S>>,
    division: &Division,
    processes: &Processes,
) -> Vec<(MatchingSummary, S)> {
    shares.iter_mut().for_each(|share| share.matching.begin_to_finish());
    let matchings: Vec<&Matching> = shares.iter().map(|share| &share.matching).collect();
    let met = met_sends(&matchings, division, processes);
    let ends = shares.into_iter().zip(met).map(|(mut share, met)| {
        share.matching.finish(&met);
        share.matching.emitter.drain(&mut share.sink);
        (share.matching.emitter.summary, share.sink)
    });
    ends.collect()
}
