//! Sizes of one label are continued each by itself where every run has the same number of them and the path meets
//! each by a law: the levels of a multigrid method, the borders of a search. Sizes that the path meets now and then, as
//! those of the ends of a row, stay together.

use super::basis::TERMS;
use super::labels::{Kind, Label, Pattern, RunLabels};
use super::laws::{Law, Series, Tolerance};

/// Sizes of a label that are continued each by itself, at most.
const MOST: usize = 32;

/// Puts a label of each size in place of labels whose sizes every run tells apart, and equally many.
pub(super) fn separate_sizes(runs: &mut [RunLabels]) {
    let mut known: Vec<(Label, Option<usize>)> = Vec::new();
    for run in runs.iter() {
        for label in &run.labels {
            let sizes = Some(label.by_size.len()).filter(|sizes| is_separable(label, *sizes));
            match known.iter_mut().find(|(of, _)| of.key() == label.key()) {
                Some((_, common)) => *common = common.filter(|common| Some(*common) == sizes),
                None => known.push((label.clone(), sizes)),
            }
        }
    }
    for (label, sizes) in &mut known {
        *sizes = sizes.filter(|sizes| (0..*sizes).all(|size| has_law(runs, label, size)));
    }
    for run in runs.iter_mut() {
        let separated = |label: Label| {
            let key = label.key();
            let is_separate = known.iter().any(|(of, sizes)| of.key() == key && sizes.is_some());
            match is_separate {
                true => with_sizes(label),
                false => vec![Label { by_size: Vec::new(), ..label }],
            }
        };
        run.labels = std::mem::take(&mut run.labels).into_iter().flat_map(separated).collect();
    }
}

/// Whether the path meets one of a label's sizes by a law.
fn has_law(runs: &[RunLabels], label: &Label, size: usize) -> bool {
    let counts = runs.iter().filter(|run| !run.counts_only).filter_map(|run| {
        let of_size = run.label(label.key())?.by_size.get(size)?;
        Some((f64::from(run.p), of_size.count))
    });
    let (p, values): (Vec<f64>, Vec<f64>) = counts.unzip();
    let series = Series { p: &p, values: &values, per_host: f64::MAX, terms: &TERMS };
    Law::of(series, Tolerance::Count).is_some()
}

/// What one member sends to all others has bytes only at the root.
fn is_separable(label: &Label, sizes: usize) -> bool {
    let has_sizes = match label.kind {
        Kind::Messages => true,
        Kind::Collective(pattern) => pattern != Pattern::FromRoot,
        Kind::Computation | Kind::Other => false,
    };
    // Messages to and from MPI_PROC_NULL have no bytes.
    let has_all = label.by_size.first().is_some_and(|of| of.each_bytes() > 0.0);
    has_sizes && has_all && (2..=MOST).contains(&sizes)
}

fn with_sizes(label: Label) -> Vec<Label> {
    let Label { name, first_use, spread, group, ranks, by_size, .. } = label;
    let of_size = |(number, of): (usize, Label)| Label {
        name: name.clone(),
        first_use,
        spread,
        group,
        ranks,
        size: Some(number),
        ..of
    };
    by_size.into_iter().enumerate().map(of_size).collect()
}
