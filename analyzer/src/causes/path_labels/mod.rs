//! What makes the critical path: counts, times, messages and bytes of its events by label, beside
//! those on all ranks.
//!
//! A label is a place in the program, the communicator of the call, and whether it is its function's
//! first use there, when libraries connect and build tables.
//!
//! | file | content |
//! |---|---|
//! | `label` | a label and its sums |
//! | `of_rank` | sums of one rank |
//! | `sizes` | sums by size |
//! | `durations` | events by duration |
//! | `merged` | labels over all ranks |

mod durations;
mod label;
mod merged;
mod of_rank;
mod sizes;

use crate::analysis::Analysis;
use crate::causes::critical_path::PathStretch;
use crate::causes::integer_timeline::IntegerTimeline;
use crate::causes::lines::Lines;
use crate::causes::wait::Wait;

pub use durations::Durations;
pub use label::{Group, OfSize, OnPath, OnRanks, PathLabel, SizeClass};
use of_rank::LabelReader;

/// What is known of a run when its events are read for labels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'c> {
    pub clock: &'c IntegerTimeline<'c>,
    pub lines: &'c Lines,
    /// By line, and by time within a line.
    pub waits: &'c [Wait],
    /// The critical path, in order of time.
    pub path: &'c [PathStretch],
}

/// All labels, those with the most time on the path first. Reads the events of the analysis once.
pub(super) fn labels(analysis: &Analysis, known: Known) -> Vec<PathLabel> {
    let Known { clock, lines, waits, path } = known;
    let mut on_lines: Vec<Vec<(i64, i64)>> = vec![Vec::new(); lines.all.len()];
    for stretch in path {
        on_lines[stretch.line as usize].push((stretch.from, stretch.to));
    }
    let communicators = analysis.communicators();
    let reader = LabelReader { clock, lines, waits, path: &on_lines, communicators };
    let of_ranks = analysis.calls_then(&reader, of_rank::LabelsOfRank::finish);
    merged::merged(analysis.run, communicators, of_ranks)
}
