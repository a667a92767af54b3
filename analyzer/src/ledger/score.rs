//! Promises beside what was measured: errors, and how many intervals held.

use super::{Answer, Ledger, Predictor, Promise};

/// A promise and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing<'a> {
    /// The promise.
    pub promise: &'a Promise,
    /// The runs that answer it.
    pub runs: Vec<&'a str>,
    /// What they took, seconds: of a model's promise the fastest counts, as in the models' tables; of others the
    /// median.
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

    /// Promised over measured, less one.
    pub fn error(&self) -> Option<f64> {
        let error = self.promise.seconds / self.measured_s? - 1.0;
        error.is_finite().then_some(error)
    }

    /// Whether the interval, where there is one, held what was measured.
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

/// What a ledger says of its predictions on the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Promises.
    pub promises: usize,
    /// Those that were answered.
    pub answered: usize,
    /// Median of their errors without sign.
    pub median_error: Option<f64>,
    /// Answered promises with an interval, and those of them that held.
    pub intervals: usize,
    /// How many held.
    pub held: usize,
}

impl<'a> Score<'a> {
    /// Of a ledger.
    pub fn new(ledger: &'a Ledger) -> Self {
        let standing = |promise| Standing::new(promise, &ledger.answers);
        Self { standings: ledger.promises.iter().map(standing).collect() }
    }

    /// On the whole.
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
    fn errors_and_intervals_are_counted_over_answered_promises() {
        let mut of_whatif = promise("00000c", 1.0);
        of_whatif.by = Predictor::WhatIf;
        let mut without = promise("00000d", 2.0);
        (without.lo_s, without.hi_s) = (None, None);
        let promises = vec![promise("00000a", 1.0), promise("00000b", 1.0), of_whatif, without];
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
    fn an_empty_ledger_claims_nothing() {
        let ledger = Ledger::default();
        let summary = Score::new(&ledger).summary();
        assert_eq!((summary.answered, summary.median_error), (0, None));
    }
}
