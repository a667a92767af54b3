//! Presents results: terminal screens, JSON documents, HTML pages and pictures.
//!
//! Nothing is measured or computed here beyond what wording and layout need. Each subject has a folder, in which
//! `screen` writes the text for the terminal, `document` the JSON and `pictures` the figures.
//!
//! | folder | subject |
//! |---|---|
//! | [`report`] | one run: [`Report`] |
//! | `findings` | what a run's figures mean, in sentences |
//! | [`causes`] | why ranks waited |
//! | `unfinished` | ranks that did not finish, within a report |
//! | [`dump`] | single events and messages |
//! | [`clock`] | how well clocks are aligned |
//! | [`whatif`], [`ledger`] | a run's time under other conditions; predictions and how they compared with measured runs |
//! | [`comparison`] | two sets of runs, checks, baselines, histories |
//! | [`machine`], [`logpq`], [`roofline`] | a measured machine, and runs compared with what it can do |
//! | [`scaling`], [`model`], [`study`] | models of times over configurations, and sweeps |
//! | [`html`], [`picture`], [`figure`], [`text_timeline`] | shared by all subjects: pages, pictures of a run, plots, the timeline in a terminal |

mod blocks;
pub mod causes;
mod cell;
pub mod clock;
mod code_place;
pub mod comparison;
mod context;
mod contradiction;
pub mod dump;
pub mod figure;
pub(crate) mod findings;
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
pub mod study;
mod table;
pub mod text_timeline;
mod unfinished;
pub mod whatif;
pub mod width;

pub(crate) use context::{number_list, range_list};
pub(crate) use report::{counter_sentences, run_note, time_note};

use crate::causes::Causes;
use crate::diagnosis::{Diagnosis, Evidence, Figures, Why};
use crate::metrics::Metrics;
use crate::timeline::GlobalTimeline;
use crate::trace::{FileDiagnosis, FileFault, Run};

/// Everything that a report is made from.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its timeline.
    pub timeline: &'a GlobalTimeline,
    /// Metrics of the selected part of the run.
    pub metrics: &'a Metrics,
    /// Why ranks waited in the selected part of the run; `None` unless asked for.
    pub causes: Option<&'a Causes<'a>>,
    /// What changes would save; empty unless asked for.
    pub savings: &'a [whatif::Saving],
    /// What all that means.
    pub diagnosis: &'a Diagnosis<'a>,
}

impl<'a> Report<'a> {
    /// The report of a run that was judged. What changes would save is left out where predictions are invalid.
    pub fn new(diagnosis: &'a Diagnosis<'a>, savings: &'a [whatif::Saving]) -> Self {
        let savings = match diagnosis.invalidated_by(Figures::Predictions) {
            None => savings,
            Some(_) => &[],
        };
        let Evidence { run, timeline, metrics, causes, .. } = diagnosis.of;
        Self { run, timeline, metrics, causes, savings, diagnosis }
    }

    /// The analysis of causes with its context, if there is one.
    pub fn why(&self) -> Option<Why<'a>> {
        self.diagnosis.of.why()
    }

    /// What is wrong with the files, as found by all stages.
    pub fn diagnoses(&self) -> impl Iterator<Item = FileDiagnosis<String>> + 'a {
        self.diagnoses_with(|_| true)
    }

    /// What is wrong with the files, without the ranks that never returned from MPI_Init, whose
    /// files are in order.
    pub fn damage(&self) -> impl Iterator<Item = FileDiagnosis<String>> + 'a {
        self.diagnoses_with(|fault| !matches!(fault, FileFault::NotBegun { .. }))
    }

    /// What is wrong with the files, with some of the faults found when the run was opened.
    fn diagnoses_with(
        &self,
        is_wanted: fn(&FileFault) -> bool,
    ) -> impl Iterator<Item = FileDiagnosis<String>> + 'a {
        let Self { run, timeline, metrics, .. } = *self;
        let of_run = run.diagnoses.iter().filter(move |of| is_wanted(&of.what)).map(with_text);
        let of_timeline = timeline.diagnoses.iter().map(with_text);
        of_run.chain(of_timeline).chain(metrics.diagnoses.iter().map(with_text))
    }

    /// What a reader should know, as found by all stages.
    pub fn notes(&self) -> impl Iterator<Item = String> + 'a {
        let Self { run, timeline, metrics, .. } = *self;
        let before = run.notes.iter().map(run_note).chain(timeline.notes.iter().map(time_note));
        before.chain(metrics.notes.iter().map(report::sentence))
    }
}

fn with_text<W: std::fmt::Display>(diagnosis: &FileDiagnosis<W>) -> FileDiagnosis<String> {
    FileDiagnosis { file: diagnosis.file.clone(), what: diagnosis.what.to_string() }
}

#[cfg(test)]
mod ratio_tests;
