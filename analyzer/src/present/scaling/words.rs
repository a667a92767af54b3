//! Words for the assumptions of predictions, for warnings and for errors, which name the options of `gammachi scaling`.

use crate::models::evidence::{MAX_FACTOR, MIN_POINTS};
use crate::models::scaling::{Fit, ScalingError, Unsupported, Warning};

use super::super::quantity::count;

/// What predictions beyond the points assume; `None` if there are none.
pub(super) fn assumption(fit: &Fit) -> Option<String> {
    let largest = fit.largest_measured();
    let beyond = fit.predictions.iter().any(|p| p.p > largest && p.tau_s.is_ok());
    beyond.then(|| {
        format!(
            "assumes no change of regime beyond p = {}, the largest measured: another \
             network level, another algorithm of a collective, messages past the eager limit",
            count(u64::from(largest))
        )
    })
}

/// Why a time is not predicted, and what to measure.
pub(super) fn unsupported(why: Unsupported) -> String {
    match why {
        Unsupported::FewRankCounts(next) => format!(
            "cannot be predicted: {MIN_POINTS} rank counts are needed; measure p = {}",
            count(u64::from(next))
        ),
        Unsupported::TooWide { beyond, next } => format!(
            "beyond p = {} only an interval can be given (wider than a factor of {MAX_FACTOR}): the measured points \
             do not constrain how the time grows. Measure p = {} next",
            count(u64::from(beyond)),
            count(u64::from(next))
        ),
        Unsupported::UnknownWork => {
            "the work there is unknown: it is not proportional to p in the data, and --work does not give it as an \
             expression of p"
                .into()
        }
        Unsupported::NotPositive => {
            "the three terms give no time above 0 there; --form evidence does".into()
        }
        Unsupported::NoModel => "the three terms cannot be fitted".into(),
    }
}

/// Why nothing can be fitted: the option or table, what is wrong, and what to do.
pub fn error_sentence(error: &ScalingError) -> String {
    match error {
        ScalingError::Expression(error) => format!("--work: {error}"),
        ScalingError::Unclear { .. } => format!(
            "{error}: say how the work grows, for example --work \"N^3\" (weak scaling), or --work 1 \
             when it stays the same (strong scaling)"
        ),
        ScalingError::NoReference { p1: Some(p1), known, .. } if !known.is_empty() => {
            format!("--p1 {p1}: {error}")
        }
        ScalingError::FewPoints(points) => {
            format!("--points {points}: at least two points are needed")
        }
        ScalingError::Observations(_)
        | ScalingError::NoWork { .. }
        | ScalingError::NoReference { .. } => error.to_string(),
    }
}

/// What a reader should know before believing a figure.
pub(super) fn warning(warning: &Warning) -> String {
    let list = |all: &[u32]| all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match warning {
        Warning::TooFewPoints(number, anchor_helps) => format!(
            "too few points: {number} rank {} left to fit, and three coefficients need three; measure \
             more{}",
            if *number == 1 { "count is" } else { "counts are" },
            if *anchor_helps { ", or add --anchor-one (assumes ε'(1) = 1)" } else { "" }
        ),
        Warning::ExactFit => {
            "three points and three coefficients: the curve passes through all of \
                              them, so R says nothing; a fourth rank count would test it"
                .into()
        }
        Warning::NoNoise => "no intervals: neither scatter about the fit nor repetitions show the \
                             noise; measure a fourth rank count, or repeat"
            .into(),
        Warning::OutOfRange(all) => {
            let all: Vec<String> = all.iter().map(|(p, eps)| format!("{p} ({eps:.3})")).collect();
            format!("left out, ε' not between 0.1 and 1: p = {}", all.join(", "))
        }
        Warning::BelowP1(all) => format!("left out, below p1: p = {}", list(all)),
        Warning::NegativeA(c0) => format!(
            "1+c0 = {:.3} is below 0: the model has negative computation; neither interpret it nor predict with it",
            1.0 + c0
        ),
        Warning::NegativeC1(c1) => format!(
            "c1 = {c1:.2e} is below 0: lost time independent of p would be negative; do not interpret c1 and χ', \
             although τ and p_c are often still predicted well"
        ),
        Warning::NoMinimum(c2) => format!(
            "c2 = {c2:.2e} is not above 0: within the model time never stops falling, so there is no \
             p_c and no τ_min"
        ),
        Warning::UnsupportedPc => {
            "the interval of c2 includes 0: p_c and τ_min are not supported by these data".into()
        }
        Warning::FarPc(p_c, largest) => format!(
            "p_c = {p_c:.0} lies {:.1} times beyond the largest rank count fitted, {largest}",
            p_c / f64::from(*largest)
        ),
        Warning::AnchorMeasured => "--anchor-one adds nothing: p = 1 was measured".into(),
        Warning::Anchored => "ε'(1) = 1 is assumed, not measured".into(),
        Warning::NotMeasured(all) => format!("--points: not measured: p = {}", list(all)),
        Warning::FarPrediction(p, times) => format!(
            "p = {p} is {times:.1} times the largest rank count fitted: effects that only appear beyond it (another \
             network level, another algorithm) are not covered by the interval"
        ),
        Warning::FlopsChange(change) => format!(
            "the counted operations change by {:.0} % with p, but the work is taken as constant; if it grows, give \
             it with --work",
            100.0 * change
        ),
        Warning::WeakScaling => {
            "weak scaling: p_c is where work per time is largest; there is no τ_min".into()
        }
    }
}
