//! What the ranks do at a moment, and what somebody should look at.

use crate::live::{LiveRank, LiveRun, Place, RankState, Waiting};

/// A run at a moment, in seconds since the first rank left MPI_Init.
#[derive(Debug)]
pub struct Moment {
    pub(super) at_s: f64,
    /// Whether all ranks have finished, so that there is no such moment.
    pub(super) is_over: bool,
    pub(super) ranks: Vec<RankNow>,
    pub(super) alarms: Vec<Alarm>,
}

#[derive(Debug)]
pub(super) struct RankNow {
    pub(super) rank: u32,
    pub(super) state: RankState,
    /// The call that it is inside.
    pub(super) call: Option<String>,
    pub(super) since_s: Option<f64>,
    pub(super) waits_for: Option<Vec<u32>>,
    pub(super) efficiency: Option<f64>,
    /// How many of the last seconds that is of.
    pub(super) observed_s: f64,
    pub(super) waits_for_core: Option<f64>,
}

/// What somebody should look at.
#[derive(Debug)]
pub(super) struct Alarm {
    pub(super) kind: AlarmKind,
    pub(super) rank: Option<u32>,
    /// `None` if unknown.
    pub(super) since_s: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AlarmKind {
    Dead,
    Stopped,
    Deadlock,
    NoProgress,
}

/// If no rank has begun or ended a call for so many seconds, the run makes no progress.
const PATIENCE_S: f64 = 30.0;

impl Moment {
    /// A run now. `waiting` is what is known of who waits for whom.
    pub fn new(run: &LiveRun, waiting: Option<&Waiting>) -> Self {
        let ticks_per_s = run.ticks_per_s();
        let begin = run.begin_ticks();
        let seconds = |ticks: u64| match begin {
            Some(begin) => (ticks as i128 - i128::from(begin)) as f64 / ticks_per_s,
            None => 0.0,
        };
        let now = run.ranks().map(LiveRank::now).max().unwrap_or_default();
        let at_s = seconds(now);
        let ranks = run.ranks().map(|rank| RankNow::new(rank, waiting, seconds, ticks_per_s));
        let mut ranks: Vec<RankNow> = ranks.collect();
        ranks.sort_by_key(|of| of.rank);
        let alarms = alarms(&ranks, waiting, at_s);
        Self { at_s, is_over: run.has_finished(), ranks, alarms }
    }

    /// Mean share of the last seconds outside MPI; `None` if nothing was seen.
    pub(super) fn efficiency(&self) -> Option<f64> {
        let known: Vec<f64> = self.ranks.iter().filter_map(|of| of.efficiency).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    /// The longest time that a rank has been inside a call, in seconds; 0 if none is.
    pub fn longest_wait_s(&self) -> f64 {
        let inside = self.ranks.iter().filter(|of| of.call.is_some());
        inside.filter_map(|of| Some(self.at_s - of.since_s?)).fold(0.0, f64::max)
    }
}

impl RankNow {
    fn new(
        rank: &LiveRank,
        waiting: Option<&Waiting>,
        seconds: impl Fn(u64) -> f64,
        ticks_per_s: f64,
    ) -> Self {
        let (call, since) = match rank.place {
            Some(Place::InMpi { function, since }) => (Some(rank.function(function)), Some(since)),
            Some(Place::Outside { since }) => (None, Some(since)),
            None => (None, None),
        };
        // It may have gone on since the whole trace was read.
        let awaited = waiting.and_then(|waiting| waiting.for_ranks.get(&rank.rank));
        let awaited = awaited.filter(|(function, _)| Some(function.as_str()) == call);
        Self {
            rank: rank.rank,
            state: rank.state,
            call: call.map(str::to_owned).filter(|_| rank.state != RankState::Finished),
            since_s: since.map(seconds),
            waits_for: awaited.map(|(_, ranks)| ranks.clone()),
            efficiency: rank.efficiency(),
            observed_s: rank.seen() as f64 / ticks_per_s,
            waits_for_core: rank.waits_for_core,
        }
    }
}

fn alarms(ranks: &[RankNow], waiting: Option<&Waiting>, at_s: f64) -> Vec<Alarm> {
    let since_s = |rank: u32| ranks.iter().find(|of| of.rank == rank)?.since_s;
    let of_processes = ranks.iter().filter_map(|of| {
        let kind = match of.state {
            RankState::Dead => AlarmKind::Dead,
            RankState::Stopped => AlarmKind::Stopped,
            _ => return None,
        };
        Some(Alarm { kind, rank: Some(of.rank), since_s: since_s(of.rank) })
    });
    let mut alarms: Vec<Alarm> = of_processes.collect();
    let deadlocks = waiting.iter().flat_map(|waiting| &waiting.deadlocks);
    // All of them still have to be inside.
    let is_inside = |rank: &u32| ranks.iter().any(|of| of.rank == *rank && of.waits_for.is_some());
    alarms.extend(deadlocks.filter(|cycle| cycle.iter().all(is_inside)).map(|cycle| Alarm {
        kind: AlarmKind::Deadlock,
        rank: cycle.iter().min().copied(),
        since_s: cycle.iter().filter_map(|rank| since_s(*rank)).max_by(f64::total_cmp),
    }));
    let alive =
        ranks.iter().filter(|of| !matches!(of.state, RankState::Dead | RankState::Finished));
    let last_s = alive.clone().filter_map(|of| of.since_s).fold(0.0, f64::max);
    let waits = alive.clone().any(|of| of.call.is_some());
    if waits && alarms.is_empty() && at_s - last_s > PATIENCE_S {
        let rank = waiting.and_then(|waiting| waiting.cause);
        alarms.push(Alarm { kind: AlarmKind::NoProgress, rank, since_s: Some(last_s) });
    }
    alarms
}
