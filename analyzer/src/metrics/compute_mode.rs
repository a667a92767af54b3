//! What counts as computing in a run.

use crate::analysis::segments::ComputeMode;
use crate::trace::Run;

use super::figures::Metrics;
use super::note::Note;

pub(super) fn compute_mode(run: &Run, notes: &mut Vec<Note>) -> ComputeMode {
    let mut names = run.ranks.iter().map(|rank| rank.file.header.compute.as_str());
    let first = names.next().unwrap_or_default();
    if let Some(other) = names.find(|name| *name != first) {
        let (used, other) = (first.to_owned(), other.to_owned());
        notes.push(Note::ComputeModesDiffer { used, other });
    }
    ComputeMode::from_name(first).unwrap_or_else(|| {
        notes.push(Note::ComputeModeUnknown(first.to_owned()));
        ComputeMode::Outside
    })
}

impl Metrics {
    /// What counts as computation in a run.
    pub fn compute_mode_of(run: &Run) -> ComputeMode {
        compute_mode(run, &mut Vec::new())
    }
}
