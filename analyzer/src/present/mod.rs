//! What people and programs get to see: what the stages hand on comes in; screens of the terminal, JSON
//! documents, pages and pictures go out.
//!
//! A folder a subject: `screen` is its text for the terminal, `document` its JSON, `pictures` its figures.
//!
//! | folder | subject |
//! |---|---|
//! | [`report`] | a run: [`Report`] |
//! | [`causes`] | why ranks waited |
//! | `unfinished` | ranks that did not finish, within a report |
//! | [`dump`] | single events and messages |
//! | [`clock`] | clocks: their calibration, and their part of a report |
//! | [`whatif`], [`ledger`] | a run's time under other conditions; predictions, and what came of them |
//! | [`comparison`] | two sets of runs, checks, baselines, histories |
//! | [`machine`], [`logpq`], [`roofline`] | a measured machine, and what it says of a run |
//! | [`scaling`], [`model`], [`study`] | models of times over configurations, and sweeps |
//! | [`html`], [`picture`], [`figure`], [`strip`] | pages, pictures of a run, plots, the terminal's timeline: of all subjects |

mod blocks;
pub mod causes;
pub mod clock;
mod code_place;
pub mod comparison;
mod context;
pub mod dump;
pub mod figure;
pub mod html;
pub mod ledger;
pub mod logpq;
pub mod machine;
pub mod model;
mod paragraph;
pub mod picture;
pub(crate) mod quantity;
pub mod report;
pub mod roofline;
pub mod scaling;
pub mod strip;
pub mod study;
mod table;
mod unfinished;
pub mod whatif;
pub mod width;

pub(crate) use context::{number_list, range_list};
pub(crate) use report::{counter_sentences, run_note, time_note};

use crate::causes::Causes;
use crate::metrics::Metrics;
use crate::replay::NoIdeal;
use crate::timeline::GlobalTimeline;
use crate::trace::{FileDiagnosis, Run};

/// All that a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its timeline.
    pub timeline: &'a GlobalTimeline,
    /// The figures of the selection.
    pub metrics: &'a Metrics,
    /// Why ranks waited, where that was asked: of the whole run.
    pub causes: Option<&'a Causes<'a>>,
    /// What changes would save, where that was asked.
    pub savings: &'a [whatif::Saving],
    /// T₀ of the efficiency tree over τ, where a replay told it.
    pub ideal: Option<f64>,
}

impl<'a> Report<'a> {
    /// What there is to say of causes.
    pub fn why(&self) -> Option<causes::Why<'a>> {
        let Self { run, timeline, ideal, .. } = *self;
        self.causes.map(|causes| causes::Why {
            run,
            timeline,
            causes,
            ideal: ideal.ok_or(NoIdeal::NotAsked),
            rank: None,
            choice: &crate::causes::ALL_WAITS,
        })
    }

    /// What is wrong with the files, of all stages.
    pub fn diagnoses(&self) -> impl Iterator<Item = FileDiagnosis<String>> + 'a {
        let Self { run, timeline, metrics, .. } = *self;
        let of_run = run.diagnoses.iter().map(in_words);
        let of_times = timeline.diagnoses.iter().map(in_words);
        of_run.chain(of_times).chain(metrics.diagnoses.iter().map(in_words))
    }

    /// What a reader should know, of all stages.
    pub fn notes(&self) -> impl Iterator<Item = String> + 'a {
        let Self { run, timeline, metrics, .. } = *self;
        let before = run.notes.iter().map(run_note).chain(timeline.notes.iter().map(time_note));
        before.chain(metrics.notes.iter().map(report::sentence))
    }
}

fn in_words<W: std::fmt::Display>(diagnosis: &FileDiagnosis<W>) -> FileDiagnosis<String> {
    FileDiagnosis { file: diagnosis.file.clone(), what: diagnosis.what.to_string() }
}
