//! Everything that a report is made from.

use crate::causes::Causes;
use crate::diagnosis::{Diagnosis, Evidence, Figures, Why};
use crate::metrics::Metrics;
use crate::timeline::GlobalTimeline;
use crate::trace::{FileDiagnosis, FileFault, Run};

use super::whatif::savings::Saving;

#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    pub run: &'a Run,
    pub timeline: &'a GlobalTimeline,
    /// Metrics of the selected part of the run.
    pub metrics: &'a Metrics,
    /// Why ranks waited in the selected part of the run; `None` unless asked for.
    pub causes: Option<&'a Causes<'a>>,
    /// What changes would save; empty unless asked for.
    pub savings: &'a [Saving],
    pub diagnosis: &'a Diagnosis<'a>,
}

pub(super) fn with_text<W: std::fmt::Display>(
    diagnosis: &FileDiagnosis<W>,
) -> FileDiagnosis<String> {
    FileDiagnosis { file: diagnosis.file.clone(), what: diagnosis.what.to_string() }
}

impl<'a> Report<'a> {
    /// The report of a run that was judged. What changes would save is left out where predictions are invalid.
    pub fn new(diagnosis: &'a Diagnosis<'a>, savings: &'a [Saving]) -> Self {
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
    pub(super) fn diagnoses_with(
        &self,
        is_wanted: fn(&FileFault) -> bool,
    ) -> impl Iterator<Item = FileDiagnosis<String>> + 'a {
        let Self { run, timeline, metrics, .. } = *self;
        let of_run = run.diagnoses.iter().filter(move |of| is_wanted(&of.what)).map(with_text);
        let of_timeline = timeline.diagnoses.iter().map(with_text);
        of_run.chain(of_timeline).chain(metrics.diagnoses.iter().map(with_text))
    }
}
