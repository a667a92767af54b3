//! Words for errors and warnings of models, which name the options of `gammachi model`.

use crate::models::evidence::MAX_FACTOR;
use crate::models::regression::{
    Findings, HeldBack, Prediction, PredictionWarning, RegressionError,
};
use crate::present::contradiction;
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

/// A sentence on each measured time that contradicts the others, with its reason.
pub(super) fn contradictions(findings: &Findings) -> Vec<String> {
    let variable = &findings.model.parts[0].points.variables[0];
    let all = findings.contradictions().into_iter();
    let sentence = |(part, of, lack): (&str, _, _)| {
        let sentence = contradiction::sentence(variable, &of, lack);
        if part.is_empty() { sentence } else { format!("{part}: {sentence}") }
    };
    all.map(sentence).collect()
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
                true => "; assumes no change of regime beyond that",
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
            "only an interval can be given (wider than a factor of {MAX_FACTOR}): the measured points do not \
             constrain how the time grows. Measure at twice the largest rank count next"
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

#[cfg(test)]
mod tests {
    use crate::models::observations::TAU_S;
    use crate::models::observations::tests::contradicted;
    use crate::models::regression::{Findings, Method, Model, Options, Part, points_from};
    use crate::models::scaling;
    use crate::present::model::{json, screen};

    #[test]
    fn a_point_that_contradicts_the_curve_stands_first_in_the_words_of_scaling() {
        let table = contradicted();
        let points = points_from(&table, Some(TAU_S), &["p".to_owned()], &[]).unwrap();
        let options = Options::for_method(Method::Robust);
        let part = Part::by_evidence(&points, &options, "study").unwrap();
        let findings = Findings {
            source: "study".into(),
            rows: table.rows().len(),
            minimum_over: Vec::new(),
            response: TAU_S.into(),
            model: Model::from_part(part, Method::Robust),
            predictions: Vec::new(),
            held: None,
            comparison: None,
            choice: None,
            two_step: None,
        };
        let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let screen = one_line(screen(&findings, &[]));
        let (first, rest) = screen.split_once(" MODEL ").unwrap();
        assert!(first.starts_with("p = 4 contradicts the other points: it took 3.98 s"), "{first}");
        assert!(first.contains("4 of its ranks shared 2 cores") && !rest.contains("contradicts"));
        let scaling = scaling::Scaling::new(&table, &scaling::Options::default()).unwrap();
        let of_scaling = one_line(crate::present::scaling::screen(&scaling, &[], false));
        assert!(of_scaling.contains(first), "{of_scaling}");
        assert!(json(&findings, &[]).unwrap().contains(first));
    }
}
