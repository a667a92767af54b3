//! Places of computation that the path meets in turn: a pipeline's path may follow its first rank for long or change
//! ranks early, for both take as long. How often it meets each place has then no law, but how often it meets any of them.

use super::basis::TERMS;
use super::labels::{Key, Kind, Label, RunLabels};
use super::laws::{Law, Series, Tolerance};

/// Places that are looked at.
const MOST: usize = 8;

/// Joins computation at several places if only the sum of their counts on the path has a law.
pub(super) fn join_alternatives(runs: &mut [RunLabels]) {
    while let Some(names) = alternatives(runs) {
        for run in runs.iter_mut() {
            let (joined, others): (Vec<Label>, Vec<Label>) = std::mem::take(&mut run.labels)
                .into_iter()
                .partition(|label| names.contains(&label.name) && is_computation(label));
            run.labels = others;
            let sum = joined.into_iter().reduce(|mut sum, label| {
                sum.join(&label);
                sum
            });
            run.labels.extend(sum.map(|sum| Label { name: names.join(", "), ..sum }));
        }
    }
}

fn is_computation(label: &Label) -> bool {
    label.kind == Kind::Computation && !label.first_use
}

/// Names of the fewest labels without laws of their own whose counts together have one.
fn alternatives(runs: &[RunLabels]) -> Option<Vec<String>> {
    // The largest run first.
    let of_runs = runs.iter().rev().flat_map(|run| &run.labels);
    let mut labels: Vec<&Label> = Vec::new();
    for label in of_runs.filter(|label| is_computation(label) && label.seconds > 0.0) {
        if !labels.iter().any(|known| known.key() == label.key()) {
            labels.push(label);
        }
    }
    let without: Vec<Key> =
        labels.iter().map(|of| of.key()).filter(|key| !has_law(runs, &[*key])).take(MOST).collect();
    let n = without.len();
    let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| vec![a, b]));
    let triples =
        (0..n).flat_map(|a| (a + 1..n).flat_map(move |b| (b + 1..n).map(move |c| vec![a, b, c])));
    let all = (n > 3).then(|| (0..n).collect::<Vec<_>>());
    let sets = pairs.chain(triples).chain(all);
    let keys = |set: Vec<usize>| set.into_iter().map(|at| without[at]).collect::<Vec<Key>>();
    let found = sets.map(keys).find(|keys| has_law(runs, keys))?;
    Some(found.into_iter().map(|key| key.name.to_owned()).collect())
}

fn has_law(runs: &[RunLabels], keys: &[Key]) -> bool {
    let counts = |run: &RunLabels| {
        let labels = keys.iter().filter_map(|key| run.label(*key));
        (f64::from(run.p), labels.map(|label| label.count).sum::<f64>())
    };
    let (p, values): (Vec<f64>, Vec<f64>) =
        runs.iter().map(counts).filter(|(_, count)| *count > 0.0).unzip();
    let series = Series { p: &p, values: &values, per_host: f64::MAX, terms: &TERMS };
    p.len() == runs.len() && Law::of(series, Tolerance::Count).is_some()
}
