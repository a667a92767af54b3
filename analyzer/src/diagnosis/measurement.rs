//! What is wrong with the measurement itself. A kind has all but its words here: evidence, condition, the figures that it
//! makes invalid, and how to record better.

use serde::{Deserialize, Serialize};

use crate::metrics::ComputeMode;

use super::evidence::Evidence;
use super::figures::Figures;

/// A measurement that says little.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Measurement {
    /// What counts as computing is a small part of what the program does.
    ModeDoesNotFit {
        /// The mode.
        mode: ComputeMode,
        /// Share of the ranks' time in own code that does not count.
        share: f64,
    },
}

impl Measurement {
    /// What is wrong, the worst first.
    pub(super) fn all(of: &Evidence) -> impl Iterator<Item = Self> {
        [mode_does_not_fit(of)].into_iter().flatten()
    }

    /// The figures that say little because of it.
    pub fn invalidates(&self) -> &'static [Figures] {
        match self {
            Self::ModeDoesNotFit { .. } => &[],
        }
    }

    /// The figures that it is about: it is not stated where they are invalid.
    pub(super) fn is_about(&self) -> &'static [Figures] {
        match self {
            Self::ModeDoesNotFit { .. } => &[],
        }
    }

    /// Options of `gammachi run` with which a new recording does not have it.
    pub fn better_options(&self) -> &'static [&'static str] {
        match self {
            Self::ModeDoesNotFit { .. } => &["--compute", "outside"],
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
