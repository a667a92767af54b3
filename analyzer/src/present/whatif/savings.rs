//! What standard changes would save, as a few rows for a report.

use serde::Serialize;

use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::replay::{Answer, NoIdeal, WhatIf, ideal_time_of, replayed_aside, standard_answers};

use super::words;

/// Smallest share of the run's time that is worth a row.
const MIN_PART: f64 = 0.01;
/// Share of the run that they save at least if the prediction is off as far as it may be.
const MIN_CERTAIN_PART: f64 = 0.005;
/// Maximum number of rows.
const MAX_ROWS: usize = 3;

/// What a change would save.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Saving {
    /// The question's key in documents.
    pub question: String,
    /// The change in words.
    #[serde(skip)]
    pub sentence: String,
    /// Seconds saved.
    pub saves_s: f64,
    /// The least that it saves in nine of ten cases, seconds; negative where it may cost time.
    pub lo_s: f64,
    /// The most, seconds.
    pub hi_s: f64,
    /// Share of the run's time.
    #[serde(skip)]
    pub part: f64,
}

/// What a replay tells for a report.
#[derive(Debug)]
pub struct ForReport<'a> {
    /// What changes would save in the whole run.
    pub savings: Vec<Saving>,
    /// T₀ (the time on an ideal network) over τ, of the part that the causes explain.
    pub ideal: Result<f64, NoIdeal>,
    /// The replay of the whole run.
    pub replay: Option<WhatIf<'a>>,
}

impl<'a> ForReport<'a> {
    /// Replays a run that is small enough for a report, and whose causes are known.
    pub fn new(analysis: &Analysis<'a>, causes: Option<&Causes>) -> Self {
        let without = |ideal| Self { savings: Vec::new(), ideal, replay: None };
        let Some(causes) = causes else { return without(Err(NoIdeal::NotAsked)) };
        if let Err(why) = replayed_aside(analysis.run) {
            return without(Err(why));
        }
        if causes.part.is_some() {
            return without(ideal_time_of(analysis, causes.part.as_ref()));
        }
        match standard_answers(analysis) {
            Ok((what_if, answers)) => Self {
                savings: savings(&what_if, &answers),
                ideal: what_if.ideal_if_exact(),
                replay: Some(what_if),
            },
            Err(why) => without(Err(why)),
        }
    }
}

/// The changes that save most, and a part of the run even if the prediction is off.
fn savings(what_if: &WhatIf, answers: &[Answer]) -> Vec<Saving> {
    let recorded = what_if.graph.elapsed_s;
    let of = |answer: &Answer| Saving {
        question: words::keys(&answer.changes),
        sentence: words::sentence(&answer.changes, what_if),
        saves_s: recorded - answer.elapsed_s,
        lo_s: recorded - answer.interval_s.1,
        hi_s: recorded - answer.interval_s.0,
        part: 1.0 - answer.elapsed_s / recorded,
    };
    let counts =
        |saving: &Saving| saving.part >= MIN_PART && saving.lo_s >= MIN_CERTAIN_PART * recorded;
    let told = answers.iter().filter(|answer| answer.time_s().is_some());
    let mut all: Vec<Saving> = told.map(of).filter(counts).collect();
    all.sort_by(|a, b| b.saves_s.total_cmp(&a.saves_s));
    all.truncate(MAX_ROWS);
    all
}
