//! Groups of figures that a finding may make invalid.

use serde::{Deserialize, Serialize};

/// A group of figures that may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Figures {
    /// Parallel efficiency and its factors.
    Efficiency,
    /// Who waited for whom.
    Waits,
    /// Who delayed whom, and what that cost.
    Delays,
    /// What changes would save.
    Predictions,
}

impl Figures {
    pub(super) const ALL: &'static [Self] =
        &[Self::Efficiency, Self::Waits, Self::Delays, Self::Predictions];
}
