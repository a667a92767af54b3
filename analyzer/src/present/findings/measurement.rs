//! Sentences on the measurement itself, and on how to record better.

use crate::diagnosis::Measurement;
use crate::metrics::ComputeMode;
use crate::present::quantity::percent;

pub(super) fn sentence(found: &Measurement) -> String {
    match found {
        Measurement::ModeDoesNotFit { mode, share } => {
            let (asked, what) = mode_words(*mode);
            format!(
                "--compute {asked} does not suit this program: it spends {} of its time outside MPI and outside {what}, \
                 which this mode does not count as computation.",
                percent(*share)
            )
        }
        Measurement::RecorderTooCostly { share, rank, of_rank, .. } => format!(
            "The recorder took {} of the ranks' time ({} of rank {rank}'s): efficiency and predictions are unreliable.",
            percent(*share),
            percent(*of_rank)
        ),
    }
}

/// What a recording with the better options is good for.
pub(super) fn purpose(found: &Measurement) -> &'static str {
    match found {
        Measurement::ModeDoesNotFit { .. } => "counts all time outside MPI as computation",
        Measurement::RecorderTooCostly { level: 2.., .. } => "costs less: no call paths",
        Measurement::RecorderTooCostly { counters: true, .. } => "costs less without --counters",
        Measurement::RecorderTooCostly { level: 1, .. } => {
            "costs less: no partners and communicators"
        }
        Measurement::RecorderTooCostly { .. } => "costs less: only totals",
    }
}

/// The option for a mode, and what counts then.
fn mode_words(mode: ComputeMode) -> (&'static str, &'static str) {
    match mode {
        ComputeMode::Outside => ("outside", "nothing"),
        ComputeMode::Blas => ("blas", "BLAS and LAPACK"),
        ComputeMode::Regions => ("regions", "its regions"),
    }
}
