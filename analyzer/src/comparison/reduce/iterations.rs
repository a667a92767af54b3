//! Condenses the loops of a run.

use std::collections::BTreeMap;

use crate::causes::{Causes, NO_CONTEXT, Phase as FoundPhase};

use super::super::place::{Place, SiteTable};
use super::super::record::{Iterations, Phase, Series};
use super::time::nanoseconds;

/// Maximum number of figures of a loop in a record.
const MAX_FIGURES: u64 = 64;
/// Maximum number of places with figures of their own.
const MAX_PLACES: usize = 6;
/// Minimum share of the loop for a place with figures of its own.
const MIN_PART: f64 = 0.01;

/// The longest loop, and a summary of all loops.
pub(super) fn loops(causes: &Causes, sites: &mut SiteTable) -> (Option<Iterations>, Vec<Phase>) {
    let phases = causes.phases.iter().map(|phase| Phase {
        anchor: anchor(causes, phase, sites),
        iterations: phase.iterations.len() as u64,
        ns: nanoseconds(causes, phase.ticks()),
    });
    let phases: Vec<Phase> = phases.collect();
    let longest = causes.phases.first().filter(|phase| !phase.iterations.is_empty());
    let iterations = longest.map(|phase| condensed(causes, phase, sites));
    (iterations, phases)
}

/// The call that begins an iteration.
fn anchor(causes: &Causes, phase: &FoundPhase, sites: &mut SiteTable) -> Place {
    match phase.context {
        NO_CONTEXT => Place::None,
        place => sites.place(causes.contexts.get(place)),
    }
}

/// Means of consecutive figures; the last one may be of fewer.
fn means(figures: &[i64], per_figure: u64) -> Vec<i64> {
    let mean = |of: &[i64]| of.iter().sum::<i64>() / of.len() as i64;
    figures.chunks(per_figure as usize).map(mean).collect()
}

fn condensed(causes: &Causes, phase: &FoundPhase, sites: &mut SiteTable) -> Iterations {
    let count = phase.iterations.len();
    let ranks = causes.lines.all.iter().map(|line| line.position + 1).max().unwrap_or(1);
    let per_figure = (count as u64).div_ceil(MAX_FIGURES).max(1);
    let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
    for position in 0..ranks {
        phase.for_each_sum(position, (&causes.profiles, &causes.lines), |_, context, ticks| {
            if causes.contexts.get(context).is_computing() {
                *sums.entry(context).or_default() += ticks;
            }
        });
    }
    let whole = phase.ticks() as f64 * ranks as f64;
    let mut largest: Vec<(u32, i64)> = sums.into_iter().collect();
    largest.retain(|(_, ticks)| *ticks as f64 >= MIN_PART * whole);
    largest.sort_by_key(|(context, ticks)| (std::cmp::Reverse(*ticks), *context));
    largest.truncate(MAX_PLACES);
    let numbers: BTreeMap<u32, usize> =
        largest.iter().enumerate().map(|(at, (context, _))| (*context, at)).collect();
    let mut all = vec![vec![0i64; count]; largest.len()];
    let mut most = all.clone();
    for position in 0..ranks {
        let mut of_rank = vec![vec![0i64; count]; largest.len()];
        phase.for_each_sum(
            position,
            (&causes.profiles, &causes.lines),
            |iteration, context, ticks| {
                if let Some(at) = numbers.get(&context) {
                    of_rank[*at][iteration] += ticks;
                }
            },
        );
        for (at, of_rank) in of_rank.iter().enumerate() {
            for (iteration, ticks) in of_rank.iter().enumerate() {
                all[at][iteration] += ticks;
                most[at][iteration] = most[at][iteration].max(*ticks);
            }
        }
    }
    let condense = |ticks: &[i64], of: usize| -> Vec<i64> {
        let ns: Vec<i64> = ticks.iter().map(|t| nanoseconds(causes, *t) / of as i64).collect();
        means(&ns, per_figure)
    };
    let figures = |of: fn(&crate::causes::Iteration) -> i64| -> Vec<i64> {
        phase.iterations.iter().map(of).collect()
    };
    let places = largest.iter().enumerate().map(|(at, (context, _))| Series {
        place: sites.place(causes.contexts.get(*context)),
        mean: condense(&all[at], ranks),
        most: condense(&most[at], 1),
    });
    let places = places.collect();
    Iterations {
        anchor: anchor(causes, phase, sites),
        count: count as u64,
        per_figure,
        elapsed: condense(&figures(|of| of.ticks), 1),
        median: Some(nanoseconds(causes, phase.statistics().median)),
        computing: condense(&figures(|of| of.computing), ranks),
        waiting: condense(&figures(|of| of.waiting), ranks),
        places,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_figures_are_averaged() {
        assert_eq!(means(&[1, 3, 10, 20, 7], 2), [2, 15, 7]);
        assert_eq!(means(&[5], 1), [5]);
    }
}
