//! What is wrong with the measurement itself. A kind has all but its words here: evidence, condition, the figures that it
//! makes invalid, and how to record better.

use serde::{Deserialize, Serialize};

use crate::metrics::{CallMetrics, ComputeMode, RankMetrics};
use crate::trace::RankTrace;

use super::evidence::Evidence;
use super::figures::Figures;

/// A measurement that says little.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Measurement {
    /// What counts as computing is a small part of what the program does.
    ModeDoesNotFit {
        /// The mode.
        mode: ComputeMode,
        /// Share of the ranks' time in own code that does not count.
        share: f64,
    },
    /// The recorder takes a large part of the time that it measures: at least a tenth of a rank's time, where the program
    /// does not pause recording.
    RecorderTooCostly {
        /// Share of the ranks' time.
        share: f64,
        /// The rank with most of it.
        rank: u32,
        /// Share of that rank's time.
        of_rank: f64,
        /// The highest detail level of a rank.
        level: u8,
        /// Whether counters of processor or kernel were read.
        counters: bool,
    },
}

impl Measurement {
    /// What is wrong, the worst first.
    pub(super) fn all(of: &Evidence) -> impl Iterator<Item = Self> {
        [mode_does_not_fit(of), recorder_too_costly(of)].into_iter().flatten()
    }

    /// The figures that say little because of it. It is not stated where another finding makes them invalid.
    pub fn invalidates(&self) -> &'static [Figures] {
        match self {
            Self::ModeDoesNotFit { .. } => &[],
            Self::RecorderTooCostly { .. } => &[Figures::Efficiency, Figures::Predictions],
        }
    }

    /// Options of `gammachi run` with which a new recording does not have it.
    pub fn better_options(&self) -> &'static [&'static str] {
        match self {
            Self::ModeDoesNotFit { .. } => &["--compute", "outside"],
            Self::RecorderTooCostly { level, counters, .. } => match (level, counters) {
                (2.., _) => &["--level", "1"],
                (_, true) => &[],
                (1, false) => &["--level", "0"],
                (0, false) => &["--profile-only"],
            },
        }
    }
}

/// A `--compute` mode that counts only little of the program as computing.
fn mode_does_not_fit(of: &Evidence) -> Option<Measurement> {
    /// Share of p·τ in own code that does not count as computing from which the mode does not fit.
    const MISFIT_SHARE: f64 = 0.5;
    let metrics = of.metrics;
    let total_s = metrics.elapsed_s * metrics.participants().count() as f64;
    let other_s: f64 = metrics.participants().map(|rank| rank.other_s).sum();
    let misfit = metrics.compute != ComputeMode::Outside && total_s > 0.0;
    (misfit && other_s > MISFIT_SHARE * total_s)
        .then(|| Measurement::ModeDoesNotFit { mode: metrics.compute, share: other_s / total_s })
}

/// A recorder that takes a large part of a rank's time.
fn recorder_too_costly(of: &Evidence) -> Option<Measurement> {
    /// Share of a rank's time from which the recorder changes what it measures.
    const COSTLY_SHARE: f64 = 0.1;
    /// Seconds from which it matters.
    const COSTLY_S: f64 = 0.01;
    let metrics = of.metrics;
    // Pauses that the program asks for, and what another tool did, count as the recorder's time.
    let pauses = |call: &CallMetrics| call.function == "MPI_Pcontrol";
    let is_own =
        !metrics.calls.iter().any(pauses) && !of.run.ranks.iter().any(RankTrace::is_imported);
    let ranks: Vec<&RankMetrics> = metrics.participants().collect();
    let worst = ranks.iter().max_by(|a, b| a.recorder_s.total_cmp(&b.recorder_s))?;
    let elapsed_s = metrics.elapsed_s;
    let is_costly = worst.recorder_s >= COSTLY_S && worst.recorder_s >= COSTLY_SHARE * elapsed_s;
    (is_own && is_costly).then(|| Measurement::RecorderTooCostly {
        share: ranks.iter().map(|rank| rank.recorder_s).sum::<f64>()
            / (elapsed_s * ranks.len() as f64),
        rank: worst.rank,
        of_rank: worst.recorder_s / elapsed_s,
        level: of.run.ranks.iter().map(|rank| rank.file.fixed.level).max().unwrap_or(0),
        counters: !metrics.counters.is_empty(),
    })
}
