//! Compares promises with measurements: errors, and how many intervals held.

use super::{Answer, Ledger, Predictor, Promise};

/// A promise and its measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing<'a> {
    /// The promise.
    pub promise: &'a Promise,
    /// The runs that answered it.
    pub runs: Vec<&'a str>,
    /// The measured time, seconds: the fastest run for a promise of `scaling` or `model`, as in
    /// their tables; the median for one of `whatif`.
    pub measured_s: Option<f64>,
}

impl<'a> Standing<'a> {
    fn new(promise: &'a Promise, answers: &'a [Answer]) -> Self {
        let own = answers.iter().filter(|answer| answer.promise == promise.id);
        let (runs, mut seconds): (Vec<&str>, Vec<f64>) =
            own.map(|answer| (answer.run.as_str(), answer.seconds)).unzip();
        seconds.sort_unstable_by(f64::total_cmp);
        let measured_s = match promise.by {
            Predictor::WhatIf => median(&seconds),
            Predictor::Scaling | Predictor::Model => seconds.first().copied(),
        };
        Self { promise, runs, measured_s }
    }

    /// Relative error: promised / measured − 1.
    pub fn error(&self) -> Option<f64> {
        let error = self.promise.seconds / self.measured_s? - 1.0;
        error.is_finite().then_some(error)
    }

    /// Whether the interval, if there is one, contains the measured value.
    pub fn held(&self) -> Option<bool> {
        let (lo, hi) = (self.promise.lo_s?, self.promise.hi_s?);
        Some((lo..=hi).contains(&self.measured_s?))
    }
}

/// All promises of a ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Score<'a> {
    /// Oldest first.
    pub standings: Vec<Standing<'a>>,
}

/// Summary of a ledger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of promises.
    pub promises: usize,
    /// Number of answered promises.
    pub answered: usize,
    /// Median of the absolute errors.
    pub median_error: Option<f64>,
    /// Number of answered promises with an interval.
    pub intervals: usize,
    /// Number of those whose interval held.
    pub held: usize,
}

impl<'a> Score<'a> {
    /// Scores a ledger.
    pub fn new(ledger: &'a Ledger) -> Self {
        let standing = |promise| Standing::new(promise, &ledger.answers);
        Self { standings: ledger.promises.iter().map(standing).collect() }
    }

    /// Summarises all promises.
    pub fn summary(&self) -> Summary {
        let mut errors: Vec<f64> =
            self.standings.iter().filter_map(Standing::error).map(f64::abs).collect();
        errors.sort_unstable_by(f64::total_cmp);
        let held: Vec<bool> = self.standings.iter().filter_map(Standing::held).collect();
        Summary {
            promises: self.standings.len(),
            answered: errors.len(),
            median_error: median(&errors),
            intervals: held.len(),
            held: held.iter().filter(|held| **held).count(),
        }
    }
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::file::tests::{answer, promise};

    #[test]
    fn summarises_answered_promises() {
        let mut whatif = promise("00000c", 1.0);
        whatif.by = Predictor::WhatIf;
        let mut without_interval = promise("00000d", 2.0);
        (without_interval.lo_s, without_interval.hi_s) = (None, None);
        let promises =
            vec![promise("00000a", 1.0), promise("00000b", 1.0), whatif, without_interval];
        let answers = vec![
            answer("00000b", "r1", 1.25),
            answer("00000b", "r2", 1.6),
            answer("00000c", "r3", 1.05),
            answer("00000c", "r4", 0.95),
            answer("00000c", "r5", 1.0),
            answer("00000d", "r6", 1.0),
        ];
        let ledger = Ledger { promises, answers, faults: Vec::new() };
        let score = Score::new(&ledger);
        let measured: Vec<Option<f64>> = score.standings.iter().map(|s| s.measured_s).collect();
        assert_eq!(measured, [None, Some(1.25), Some(1.0), Some(1.0)]);
        let errors: Vec<Option<f64>> = score.standings.iter().map(Standing::error).collect();
        assert_eq!(errors[0], None);
        assert!((errors[1].unwrap() + 0.2).abs() < 1e-12, "{errors:?}");
        let held: Vec<Option<bool>> = score.standings.iter().map(Standing::held).collect();
        assert_eq!(held, [None, Some(false), Some(true), None]);
        let summary = score.summary();
        assert_eq!((summary.promises, summary.answered), (4, 3));
        assert_eq!((summary.intervals, summary.held), (2, 1));
        assert!((summary.median_error.unwrap() - 0.2).abs() < 1e-12);
    }

    #[test]
    fn empty_ledger_has_no_error() {
        let ledger = Ledger::default();
        let summary = Score::new(&ledger).summary();
        assert_eq!((summary.answered, summary.median_error), (0, None));
    }
}
