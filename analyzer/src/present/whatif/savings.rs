//! What standard changes would save, in a few rows for a report.

use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::replay::{Answer, WhatIf, standard_answers};

use super::words;

/// Less of the run is not worth a row.
const LEAST_PART: f64 = 0.01;
/// Rows.
const MOST_ROWS: usize = 3;

/// What a change would save.
#[derive(Debug, Clone, PartialEq)]
pub struct Saving {
    /// The question, as documents name it.
    pub question: String,
    /// The change in words.
    pub sentence: String,
    /// Seconds of the run.
    pub seconds: f64,
    /// In nine of ten cases the time lies so near, seconds.
    pub uncertain_s: f64,
    /// Of the run's time.
    pub part: f64,
}

/// What changes would save, and T₀, the time on an ideal network, over τ: of a run whose waits are explained and that is
/// small enough to be replayed beside a report.
pub fn aside(analysis: &Analysis, causes: Option<&Causes>) -> (Vec<Saving>, Option<f64>) {
    match causes.and_then(|_| standard_answers(analysis)) {
        Some((what_if, answers)) => (savings(&what_if, &answers), Some(what_if.ideal())),
        None => (Vec::new(), None),
    }
}

/// Those that save most, and more than the replay may be wrong by.
fn savings(what_if: &WhatIf, answers: &[Answer]) -> Vec<Saving> {
    let recorded = what_if.graph.elapsed_s;
    let of = |answer: &Answer| Saving {
        question: words::keys(&answer.changes),
        sentence: words::sentence(&answer.changes, what_if),
        seconds: recorded - answer.elapsed_s,
        uncertain_s: answer.uncertain_s,
        part: 1.0 - answer.elapsed_s / recorded,
    };
    let counts = |saving: &Saving| saving.part >= LEAST_PART && saving.seconds > saving.uncertain_s;
    let mut all: Vec<Saving> = answers.iter().map(of).filter(counts).collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    all.truncate(MOST_ROWS);
    all
}
