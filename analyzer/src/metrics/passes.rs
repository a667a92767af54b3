//! What one pass over the calls gives for several selections: sums by rank, and counters.

use crate::analysis::{Analysis, CallObserver};
use crate::trace::Run;

use super::CounterMetrics;
use super::counters::{Counts, Readings};
use super::paths::{self, Paths};
use super::resolve::Resolved;
use super::sites::{SiteMetrics, Sites};
use super::sums::{RankPass, Sums};

/// What the pass gave.
pub(super) struct Passes {
    /// For each selection the sums of each rank.
    pub sums: Vec<Vec<RankPass>>,
    /// For each selection what the counters of each rank counted.
    counts: Vec<Vec<Option<Counts>>>,
    /// Calls of the first selection by where they were made.
    pub sites: Option<SiteMetrics>,
}

impl Passes {
    /// Of selections, without call sites.
    pub fn new(analysis: &Analysis, selections: &[&Resolved]) -> Self {
        Self::of(analysis, selections, None, &()).0
    }

    /// Of selections, with another observer beside.
    pub fn beside<'a, O: CallObserver<'a>>(
        analysis: &Analysis<'a>,
        selections: &[&Resolved],
        beside: &O,
    ) -> (Self, Vec<O::OfRank>) {
        let says_sites = analysis.run.ranks.iter().any(|rank| rank.file.fixed.level > 0);
        let sites = selections.first().filter(|_| says_sites);
        Self::of(analysis, selections, sites.map(|selection| Sites { selection }), beside)
    }

    fn of<'a, O: CallObserver<'a>>(
        analysis: &Analysis<'a>,
        selections: &[&Resolved],
        sites: Option<Sites>,
        beside: &O,
    ) -> (Self, Vec<O::OfRank>) {
        let has_counters = analysis.run.ranks.iter().any(|rank| !rank.facts.counters.is_empty());
        let sums = Sums {
            selections: selections.to_vec(),
            mode: super::compute_mode(analysis.run, &mut Vec::new()),
        };
        let readings = has_counters.then(|| Readings { selections: selections.to_vec() });
        let paths = sites.as_ref().filter(|_| paths::are_told(analysis.run));
        let paths = paths.map(|sites| Paths { selection: sites.selection });
        let of_ranks = analysis.calls(&((sums, (readings, (sites, paths))), beside));
        let mut passes = Self {
            sums: selections.iter().map(|_| Vec::new()).collect(),
            counts: selections.iter().map(|_| Vec::new()).collect(),
            sites: None,
        };
        let (mut others, mut sites) = (Vec::with_capacity(of_ranks.len()), Vec::new());
        let mut paths = Vec::new();
        for ((sums, (readings, (sites_of_rank, paths_of_rank))), other) in of_ranks {
            passes.sums.iter_mut().zip(sums.finish()).for_each(|(all, one)| all.push(one));
            let counts = readings.into_iter().flat_map(|readings| readings.finish());
            passes.counts.iter_mut().zip(counts).for_each(|(all, one)| all.push(one));
            sites.extend(sites_of_rank);
            paths.extend(paths_of_rank);
            others.push(other);
        }
        passes.sites = SiteMetrics::of(analysis.run, analysis.timeline, (sites, paths));
        (passes, others)
    }

    /// The counters of a selection, by its place.
    pub fn counters(&self, run: &Run, place: usize) -> Vec<CounterMetrics> {
        CounterMetrics::of_run(run, &self.counts[place])
    }
}
