//! What the diagnoses of the compared runs take from a comparison.

use super::record::RunRecord;
use crate::diagnosis::{Figures, Finding, invalidated_by};

/// A finding that makes figures of runs of one side invalid.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// What was found in the first run that has it.
    pub finding: Finding,
    /// How many runs of the side have one of this kind.
    pub runs: usize,
}

/// The findings of a side that make figures invalid, each kind once, in the order of its first run.
pub fn doubts(side: &[RunRecord]) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = Vec::new();
    for record in side {
        for finding in record.findings.iter().filter(|one| !one.invalidates().is_empty()) {
            match doubts.iter_mut().find(|known| known.finding.is_like(finding)) {
                Some(known) => known.runs += 1,
                None => doubts.push(Doubt { finding: finding.clone(), runs: 1 }),
            }
        }
    }
    doubts
}

/// The first finding of any of these runs that makes some figures invalid.
pub fn doubt<'r>(
    runs: impl IntoIterator<Item = &'r RunRecord>,
    figures: Figures,
) -> Option<&'r Finding> {
    runs.into_iter().find_map(|record| invalidated_by(&record.findings, figures))
}
