//! The causes of waiting with everything that is needed to judge and show them.

use std::collections::BTreeMap;

use crate::causes::{ALL_WAITS, Causes, Tree, WaitFilter};
use crate::metrics::{CpuTime, OwnTime};
use crate::replay::NoIdeal;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// The causes with everything that is needed to show them.
#[derive(Debug, Clone, Copy)]
pub struct Why<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its timeline.
    pub timeline: &'a GlobalTimeline,
    /// The causes found.
    pub causes: &'a Causes<'a>,
    /// The run's time on an ideal network over its own.
    pub ideal: Result<f64, NoIdeal>,
    /// If set, only waits of and for this rank of MPI_COMM_WORLD are shown.
    pub rank: Option<u32>,
    /// The selected waits.
    pub choice: &'a WaitFilter,
}

impl Why<'_> {
    /// The efficiency of the selected iteration or region, else of the run.
    pub fn tree(&self) -> Option<Tree> {
        let WaitFilter { region, iteration } = self.choice;
        if let (Some(number), Some(phase)) = (*iteration, self.causes.phases.first()) {
            return phase.tree_of(number, self.run, self.causes);
        }
        match region {
            Some(name) => {
                let mut regions = self.causes.regions.all.iter();
                regions.find(|region| region.name == *name)?.tree(self.run)
            }
            None => self.causes.tree(self.run, self.ideal.ok()),
        }
    }

    /// Serialisation and transfer, whose product is the communication efficiency; `None` without a replay.
    pub fn serialisation_and_transfer(&self) -> Option<(f64, f64)> {
        self.tree().and_then(|tree| tree.serialisation.zip(tree.transfer))
    }

    /// Whether all waits are selected, not only those of a region or an iteration.
    pub fn is_of_all(&self) -> bool {
        *self.choice == ALL_WAITS
    }

    /// T of the shares of the selected iteration or region, else of the run.
    pub fn elapsed(&self) -> i64 {
        let WaitFilter { region, iteration } = self.choice;
        let phase = self.causes.phases.first();
        let iteration = iteration.zip(phase).filter(|(at, phase)| *at < phase.iterations.len());
        let mut regions = self.causes.regions.all.iter();
        let of_region = |name: &String| regions.find(|of| of.name == *name).map(|of| of.ticks);
        iteration
            .map(|(at, phase)| phase.ticks_of(at))
            .or_else(|| region.as_ref().and_then(of_region))
            .unwrap_or(self.causes.whole.1 - self.causes.whole.0)
    }

    /// Ticks for which ranks waited in the selected iteration or region, else in the run.
    pub fn ranks_waited(&self) -> i64 {
        let selected = self.causes.ranks_waited();
        let phase = self.causes.phases.first();
        let iteration = self.choice.iteration.zip(phase);
        let iteration = iteration.filter(|(at, phase)| *at < phase.iterations.len());
        // A wait is selected by its end, and those of further threads may begin before the iteration.
        let inside = iteration.map(|(at, phase)| phase.waited_in(at, self.causes));
        match &self.choice.region {
            None => inside.unwrap_or(selected),
            Some(_) => inside.map_or(selected, |inside| inside.min(selected)),
        }
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

    /// Whether a line (or [`crate::causes::DELAYED_BY_UNKNOWN`]) belongs to the selected rank, if one is selected.
    pub(crate) fn concerns(&self, line: u32) -> bool {
        let rank = self.causes.lines.all.get(line as usize).map(|line| line.rank);
        self.rank.is_none_or(|selected| rank == Some(selected))
    }
}

/// What ranks did in the time that counts as their computation.
#[derive(Debug)]
pub struct OwnTimes(BTreeMap<u32, OwnTime>);

impl OwnTimes {
    /// Of a line's rank; computing if nothing else is known.
    pub fn of(&self, causes: &Causes, line: u32) -> OwnTime {
        let rank = causes.lines.all.get(line as usize).map(|line| line.rank);
        rank.and_then(|rank| self.0.get(&rank).copied()).unwrap_or_default()
    }
}
