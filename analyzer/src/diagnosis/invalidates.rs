//! What each finding takes from the others: one table.

use serde::Serialize;

use super::finding::{Finding, NotRecorded};

/// A group of figures that may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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

use Figures::{Delays, Efficiency, Predictions, Waits};

impl Finding {
    /// The figures that say little or nothing because of it.
    pub fn invalidates(&self) -> &'static [Figures] {
        match self {
            Self::Stuck => &[Efficiency, Waits, Delays, Predictions],
            Self::LackOfCores { decisive: true, .. } => &[Efficiency, Waits, Delays, Predictions],
            Self::WaitingNotRecorded { because: NotRecorded::MostlyTotals } => &[Delays],
            Self::WaitingNotRecorded { .. } => &[Waits, Delays],
            Self::UncertainWaits { .. } => &[Delays],
            Self::DamagedFiles { .. }
            | Self::NotBegun { .. }
            | Self::RanksMissing { .. }
            | Self::EndRequested
            | Self::Aborted { .. }
            | Self::Ended { .. }
            | Self::Crashed { .. }
            | Self::Unfinished { .. }
            | Self::Deadlock { .. }
            | Self::Hang { .. }
            | Self::ModeDoesNotFit { .. }
            | Self::LackOfCores { decisive: false, .. }
            | Self::UnequalPinning { .. }
            | Self::Efficiency(_)
            | Self::Transfer { .. }
            | Self::Waiting(_)
            | Self::SlowIterations { .. }
            | Self::SlowHost { .. }
            | Self::Delay(_)
            | Self::NoMainDelay { .. }
            | Self::Unattributed { .. }
            | Self::InTurn { .. }
            | Self::Overlap { .. }
            | Self::LosesMost { .. }
            | Self::Asleep(_) => &[],
        }
    }

    /// The figures that it is about: it is not stated where they are invalid.
    pub(super) fn is_about(&self) -> &'static [Figures] {
        match self {
            Self::Efficiency(_) | Self::LosesMost { .. } | Self::Asleep(_) => &[Efficiency],
            Self::Transfer { .. } | Self::Waiting(_) | Self::Overlap { .. } => &[Waits],
            Self::SlowIterations { .. }
            | Self::SlowHost { .. }
            | Self::Delay(_)
            | Self::NoMainDelay { .. }
            | Self::Unattributed { .. }
            | Self::InTurn { .. } => &[Delays],
            Self::UncertainWaits { .. } | Self::WaitingNotRecorded { .. } => &[Waits],
            _ => &[],
        }
    }
}
