//! Builds a table of [`Observations`] from recorded runs.

use crate::metrics::{ComputeMode, Metrics, Oversubscription, RankState};
use crate::trace::Run;

use super::error::ObservationsError;
use super::table::{
    CHI_MAX_S, CHI_MIN_S, CHI_S, FIGURES, FLOPS, LackOfCores, Observations, Origin, P, REP, RUN,
    RankTimes, Row, SUM_GAMMA_S, TAU_S,
};

/// The figures of one run that go into a table.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFigures {
    /// Name of the run directory.
    pub name: String,
    /// p: number of ranks that take part in the selection.
    pub p: u32,
    /// τ of the selection, seconds.
    pub tau_s: f64,
    pub ranks: Vec<RankTimes>,
    /// Floating-point operations, where counted.
    pub flops: Option<f64>,
    /// Parameters of the run.
    pub params: Vec<(String, String)>,
    /// Number of the repetition; `None` to number repetitions in order.
    pub rep: Option<u32>,
    /// How its ranks lacked cores.
    pub lack: Option<LackOfCores>,
}

/// Share of the ranks' time without a core from which it is notable.
const NOTABLE_SHARE: f64 = 0.05;

impl LackOfCores {
    fn from_metrics(metrics: &Metrics) -> Option<Self> {
        let shared = metrics.oversubscription.iter().find_map(|one| match one {
            Oversubscription::FewCores { ranks, cores, .. } => Some((*ranks, *cores)),
            Oversubscription::OneCore { ranks, .. } => Some((ranks.len(), 1)),
            Oversubscription::Waited { .. } => None,
        });
        let waited_share = metrics.share_off_cpu().filter(|share| *share >= NOTABLE_SHARE);
        (shared.is_some() || waited_share.is_some()).then_some(Self { shared, waited_share })
    }
}

/// Why a run cannot become a row of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableRun {
    /// Some ranks left no file.
    #[error("rank files are missing")]
    MissingFiles,
    /// This rank did not finish.
    #[error("rank {0} did not come to the end of MPI_Finalize")]
    Unfinished(u32),
    #[error("the selection has no length")]
    EmptySelection,
    /// This way of counting computation found none in the run.
    #[error("no computation was recorded")]
    NoComputation(ComputeMode),
    /// A parameter has the name of a figure.
    #[error("its parameter {0} has the name of a figure")]
    FigureName(String),
}

impl RunFigures {
    /// The figures of a run for the selection of `metrics`.
    ///
    /// # Errors
    /// See [`UnusableRun`].
    pub fn new(name: String, run: &Run, metrics: &Metrics) -> Result<Self, UnusableRun> {
        if !run.missing.is_empty() {
            return Err(UnusableRun::MissingFiles);
        }
        let unfinished = |rank: &&crate::metrics::RankMetrics| rank.state != RankState::Finalized;
        if let Some(rank) = metrics.ranks.iter().find(unfinished) {
            return Err(UnusableRun::Unfinished(rank.rank));
        }
        if metrics.efficiency.is_none() {
            return Err(UnusableRun::EmptySelection);
        }
        let params = run.parameters();
        if let Some((name, _)) = params.iter().find(|(name, _)| FIGURES.contains(&name.as_str())) {
            return Err(UnusableRun::FigureName(name.clone()));
        }
        let ranks: Vec<RankTimes> = metrics
            .participants()
            .map(|rank| RankTimes {
                rank: rank.rank,
                gamma_s: rank.compute_s,
                chi_s: metrics.elapsed_s - rank.compute_s,
            })
            .collect();
        if ranks.iter().all(|rank| rank.gamma_s <= 0.0) {
            return Err(UnusableRun::NoComputation(metrics.compute));
        }
        Ok(Self {
            name,
            p: u32::try_from(ranks.len()).unwrap_or(u32::MAX),
            tau_s: metrics.elapsed_s,
            ranks,
            flops: metrics.flops,
            params,
            rep: None,
            lack: LackOfCores::from_metrics(metrics),
        })
    }

    /// Σγ, seconds.
    pub fn sum_gamma_s(&self) -> f64 {
        self.ranks.iter().map(|rank| rank.gamma_s).sum()
    }

    fn agrees(&self, other: &Self) -> bool {
        self.p == other.p && self.params == other.params
    }
}

impl Observations {
    /// One row per run. Columns: `p`, `tau_s`, `sum_gamma_s`, `chi_s`, `chi_min_s`, `chi_max_s`,
    /// `flops` where counted, one per parameter, `rep`, `run`.
    ///
    /// # Errors
    /// There are no runs.
    pub fn from_runs(
        source: impl Into<String>,
        runs: &[RunFigures],
    ) -> Result<Self, ObservationsError> {
        let mut params: Vec<String> = Vec::new();
        for (name, _) in runs.iter().flat_map(|run| &run.params) {
            if !params.contains(name) {
                params.push(name.clone());
            }
        }
        let counted = runs.iter().any(|run| run.flops.is_some());
        let figures = [P, TAU_S, SUM_GAMMA_S, CHI_S, CHI_MIN_S, CHI_MAX_S].map(String::from);
        let names = figures
            .into_iter()
            .chain(counted.then(|| FLOPS.to_owned()))
            .chain(params.iter().cloned())
            .chain([REP.to_owned(), RUN.to_owned()])
            .collect();
        let rows = runs.iter().enumerate().map(|(index, run)| {
            let earlier = runs[..index].iter().filter(|other| other.agrees(run)).count();
            let rep = run.rep.unwrap_or(earlier as u32 + 1);
            let chi: Vec<f64> = run.ranks.iter().map(|rank| rank.chi_s).collect();
            let sum_gamma_s = run.sum_gamma_s();
            let mut cells = vec![
                run.p.to_string(),
                seconds(run.tau_s),
                seconds(sum_gamma_s),
                seconds(run.tau_s - sum_gamma_s / f64::from(run.p)),
                seconds(chi.iter().copied().fold(f64::INFINITY, f64::min)),
                seconds(chi.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            ];
            if counted {
                cells.push(run.flops.map_or_else(String::new, |flops| flops.to_string()));
            }
            let value = |name: &String| run.params.iter().find(|(other, _)| other == name);
            cells.extend(params.iter().map(|name| value(name).map_or("", |(_, v)| v).to_owned()));
            cells.extend([rep.to_string(), run.name.clone()]);
            let (origin, ranks) = (Origin::Run(run.name.clone()), run.ranks.clone());
            Row { origin, cells, ranks, lack: run.lack }
        });
        Self::new(source, names, rows.collect())
    }
}

/// Rounds to a nanosecond; no clock here resolves less.
fn seconds(value: f64) -> String {
    ((value * 1e9).round() / 1e9).to_string()
}
