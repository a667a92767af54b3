//! First calls are kept apart only where they take longer.

use super::labels::{Key, Label, RunLabels, Spread};

/// First calls that take about as long as later ones are like these.
const LIKE_LATER: f64 = 1.5;

/// Joins first calls with later ones of the same label, unless they take longer in every run.
pub(super) fn join_first_uses(runs: &mut [RunLabels]) {
    let mut longer: Vec<(String, Spread, bool)> = Vec::new();
    for run in runs.iter().filter(|run| !run.counts_only) {
        for first in run.labels.iter().filter(|label| label.first_use) {
            let later = run.label(Key { first_use: false, ..first.key() });
            let mean = |label: &Label| label.all_seconds / label.all_count.max(1.0);
            let is_longer = later.is_none_or(|later| mean(first) > LIKE_LATER * mean(later));
            let known = longer.iter_mut().find(|of| of.0 == first.name && of.1 == first.spread);
            match known {
                Some(known) => known.2 &= is_longer,
                None => longer.push((first.name.clone(), first.spread, is_longer)),
            }
        }
    }
    for run in runs.iter_mut() {
        for (name, spread, _) in longer.iter().filter(|(.., is_longer)| !is_longer) {
            let is = |label: &Label, first_use| {
                label.name == *name && label.spread == *spread && label.first_use == first_use
            };
            let Some(at) = run.labels.iter().position(|label| is(label, true)) else { continue };
            let mut first = run.labels.remove(at);
            match run.labels.iter_mut().find(|label| is(label, false)) {
                Some(later) => later.join(&first),
                None => {
                    first.first_use = false;
                    run.labels.push(first);
                }
            }
        }
    }
}
