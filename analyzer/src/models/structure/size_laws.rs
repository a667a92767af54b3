//! Laws of the problem size N and p together, which counts and sizes of a label meet in all runs.

use super::basis::{SIZE_TERMS, TERMS};
use super::labels::{Key, Label, RunLabels};
use super::laws::{Joint, Tolerance};

/// A run, and its problem size.
#[derive(Debug, Clone)]
pub struct SizedRun {
    pub size: f64,
    pub run: RunLabels,
}

/// Laws of N and p that counts and sizes of a label meet.
#[derive(Debug, Clone)]
pub(super) struct LawsOfSize {
    label: Label,
    pub count: Option<String>,
    pub bytes: Option<String>,
}

impl LawsOfSize {
    pub fn are_of(&self, key: Key) -> bool {
        self.label.key() == key
    }
}

/// The laws of all labels that the largest run has.
pub(super) fn joint_laws(runs: &[SizedRun], per_host: f64) -> Vec<LawsOfSize> {
    let Some(largest) = runs.last() else { return Vec::new() };
    let of_label = |label: &Label| {
        let points: Vec<Point> = points(runs, |run| run.label(label.key()));
        let text = |of: fn(&Label) -> f64, tolerance| {
            Some(joint(&points, &of, per_host, tolerance)?.text())
        };
        let count = text(|label| label.count, Tolerance::Count);
        let bytes = text(Label::bytes_of_operation, Tolerance::Bytes);
        let label = Label { stretches: Vec::new(), by_size: Vec::new(), ..label.clone() };
        LawsOfSize { label, count, bytes }
    };
    largest.run.labels.iter().map(of_label).collect()
}

/// Rank count and problem size of a run, and a label in it.
pub(super) type Point<'r> = (f64, f64, &'r Label);

pub(super) fn points<'r>(
    runs: &'r [SizedRun],
    label: impl Fn(&'r RunLabels) -> Option<&'r Label>,
) -> Vec<Point<'r>> {
    runs.iter().filter_map(|of| Some((f64::from(of.run.p), of.size, label(&of.run)?))).collect()
}

/// The law of N and p that a quantity meets at all rank counts and problem sizes.
pub(super) fn joint(
    points: &[Point],
    of: &dyn Fn(&Label) -> f64,
    per_host: f64,
    tolerance: Tolerance,
) -> Option<Joint> {
    let values: Vec<(f64, f64, f64)> =
        points.iter().map(|(p, size, label)| (*p, *size, of(label))).collect();
    Joint::of(&values, per_host, tolerance, (&TERMS, &SIZE_TERMS))
}
