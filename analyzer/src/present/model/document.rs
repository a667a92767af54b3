//! The JSON document of `gammachi model`; `docs/reference/predictions-json.md` explains its keys.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::models::regression::{
    Comparison, Findings, FirstStep, FitQuality, Points, Prediction, Residual, Score, Term,
};

use crate::models::scaling::AtProblemSize;
use crate::present::scaling::structure::{self, StructureDocument};

use super::words::{contradictions, error_sentence, held_back, warnings};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    source: &'a str,
    /// What is modelled: columns of the table.
    response: &'a str,
    variables: &'a [String],
    /// Values of the other names in expressions.
    constants: BTreeMap<&'a str, f64>,
    /// As on the command line; `evidence`: only the rank count varies.
    method: &'static str,
    /// What it minimises.
    residual: Residual,
    basis: &'a str,
    /// Number of rows that were fitted.
    rows: usize,
    /// Parameters in which rows of one configuration differ: the smallest time counts.
    minimum_over: &'a [String],
    /// Number of configurations.
    points: usize,
    /// Rank of the scaled columns: the smallest of the parts.
    rank: usize,
    /// Condition of the scaled columns.
    condition: f64,
    /// The columns of all parts.
    columns: Vec<Term>,
    /// Where `seconds` of `columns` are: at the last prediction, else at the largest point.
    columns_at: BTreeMap<&'a str, f64>,
    /// Groups of dependent columns.
    indistinguishable: Vec<Vec<String>>,
    /// How far the tie rule of `minimax` moved a scaled coefficient; 0: the optimum is unique.
    tie_moved: Option<f64>,
    fit: FitPart,
    /// A sentence on each measured time that contradicts the curves.
    contradictions: Vec<String>,
    /// The times asked for.
    predictions: Vec<PredictionPart<'a>>,
    /// What the program does predicts of the same points, for each problem size among them; empty: no runs, or other
    /// variables than p and one parameter.
    structure: Vec<StructurePart>,
    /// Points held back; null: none were.
    holdout: Option<Vec<HeldPart<'a>>>,
    /// How well methods extrapolate; null: not asked for.
    comparison: Option<ComparisonPart<'a>>,
    /// The same of models that competed.
    choice: Option<ChoicePart<'a>>,
    /// For each variable the columns that the first step kept.
    two_step: Option<Vec<Vec<SurvivorPart<'a>>>>,
}

/// Times at one problem size from what the program does.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StructurePart {
    /// The parameter that is the problem size; null: p is the only variable.
    parameter: Option<String>,
    /// Its value.
    size: Option<f64>,
    #[serde(flatten)]
    found: StructureDocument,
}

impl StructurePart {
    fn new(AtProblemSize { size, structure }: &AtProblemSize) -> Self {
        let (parameter, size) = size.clone().unzip();
        Self { parameter, size, found: structure::document(structure) }
    }
}

/// The quality of a fit.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FitPart {
    #[serde(flatten)]
    quality: FitQuality,
    /// Corrected standard deviation of the residuals.
    spread: f64,
}

/// A predicted time; variables have their values under their names.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PredictionPart<'a> {
    #[serde(flatten)]
    at: BTreeMap<&'a str, f64>,
    #[serde(flatten)]
    prediction: &'a Prediction,
    /// Why to distrust it.
    warning: Option<String>,
}

/// A measured time that was held back, and its prediction.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HeldPart<'a> {
    #[serde(flatten)]
    prediction: PredictionPart<'a>,
    measured: f64,
    /// `value` / `measured` − 1.
    error: Option<f64>,
}

/// How well methods or models extrapolate.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ComparisonPart<'a> {
    /// Which points were held back, in words.
    held_back: &'static str,
    /// How many.
    held: usize,
    /// One for each method or model.
    scores: Vec<ScorePart<'a>>,
}

/// Models that competed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ChoicePart<'a> {
    /// Name of the chosen one.
    chosen: &'a str,
    #[serde(flatten)]
    comparison: ComparisonPart<'a>,
}

/// The relative errors of a method or model.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ScorePart<'a> {
    #[serde(flatten)]
    score: &'a Score,
    /// Why it could not be fitted.
    failure: Option<String>,
}

/// A column that the first step kept.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SurvivorPart<'a> {
    /// The column.
    expr: &'a str,
    /// In how many slices it was selected.
    slices: usize,
    /// Out of how many.
    of: usize,
}

/// The document, with its keys in alphabetical order and a newline at its end.
pub fn json(findings: &Findings, structure: &[AtProblemSize]) -> serde_json::Result<String> {
    Ok(format!("{:#}\n", serde_json::to_value(document(findings, structure))?))
}

fn document<'a>(findings: &'a Findings, structure: &[AtProblemSize]) -> Document<'a> {
    let model = &findings.model;
    let first = &model.parts[0];
    let Points { variables, constants, .. } = &first.points;
    Document {
        source: &findings.source,
        response: &findings.response,
        variables,
        constants: constants.iter().map(|(name, value)| (name.as_str(), *value)).collect(),
        method: model.method_name(),
        residual: first.residual,
        basis: &first.basis.name,
        rows: findings.rows,
        minimum_over: &findings.minimum_over,
        points: first.points.len(),
        rank: model.parts.iter().map(|part| part.identifiability.rank).min().unwrap_or(0),
        condition: first.identifiability.condition,
        columns: findings.terms(),
        columns_at: at(variables, &findings.evaluation_point().values[0]),
        indistinguishable: findings.indistinguishable(),
        tie_moved: first.tie_moved,
        fit: FitPart { quality: findings.quality(), spread: first.spread },
        contradictions: contradictions(findings),
        predictions: predictions(variables, &findings.predictions).collect(),
        structure: structure.iter().map(StructurePart::new).collect(),
        holdout: findings.held.as_ref().map(|held| {
            let all = predictions(variables, &held.predictions).zip(&held.points.times);
            let error = |of: &PredictionPart, time| Some(of.prediction.value? / time - 1.0);
            all.map(|(prediction, time)| HeldPart {
                error: error(&prediction, time),
                measured: *time,
                prediction,
            })
            .collect()
        }),
        comparison: findings.comparison.as_ref().map(comparison),
        choice: findings.choice.as_ref().map(|(chosen, scores)| ChoicePart {
            chosen: &scores.scores[*chosen].name,
            comparison: comparison(scores),
        }),
        two_step: findings
            .two_step
            .as_ref()
            .map(|steps| steps.variables.iter().map(survivors).collect()),
    }
}

fn at<'a>(variables: &'a [String], values: &[f64]) -> BTreeMap<&'a str, f64> {
    variables.iter().map(String::as_str).zip(values.iter().copied()).collect()
}

fn predictions<'a>(
    variables: &'a [String],
    predictions: &'a [Prediction],
) -> impl Iterator<Item = PredictionPart<'a>> {
    predictions.iter().map(|prediction| PredictionPart {
        at: at(variables, &prediction.values),
        prediction,
        warning: Some(warnings(prediction)).filter(|warning| !warning.is_empty()),
    })
}

fn comparison(of: &Comparison) -> ComparisonPart<'_> {
    let failure = |score: &Score| score.failure.as_deref().map(error_sentence);
    let scores = of.scores.iter().map(|score| ScorePart { score, failure: failure(score) });
    ComparisonPart { held_back: held_back(of.what), held: of.held, scores: scores.collect() }
}

fn survivors(step: &FirstStep) -> Vec<SurvivorPart<'_>> {
    let all = step.survivors.iter();
    all.map(|(column, slices, of)| SurvivorPart { expr: column.text(), slices: *slices, of: *of })
        .collect()
}
