//! One pass over the calls for several selections: sums by rank, counters, call sites and call
//! paths.

use crate::analysis::{Analysis, CallObserver};
use crate::trace::Run;

use super::CounterMetrics;
use super::counters::{Counts, Readings};
use super::paths::{self, Paths};
use super::resolve::Resolved;
use super::sites::{SiteMetrics, Sites};
use super::sums::{RankPass, Sums};

/// The results of the pass.
pub(super) struct Passes {
    /// For each selection, the sums of each rank.
    pub sums: Vec<Vec<RankPass>>,
    /// For each selection, the counter values of each rank.
    counts: Vec<Vec<Option<Counts>>>,
    /// Calls of the first selection by call site.
    pub sites: Option<SiteMetrics>,
}

impl Passes {
    /// Reads the calls for these selections, without call sites.
    pub fn new(analysis: &Analysis, selections: &[&Resolved]) -> Self {
        Self::of(analysis, selections, None, &()).0
    }

    /// Reads the calls for these selections and for another observer.
    pub fn with_observer<'a, O: CallObserver<'a>>(
        analysis: &Analysis<'a>,
        selections: &[&Resolved],
        observer: &O,
    ) -> (Self, Vec<O::OfRank>) {
        let has_sites = analysis.run.ranks.iter().any(|rank| rank.file.fixed.level > 0);
        let sites = selections.first().filter(|_| has_sites);
        Self::of(analysis, selections, sites.map(|selection| Sites { selection }), observer)
    }

    fn of<'a, O: CallObserver<'a>>(
        analysis: &Analysis<'a>,
        selections: &[&Resolved],
        sites: Option<Sites>,
        observer: &O,
    ) -> (Self, Vec<O::OfRank>) {
        let has_counters = analysis.run.ranks.iter().any(|rank| !rank.facts.counters.is_empty());
        let sums = Sums {
            selections: selections.to_vec(),
            mode: super::compute_mode(analysis.run, &mut Vec::new()),
        };
        let readings = has_counters.then(|| Readings { selections: selections.to_vec() });
        let paths = sites.as_ref().filter(|_| paths::are_recorded(analysis.run));
        let paths = paths.map(|sites| Paths { selection: sites.selection });
        let of_ranks = analysis.calls(&((sums, (readings, (sites, paths))), observer));
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

    /// The counters of the selection at an index.
    pub fn counters(&self, run: &Run, index: usize) -> Vec<CounterMetrics> {
        CounterMetrics::of_run(run, &self.counts[index])
    }
}
