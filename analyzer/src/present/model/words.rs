//! Words for errors and warnings of models, which name the options of `gammachi model`.

use crate::models::evidence::MAX_FACTOR;
use crate::models::regression::{HeldBack, Prediction, PredictionWarning, RegressionError};
use crate::present::quantity::percent;

/// Why a model cannot be fitted or evaluated: the option or place, what is wrong, and what to do.
pub fn error_sentence(error: &RegressionError) -> String {
    match error {
        RegressionError::Basis(error) => format!("--basis: {error}"),
        RegressionError::UnknownName { name, .. } => format!(
            "--basis: {error}; add it to --vars where the table has a column of that name, or give \
             its value with --const {name}=…"
        ),
        RegressionError::NoValue { .. } => {
            format!("{error}; change the column, or leave the point out (--holdout)")
        }
        RegressionError::ConstantVariable { variable, value, .. } => {
            format!("{error}. Leave it out of --vars and give it as --const {variable}={value}")
        }
        RegressionError::UnknownVariable { variable, known } => {
            format!("--two-step: {variable} is not among --vars {}", known.join(","))
        }
        RegressionError::FewValues { .. } => format!("--two-step: {error}"),
        RegressionError::NothingToHoldBack => {
            format!("--compare: {error}, or name points with --holdout")
        }
        RegressionError::Observations(_)
        | RegressionError::TooFewPoints { .. }
        | RegressionError::RankCount { .. }
        | RegressionError::NotDetermined { .. }
        | RegressionError::Solver { .. } => error.to_string(),
    }
}

/// Describes which points were held back.
pub(super) fn held_back(what: HeldBack) -> &'static str {
    match what {
        HeldBack::Named => "the points of --holdout",
        HeldBack::Largest => "the largest values of each variable in turn",
    }
}

/// All warnings of a prediction, separated by semicolons.
pub(super) fn warnings(prediction: &Prediction) -> String {
    prediction.warnings.iter().map(warning).collect::<Vec<_>>().join("; ")
}

fn warning(warning: &PredictionWarning) -> String {
    match warning {
        PredictionWarning::Beyond { variable, times, assumes_regime } => {
            let assumes = match assumes_regime {
                true => "; assumes that nothing changes its regime beyond that",
                false => "",
            };
            format!("predicted at {} times the largest {variable} measured{assumes}", short(*times))
        }
        PredictionWarning::Below { variable, times } => {
            format!("predicted at 1/{} of the smallest {variable} measured", short(*times))
        }
        PredictionWarning::Undecided => {
            "the fitted points do not determine this value: it depends on \
                                         columns that they cannot tell apart"
                .into()
        }
        PredictionWarning::TooWide => format!(
            "only a range can be predicted: its ends lie a factor of more than {MAX_FACTOR} from its middle, \
             because the points do not tell how the time grows; measure at twice the largest rank count"
        ),
        PredictionWarning::NotPositive => {
            "the model's time is not positive here: the model is valid only nearer to the measured points"
                .into()
        }
        PredictionWarning::PoorFit(misfit) => format!(
            "no prediction: the model misses the points it was fitted to by {} (root mean square); \
             add columns (--basis, --dictionary) or a variable (--vars)",
            percent(*misfit)
        ),
        PredictionWarning::IntervalBelowZero => "the interval reaches below 0".into(),
    }
}

/// Two significant digits without a trailing zero.
fn short(value: f64) -> String {
    let text = if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}
