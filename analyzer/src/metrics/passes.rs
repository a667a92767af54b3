//! What one pass over the calls gives for several selections: sums by rank, and counters.

use crate::analysis::{Analysis, CallObserver};
use crate::trace::Run;

use super::CounterMetrics;
use super::counters::{Counts, Readings};
use super::resolve::Resolved;
use super::sums::{RankPass, Sums};

/// What the pass gave.
pub(super) struct Passes {
    /// For each selection the sums of each rank.
    pub sums: Vec<Vec<RankPass>>,
    /// For each selection what the counters of each rank counted.
    counts: Vec<Vec<Option<Counts>>>,
}

impl Passes {
    /// Of selections.
    pub fn new(analysis: &Analysis, selections: &[&Resolved]) -> Self {
        Self::beside(analysis, selections, &()).0
    }

    /// Of selections, with another observer beside.
    pub fn beside<'a, O: CallObserver<'a>>(
        analysis: &Analysis<'a>,
        selections: &[&Resolved],
        beside: &O,
    ) -> (Self, Vec<O::OfRank>) {
        let has_counters = analysis.run.ranks.iter().any(|rank| !rank.facts.counters.is_empty());
        let sums = Sums {
            selections: selections.to_vec(),
            mode: super::compute_mode(analysis.run, &mut Vec::new()),
        };
        let readings = has_counters.then(|| Readings { selections: selections.to_vec() });
        let of_ranks = analysis.calls(&((sums, readings), beside));
        let mut passes = Self {
            sums: selections.iter().map(|_| Vec::new()).collect(),
            counts: selections.iter().map(|_| Vec::new()).collect(),
        };
        let mut others = Vec::with_capacity(of_ranks.len());
        for ((sums, readings), other) in of_ranks {
            passes.sums.iter_mut().zip(sums.finish()).for_each(|(all, one)| all.push(one));
            let counts = readings.into_iter().flat_map(|readings| readings.finish());
            passes.counts.iter_mut().zip(counts).for_each(|(all, one)| all.push(one));
            others.push(other);
        }
        (passes, others)
    }

    /// The counters of a selection, by its place.
    pub fn counters(&self, run: &Run, place: usize) -> Vec<CounterMetrics> {
        CounterMetrics::of_run(run, &self.counts[place])
    }
}
