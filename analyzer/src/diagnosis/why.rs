//! The causes of waiting with everything that is needed to judge and show them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::causes::{Causes, Context, Tree, Unknown};
use crate::metrics::{CpuTime, OwnTime};
use crate::replay::NoIdeal;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// The causes with everything that is needed to show them.
#[derive(Debug, Clone, Copy)]
pub struct Why<'a> {
    pub run: &'a Run,
    pub timeline: &'a GlobalTimeline,
    /// The causes found.
    pub causes: &'a Causes<'a>,
    /// The run's time on an ideal network over its own.
    pub ideal: Result<f64, NoIdeal>,
    /// If set, only waits of and for this rank of MPI_COMM_WORLD are shown.
    pub rank: Option<u32>,
}

impl Why<'_> {
    /// The efficiency of the part of the run that is explained.
    pub fn tree(&self) -> Option<Tree> {
        self.causes.tree(self.run, self.ideal.ok())
    }

    /// Serialisation and transfer, whose product is the communication efficiency; `None` without a replay.
    pub fn serialisation_and_transfer(&self) -> Option<(f64, f64)> {
        self.tree().and_then(|tree| tree.serialisation.zip(tree.transfer))
    }

    /// Whether the whole run is explained, not only a region, a window or an iteration.
    pub fn is_of_all(&self) -> bool {
        self.causes.part.is_none()
    }

    /// Ticks as seconds.
    pub fn seconds(&self, ticks: i64) -> f64 {
        self.causes.clock.seconds(ticks)
    }

    /// What each rank did in the time that counts as its computation, where the kernel's times tell.
    pub fn own_times(&self) -> OwnTimes {
        let causes = self.causes;
        let mut computing_s: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
        for (number, line) in (0..).zip(&causes.lines.all) {
            let seconds = causes.clock.seconds(causes.computing(number));
            computing_s.entry(line.rank).or_default().insert(line.thread, seconds);
        }
        let of_rank = |(rank, by_thread): (u32, BTreeMap<u32, f64>)| {
            // γ is at least as long as that of any thread, and this lower bound suffices.
            let compute_s = by_thread.values().copied().fold(0.0, f64::max);
            let position = self.run.position_of(rank)?;
            let of = (&self.run.ranks[position], &self.timeline.ranks[position]);
            Some((rank, CpuTime::of_rank(of, compute_s, &by_thread)?.own_time(compute_s)))
        };
        OwnTimes(computing_s.into_iter().filter_map(of_rank).collect())
    }

    /// Why the waiting inside most calls is not known. What is known then lies before and after the ranks' calls
    /// alone, and says nothing about who makes the others wait.
    pub(super) fn hides_waits(&self) -> Option<NotRecorded> {
        let causes = self.causes;
        if causes.unknown.contains(&Unknown::NoAttributes) {
            return Some(NotRecorded::Level0);
        }
        let (mut in_totals, mut in_calls) = (0, 0);
        for (number, ticks) in causes.profiles.of_lines.iter().flat_map(|profile| profile.all()) {
            match causes.contexts.get(number) {
                Context::Totals => in_totals += ticks,
                Context::Transfer(_) | Context::Waiting | Context::WaitingForUnknown => {
                    in_calls += ticks
                }
                _ => {}
            }
        }
        (in_totals > in_calls).then_some(NotRecorded::MostlyTotals)
    }

    /// Whether a line (or [`crate::causes::DELAYED_BY_UNKNOWN`]) belongs to the selected rank, if one is selected.
    pub(crate) fn concerns(&self, line: u32) -> bool {
        let rank = self.causes.lines.all.get(line as usize).map(|line| line.rank);
        self.rank.is_none_or(|selected| rank == Some(selected))
    }
}

/// Why it is not recorded who waited for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotRecorded {
    /// The run was recorded at level 0, without partners.
    Level0,
    /// Nearly all calls are kept only as totals.
    OnlyTotals,
    /// Most of the time in calls is in those that are kept only as totals.
    MostlyTotals,
}

/// What ranks did in the time that counts as their computation.
#[derive(Debug)]
pub struct OwnTimes(BTreeMap<u32, OwnTime>);

impl OwnTimes {
    /// Of a line's rank; computing if nothing else is known.
    pub fn on_line(&self, causes: &Causes, line: u32) -> OwnTime {
        let rank = causes.lines.all.get(line as usize).map(|line| line.rank);
        rank.and_then(|rank| self.0.get(&rank).copied()).unwrap_or_default()
    }
}
