//! Compares predictions with measurements: errors, and how many intervals contain them.

use serde::Serialize;

use super::file::Ledger;
use super::prediction::{Answer, Prediction, Predictor};
use crate::statistics::median;

/// A prediction and its measured value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Standing<'a> {
    /// The prediction.
    #[serde(flatten)]
    pub prediction: &'a Prediction,
    /// Whether a matching run answers it without the user naming the run.
    pub recognised: bool,
    /// The runs that answered it.
    pub runs: Vec<&'a str>,
    /// The measured time, seconds: the fastest run for a prediction of `scaling` or `model`, as in
    /// their tables; the median for one of `whatif`.
    pub measured_s: Option<f64>,
    /// Relative error: predicted / measured − 1.
    pub error: Option<f64>,
    /// Whether the interval, if there is one, contains the measured value.
    pub within_interval: Option<bool>,
}

impl<'a> Standing<'a> {
    fn new(prediction: &'a Prediction, answers: &'a [Answer]) -> Self {
        let own = answers.iter().filter(|answer| answer.prediction == prediction.id);
        let (runs, mut seconds): (Vec<&str>, Vec<f64>) =
            own.map(|answer| (answer.run.as_str(), answer.seconds)).unzip();
        let measured_s = match prediction.by {
            Predictor::WhatIf => median(&mut seconds),
            Predictor::Scaling | Predictor::Model => seconds.into_iter().min_by(f64::total_cmp),
        };
        let error = measured_s.map(|measured_s| prediction.seconds / measured_s - 1.0);
        let interval = prediction.lo_s.zip(prediction.hi_s).zip(measured_s);
        Self {
            prediction,
            recognised: prediction.is_recognised(),
            runs,
            measured_s,
            error: error.filter(|error| error.is_finite()),
            within_interval: interval.map(|((lo, hi), measured_s)| (lo..=hi).contains(&measured_s)),
        }
    }
}

/// All predictions of a ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Score<'a> {
    /// Oldest first.
    pub standings: Vec<Standing<'a>>,
}

/// Summary of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// Number of predictions.
    pub predictions: usize,
    /// Number of answered predictions.
    pub answered: usize,
    /// Median of the absolute errors.
    pub median_error: Option<f64>,
    /// Number of answered predictions with an interval.
    pub intervals: usize,
    /// Number of those within their interval.
    pub within_interval: usize,
    /// Share of intervals that contain the measured value.
    pub coverage: Option<f64>,
}

impl<'a> Score<'a> {
    /// Scores a ledger.
    pub fn new(ledger: &'a Ledger) -> Self {
        let standing = |prediction| Standing::new(prediction, &ledger.answers);
        Self { standings: ledger.predictions.iter().map(standing).collect() }
    }

    /// Summarises all predictions.
    pub fn summary(&self) -> Summary {
        let mut errors: Vec<f64> =
            self.standings.iter().filter_map(|of| of.error).map(f64::abs).collect();
        let within: Vec<bool> = self.standings.iter().filter_map(|of| of.within_interval).collect();
        let within_interval = within.iter().filter(|within| **within).count();
        let coverage = within_interval as f64 / within.len() as f64;
        Summary {
            predictions: self.standings.len(),
            answered: errors.len(),
            median_error: median(&mut errors),
            intervals: within.len(),
            within_interval,
            coverage: coverage.is_finite().then_some(coverage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::file::tests::{answer, prediction};

    #[test]
    fn summarises_answered_predictions() {
        let mut whatif = prediction("00000c", 1.0);
        whatif.by = Predictor::WhatIf;
        let mut without_interval = prediction("00000d", 2.0);
        (without_interval.lo_s, without_interval.hi_s) = (None, None);
        let predictions =
            vec![prediction("00000a", 1.0), prediction("00000b", 1.0), whatif, without_interval];
        let answers = vec![
            answer("00000b", "r1", 1.25),
            answer("00000b", "r2", 1.6),
            answer("00000c", "r3", 1.05),
            answer("00000c", "r4", 0.95),
            answer("00000c", "r5", 1.0),
            answer("00000d", "r6", 1.0),
        ];
        let ledger = Ledger { predictions, answers, faults: Vec::new() };
        let score = Score::new(&ledger);
        let measured: Vec<Option<f64>> = score.standings.iter().map(|s| s.measured_s).collect();
        assert_eq!(measured, [None, Some(1.25), Some(1.0), Some(1.0)]);
        let errors: Vec<Option<f64>> = score.standings.iter().map(|of| of.error).collect();
        assert_eq!(errors[0], None);
        assert!((errors[1].unwrap() + 0.2).abs() < 1e-12, "{errors:?}");
        let within = score.standings.iter().map(|of| of.within_interval);
        assert!(within.eq([None, Some(false), Some(true), None]));
        let summary = score.summary();
        assert_eq!((summary.predictions, summary.answered), (4, 3));
        assert_eq!((summary.intervals, summary.within_interval), (2, 1));
        assert!((summary.median_error.unwrap() - 0.2).abs() < 1e-12);
    }

    #[test]
    fn empty_ledger_has_no_error() {
        let ledger = Ledger::default();
        let summary = Score::new(&ledger).summary();
        assert_eq!((summary.answered, summary.median_error), (0, None));
    }
}
