//! What the ranks do at a moment.

use super::iterations::IterationsNow;
use super::rank::{CoreUse, LiveRank, RankState};
use super::run::LiveRun;
use super::seconds::Place;
use super::waiting::Waiting;

/// A run at a moment, in seconds since the first rank left MPI_Init.
#[derive(Debug)]
pub struct Moment {
    pub at_s: f64,
    /// Whether all ranks have finished, so that there is no such moment.
    pub is_over: bool,
    pub ranks: Vec<RankNow>,
    /// The iterations that all ranks make; `None`: no loop is known of which all take part, or nobody follows them.
    pub iterations: Option<IterationsNow>,
}

/// A rank at a moment.
#[derive(Debug)]
pub struct RankNow {
    pub rank: u32,
    pub state: RankState,
    /// The call that it is inside.
    pub call: Option<String>,
    pub since_s: Option<f64>,
    /// The same on its counter, whose rate is known better and better.
    pub since: Option<u64>,
    /// Its place in the order in which processes let go of their files; `None`: it runs, or this is not known.
    pub closed: Option<u64>,
    pub waits_for: Option<Vec<u32>>,
    pub efficiency: Option<f64>,
    /// How many of the last seconds that is of.
    pub observed_s: f64,
    pub waits_for_core: Option<f64>,
    /// How its threads have used the cores so far.
    pub cores: CoreUse,
}

impl Moment {
    /// A run at the last look.
    pub fn new(run: &LiveRun) -> Self {
        let ticks_per_s = run.ticks_per_s();
        let begin = run.begin_ticks();
        let seconds = |ticks: u64| match begin {
            Some(begin) => (ticks as i128 - i128::from(begin)) as f64 / ticks_per_s,
            None => 0.0,
        };
        let looked = run.ranks().filter_map(LiveRank::looked).max();
        let now = looked.or_else(|| run.ranks().map(LiveRank::now).max()).unwrap_or_default();
        let at_s = seconds(now);
        let ranks = run.ranks().map(|rank| RankNow::new(rank, seconds, ticks_per_s));
        let mut ranks: Vec<RankNow> = ranks.collect();
        ranks.sort_by_key(|of| of.rank);
        Self { at_s, is_over: run.has_finished(), ranks, iterations: None }
    }

    /// Notes who waits for whom, where the ranks are still in the calls of which that is known.
    pub fn note_waiting(&mut self, waiting: &Waiting) {
        for of in &mut self.ranks {
            let awaited = waiting.for_ranks.get(&of.rank);
            let awaited = awaited.filter(|(function, _)| of.call.as_ref() == Some(function));
            of.waits_for = awaited.map(|(_, ranks)| ranks.clone());
        }
    }

    /// Mean share of the last seconds outside MPI; `None` if nothing was seen.
    pub fn efficiency(&self) -> Option<f64> {
        self.mean(|of| of.efficiency)
    }

    /// Mean share of the time since the last look that ranks waited for a core; `None` if it is unknown.
    pub fn waits_for_core(&self) -> Option<f64> {
        self.mean(|of| of.waits_for_core)
    }

    fn mean(&self, of_rank: impl Fn(&RankNow) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = self.ranks.iter().filter_map(of_rank).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    /// When a rank last began or ended a call, also one that has ended since.
    pub fn moved_s(&self) -> f64 {
        self.ranks.iter().filter_map(|of| of.since_s).fold(0.0, f64::max)
    }

    /// The longest time that a rank has been inside a call, in seconds; 0 if none is.
    pub fn longest_wait_s(&self) -> f64 {
        let inside = self.ranks.iter().filter(|of| of.call.is_some());
        inside.filter_map(|of| Some(self.at_s - of.since_s?)).fold(0.0, f64::max)
    }
}

impl RankNow {
    /// Whether it no longer takes part: its process has ended, or MPI_Finalize returned.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, RankState::Dead | RankState::Finished)
    }

    /// Whether it is in MPI_Finalize, where it may wait for all others to come.
    pub fn is_ending(&self) -> bool {
        self.call.as_deref() == Some("MPI_Finalize")
    }

    fn new(rank: &LiveRank, seconds: impl Fn(u64) -> f64, ticks_per_s: f64) -> Self {
        let (call, since) = match rank.place {
            Some(Place::InMpi { function, since }) => (Some(rank.function(function)), Some(since)),
            Some(Place::Outside { since }) => (None, Some(since)),
            None => (None, None),
        };
        Self {
            rank: rank.rank,
            state: rank.state,
            call: call.map(str::to_owned).filter(|_| rank.state != RankState::Finished),
            since_s: since.map(seconds),
            since,
            closed: rank.closed.map(|closed| closed.order),
            waits_for: None,
            efficiency: rank.efficiency(),
            observed_s: rank.seen() as f64 / ticks_per_s,
            waits_for_core: rank.waits_for_core,
            cores: rank.cores(),
        }
    }
}
