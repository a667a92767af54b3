//! What predictions rest on, in words.

use crate::models::evidence::{LEAST_POINTS, WIDEST};
use crate::models::scaling::{Fit, Unsupported};

use super::super::quantity::count;

/// What every prediction beyond the points assumes; `None` where none was asked for.
pub(super) fn assumption(fit: &Fit) -> Option<String> {
    let largest = fit.largest_measured();
    let beyond = fit.predictions.iter().any(|p| p.p > largest && p.tau_s.is_ok());
    beyond.then(|| {
        format!(
            "assumes that nothing changes its regime beyond p = {}, the largest measured: another \
             network level, another algorithm of a collective, messages past the eager limit",
            count(u64::from(largest))
        )
    })
}

/// Why a time is not predicted, and what to measure.
pub(super) fn unsupported(why: Unsupported) -> String {
    match why {
        Unsupported::FewRankCounts(next) => format!(
            "cannot be predicted: {LEAST_POINTS} rank counts are needed; measure p = {}",
            count(u64::from(next))
        ),
        Unsupported::TooWide { beyond, next } => format!(
            "cannot be predicted beyond p = {}: the ends of the 90 % interval lie a factor of more than \
             {WIDEST} apart; measure p = {}",
            count(u64::from(beyond)),
            count(u64::from(next))
        ),
        Unsupported::UnknownWork => {
            "the work there is not known: it is proportional to p neither in the \
                                     data nor given by --work as an expression of p"
                .into()
        }
        Unsupported::NotPositive => {
            "the three terms have no time above 0 there; --form evidence has".into()
        }
        Unsupported::NoModel => "the three terms cannot be fitted".into(),
    }
}
