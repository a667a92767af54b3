//! Stage 4, for people and programs: a run, its timeline and its metrics come in, the terminal's
//! screen ([`terminal`]) and the JSON document ([`json`]) go out.

pub mod calibration;
pub mod dump;
pub mod figure;
pub mod html;
pub mod json;
pub mod late_partner;
pub mod logpq;
pub mod machine;
pub mod model_expression;
pub mod model_figures;
pub mod model_json;
pub mod model_terminal;
pub mod picture;
pub mod roofline;
pub mod scaling;
pub mod strip;
pub mod study;
pub mod terminal;

mod clock_json;
mod context;
mod counters;
pub(crate) use context::{number_list, range_list};
pub(crate) use counters::counter_sentences;
mod job;
mod job_end;
mod messages;
mod messages_json;
mod paragraph;
pub(crate) mod quantity;
mod rank_groups;
mod sites;
mod table;
mod totals;
mod unfinished;
mod unfinished_json;
mod verdict;

use crate::metrics::Metrics;
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
}

impl<'a> Report<'a> {
    /// What is wrong with the files, of all stages.
    pub fn diagnoses(&self) -> impl Iterator<Item = &'a FileDiagnosis> {
        let Self { run, timeline, metrics } = *self;
        run.diagnoses.iter().chain(&timeline.diagnoses).chain(&metrics.diagnoses)
    }

    /// What a reader should know, of all stages.
    pub fn notes(&self) -> impl Iterator<Item = &'a String> {
        let Self { run, timeline, metrics } = *self;
        run.notes.iter().chain(&timeline.notes).chain(&metrics.notes)
    }
}

#[cfg(test)]
mod many_ranks_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod tests;
