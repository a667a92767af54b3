//! One pass over the calls for several selections: sums by rank, counters, call sites and call
//! paths. If the analysis is divided, all processes get the sums and counters, and the first gets
//! the sites and paths.

use crate::analysis::{Analysis, CallObserver};
use crate::trace::Run;

use super::compute_mode::compute_mode;
use super::counters::{CounterMetrics, Counts, Readings};
use super::files::{self, Files, RankFilesPass};
use super::openmp::{self, RankSums, RankTeamsPass, Teams};
use super::paths::{self, Paths, RankPaths};
use super::resolve::Resolved;
use super::sites::{RankSites, SiteMetrics, Sites};
use super::sums::{RankPass, Sums};

/// The results of the pass.
pub(super) struct Passes {
    /// For each selection, the sums of each rank.
    pub sums: Vec<Vec<RankPass>>,
    /// For each selection, the counter values of each rank.
    counts: Vec<Vec<Option<Counts>>>,
    /// Calls of the first selection by call site.
    pub sites: Option<SiteMetrics>,
    /// Parallel regions of each rank in the first selection; empty if they were not recorded.
    pub openmp: Vec<RankSums>,
    /// Calls on files of each rank in the first selection; empty if they were not recorded.
    pub files: Vec<files::RankSums>,
}

impl Passes {
    /// Reads the calls for these selections, without call sites.
    pub fn new(analysis: &Analysis, selections: &[&Resolved]) -> Self {
        Self::read(analysis, selections, (None, (None, None)), (&(), |()| ())).0
    }

    /// Reads the calls for these selections and for another observer; what is kept of it belongs to the
    /// ranks that are read here.
    pub fn with_observer<'a, O: CallObserver<'a>, T: Send>(
        analysis: &Analysis<'a>,
        selections: &[&Resolved],
        observer: &O,
        keep: impl Fn(O::OfRank) -> T + Sync,
    ) -> (Self, Vec<T>) {
        let has_sites = analysis.run.ranks.iter().any(|rank| rank.file.fixed.level > 0);
        let sites = selections.first().filter(|_| has_sites);
        let sites = sites.map(|selection| Sites { selection });
        let teams = selections.first().map(|selection| Teams { selection });
        let files = selections.first().map(|selection| Files { selection });
        Self::read(analysis, selections, (sites, (teams, files)), (observer, keep))
    }

    fn read<'a, O: CallObserver<'a>, T: Send>(
        analysis: &Analysis<'a>,
        selections: &[&Resolved],
        (sites, (teams, files)): (Option<Sites>, (Option<Teams>, Option<Files>)),
        (observer, keep): (&O, impl Fn(O::OfRank) -> T + Sync),
    ) -> (Self, Vec<T>) {
        let has_counters = analysis.run.ranks.iter().any(|rank| !rank.facts.counters.is_empty());
        let sums = Sums {
            selections: selections.to_vec(),
            mode: compute_mode(analysis.run, &mut Vec::new()),
        };
        let readings = has_counters.then(|| Readings { selections: selections.to_vec() });
        let paths = sites.as_ref().filter(|_| paths::are_recorded(analysis.run));
        let paths = paths.map(|sites| Paths { selection: sites.selection });
        let teams = teams.filter(|_| openmp::is_recorded(analysis.run));
        let files = files.filter(|_| files::is_recorded(analysis.run));
        let all = ((sums, (readings, (sites, (paths, (teams, files))))), observer);
        let of_ranks =
            analysis.calls_then(&all, |((sums, (readings, (sites, (paths, parts)))), other)| {
                let (teams, files) = parts;
                let counts = readings.into_iter().flat_map(|readings| readings.finish());
                let figures = (sums.finish(), counts.collect::<Vec<_>>());
                let sites = (sites.map(RankSites::finish), paths.map(RankPaths::finish));
                let parts = (teams.map(RankTeamsPass::finish), files.map(RankFilesPass::finish));
                let sites = (sites, parts);
                (figures, sites, keep(other))
            });
        let mut passes = Self {
            sums: selections.iter().map(|_| Vec::new()).collect(),
            counts: selections.iter().map(|_| Vec::new()).collect(),
            sites: None,
            openmp: Vec::new(),
            files: Vec::new(),
        };
        let (mut figures, mut others) = (Vec::new(), Vec::with_capacity(of_ranks.len()));
        let (mut sites, mut paths) = (Vec::new(), Vec::new());
        let (mut teams, mut files) = (Vec::new(), Vec::new());
        for (of_rank, ((sites_of_rank, paths_of_rank), parts), other) in of_ranks {
            teams.extend(parts.0);
            files.extend(parts.1);
            figures.push(of_rank);
            sites.extend(sites_of_rank);
            paths.extend(paths_of_rank);
            others.push(other);
        }
        let processes = &analysis.processes;
        passes.openmp = processes.join(teams);
        passes.files = processes.join(files);
        for (sums, counts) in processes.join(figures) {
            passes.sums.iter_mut().zip(sums).for_each(|(all, one)| all.push(one));
            passes.counts.iter_mut().zip(counts).for_each(|(all, one)| all.push(one));
        }
        let sites = (processes.join_at_first(sites), processes.join_at_first(paths));
        passes.sites = SiteMetrics::from_ranks(analysis.run, analysis.timeline, sites);
        (passes, others)
    }

    /// The counters of the selection at an index.
    pub fn counters(&self, run: &Run, index: usize) -> Vec<CounterMetrics> {
        CounterMetrics::of_run(run, &self.counts[index])
    }
}
