//! The JSON document of `gammachi whatif --ledger`; `docs/reference/predictions-json.md` explains its keys.

use serde::Serialize;

use crate::ledger::Prediction;

use super::contents::LedgerContents;

/// Version of the document's keys: a key never changes its meaning within one version.
const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
struct Document<'a> {
    version: u32,
    gammachi: &'static str,
    ledger: String,
    predictions: Vec<PredictionPart<'a>>,
    summary: SummaryPart,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct PredictionPart<'a> {
    #[serde(flatten)]
    prediction: &'a Prediction,
    /// Whether a matching run answers it without the user naming the run.
    recognised: bool,
    runs: &'a [&'a str],
    measured_s: Option<f64>,
    error: Option<f64>,
    within_interval: Option<bool>,
}

#[derive(Debug, Serialize)]
struct SummaryPart {
    predictions: usize,
    answered: usize,
    median_error: Option<f64>,
    intervals: usize,
    within_interval: usize,
    /// Share of intervals that contain the measured time.
    coverage: Option<f64>,
}

/// The document.
///
/// # Errors
/// When a value cannot be written.
pub fn json(contents: &LedgerContents) -> serde_json::Result<String> {
    let predictions = contents.score.standings.iter().map(|standing| PredictionPart {
        prediction: standing.prediction,
        recognised: standing.prediction.is_recognised(),
        runs: &standing.runs,
        measured_s: standing.measured_s,
        error: standing.error(),
        within_interval: standing.is_within_interval(),
    });
    let summary = contents.score.summary();
    let coverage = summary.within_interval as f64 / summary.intervals as f64;
    let document = Document {
        version: VERSION,
        gammachi: env!("CARGO_PKG_VERSION"),
        ledger: contents.path.display().to_string(),
        predictions: predictions.collect(),
        summary: SummaryPart {
            predictions: summary.predictions,
            answered: summary.answered,
            median_error: summary.median_error,
            intervals: summary.intervals,
            within_interval: summary.within_interval,
            coverage: coverage.is_finite().then_some(coverage),
        },
        notes: contents.notes,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}
