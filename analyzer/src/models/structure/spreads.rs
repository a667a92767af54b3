//! A communicator of a host's ranks has all ranks while there is one host, that of a grid's row while there is one row.

use super::labels::{Label, RunLabels, Spread};

/// Calls on communicators of all ranks in some runs and of a part of them in others are one label if no run has
/// both there: they get the kind that they have in the largest run.
pub(super) fn join_spreads(runs: &mut [RunLabels]) {
    let mut known: Vec<(Label, Option<Spread>)> = Vec::new();
    for run in runs.iter().rev() {
        for label in &run.labels {
            let is_alone = run.labels.iter().filter(|of| is_same(of, label)).count() == 1;
            match known.iter_mut().find(|(of, _)| is_same(of, label)) {
                Some((_, spread)) => *spread = spread.filter(|_| is_alone),
                None => known.push((label.clone(), is_alone.then_some(label.spread))),
            }
        }
    }
    for label in runs.iter_mut().flat_map(|run| &mut run.labels) {
        let of = known.iter().find(|(of, _)| is_same(of, label));
        label.spread = of.and_then(|(_, spread)| *spread).unwrap_or(label.spread);
    }
}

fn is_same(one: &Label, other: &Label) -> bool {
    (&one.name, one.first_use) == (&other.name, other.first_use)
}
