//! Tests times for differences: elapsed time, an iteration, and the computing of the program's
//! parts.

use std::collections::{BTreeMap, BTreeSet};

use super::place::CodeLocation;
use super::record::{Iterations, Kind, RunRecord};
use super::statistics::{self, ALPHA, Estimate, Location};

/// Rate of false discoveries among the parts of a program, in both directions.
pub(super) const RATE: f64 = 2.0 * ALPHA;
/// Minimum share of the run for a part to be tested.
const MIN_PART: f64 = 0.01;

/// A part of the program whose computing is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// The part, without lines.
    pub spot: CodeLocation,
    /// Whether this is the time of the slowest rank, not of the mean rank.
    pub most: bool,
    /// Whether this is the time per iteration, not per run.
    pub of_iteration: bool,
    /// The estimate, nanoseconds.
    pub estimate: Estimate,
    /// Whether the difference is significant, considering how many parts are tested.
    pub is_significant: bool,
}

fn totals(side: &[RunRecord], of: impl Fn(&RunRecord) -> f64) -> Vec<Vec<f64>> {
    side.iter().map(|record| vec![of(record)]).collect()
}

/// Elapsed time, nanoseconds. With one run on a side, its spread is unknown.
pub fn elapsed(before: &[RunRecord], after: &[RunRecord]) -> Estimate {
    let of = |side: &[RunRecord]| totals(side, |record| record.elapsed_ns as f64);
    statistics::compare(&of(before), &of(after), Location::Mean)
}

/// Whether all runs have the same loop, identified by the call that begins its iterations.
fn has_one_loop(before: &[RunRecord], after: &[RunRecord]) -> bool {
    let anchor = |record: &RunRecord| {
        let of = record.iterations.as_ref()?;
        Some(CodeLocation::key(&of.anchor, &record.sites))
    };
    let anchors: BTreeSet<Option<CodeLocation>> = before.iter().chain(after).map(anchor).collect();
    anchors.len() == 1 && !anchors.contains(&None)
}

fn numbers(figures: &[i64]) -> Vec<f64> {
    figures.iter().map(|ns| *ns as f64).collect()
}

/// Time of a typical iteration, nanoseconds, if all runs have the same loop.
pub fn iteration(before: &[RunRecord], after: &[RunRecord]) -> Option<Estimate> {
    if !has_one_loop(before, after) {
        return None;
    }
    let of = |side: &[RunRecord]| -> Vec<Vec<f64>> {
        side.iter().flat_map(|record| &record.iterations).map(Iterations::lengths_ns).collect()
    };
    Some(statistics::compare(&of(before), &of(after), Location::Median))
}

/// Computing and waiting of the mean rank in a typical iteration, nanoseconds.
pub fn of_iteration(before: &[RunRecord], after: &[RunRecord]) -> Vec<(Kind, Estimate)> {
    if !has_one_loop(before, after) {
        return Vec::new();
    }
    type Figures = fn(&Iterations) -> &[i64];
    let kinds: [(Kind, Figures); 2] =
        [(Kind::Computing, |of| &of.computing), (Kind::Waiting, |of| &of.waiting)];
    let compared = |figures: Figures| {
        let of = |side: &[RunRecord]| -> Vec<Vec<f64>> {
            let loops = side.iter().flat_map(|record| &record.iterations);
            loops.map(|of| numbers(figures(of))).collect()
        };
        statistics::compare(&of(before), &of(after), Location::Median)
    };
    kinds.map(|(kind, figures)| (kind, compared(figures))).to_vec()
}

/// A loop that all runs have: its first call, its iterations in the first run of each side, and its
/// duration.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseTime {
    /// The call that begins an iteration.
    pub anchor: CodeLocation,
    /// Number of iterations before and after.
    pub iterations: (u64, u64),
    /// The estimate, nanoseconds.
    pub estimate: Estimate,
}

/// The loops that all runs have.
pub fn phases(before: &[RunRecord], after: &[RunRecord]) -> Vec<PhaseTime> {
    let of = |record: &RunRecord| -> BTreeMap<CodeLocation, (u64, f64)> {
        let phases = record.phases.iter().map(|phase| {
            let anchor = CodeLocation::key(&phase.anchor, &record.sites);
            (anchor, (phase.iterations, phase.ns as f64))
        });
        phases.collect()
    };
    let sides = [before, after].map(|side| side.iter().map(of).collect::<Vec<_>>());
    let all = || sides.iter().flatten();
    let anchors = sides[0].first().into_iter().flat_map(BTreeMap::keys);
    let common = anchors.filter(|anchor| all().all(|run| run.contains_key(*anchor)));
    let compared = common.map(|anchor| {
        let values = |side: &[BTreeMap<CodeLocation, (u64, f64)>]| -> Vec<Vec<f64>> {
            side.iter().map(|run| vec![run[anchor].1]).collect()
        };
        PhaseTime {
            anchor: anchor.clone(),
            iterations: (sides[0][0][anchor].0, sides[1][0][anchor].0),
            estimate: statistics::compare(&values(&sides[0]), &values(&sides[1]), Location::Mean),
        }
    });
    compared.collect()
}

/// Computing of the program's parts: per iteration if all runs have the same loop, otherwise per
/// run.
pub fn regions(before: &[RunRecord], after: &[RunRecord]) -> Vec<Tested> {
    let mut tested = match has_one_loop(before, after) {
        true => by_iteration(before, after),
        false => by_run(before, after),
    };
    let p_values: Vec<f64> = tested.iter().map(|one| one.estimate.p).collect();
    for (one, found) in tested.iter_mut().zip(statistics::discoveries(&p_values, RATE)) {
        one.is_significant = found && one.estimate.degrees >= statistics::MIN_DEGREES;
    }
    tested
}

type Figures = BTreeMap<CodeLocation, (Vec<f64>, Vec<f64>)>;

fn by_iteration(before: &[RunRecord], after: &[RunRecord]) -> Vec<Tested> {
    let of = |record: &RunRecord| -> Figures {
        let places = record.iterations.iter().flat_map(|of| &of.places);
        let figures = places.map(|series| {
            let spot = CodeLocation::key(&series.place, &record.sites);
            (spot, (numbers(&series.mean), numbers(&series.most)))
        });
        figures.collect()
    };
    let sides = [before, after].map(|side| side.iter().map(of).collect::<Vec<_>>());
    let mut all = sides.iter().flatten();
    let Some(first) = all.next() else { return Vec::new() };
    // Parts that are not among the largest of every run have no figures there.
    let spots = first.keys().filter(|spot| all.clone().all(|run| run.contains_key(*spot)));
    let length = iteration(before, after).map_or(0.0, |of| of.before.max(of.after));
    let mut tested = Vec::new();
    for spot in spots {
        for most in [false, true] {
            let values = |side: &[Figures]| -> Vec<Vec<f64>> {
                let of = |run: &Figures| {
                    run.get(spot).map(|(mean, of)| if most { of } else { mean }.clone())
                };
                side.iter().filter_map(of).collect()
            };
            let estimate =
                statistics::compare(&values(&sides[0]), &values(&sides[1]), Location::Median);
            if estimate.before.max(estimate.after) >= MIN_PART * length {
                let spot = spot.clone();
                tested.push(Tested {
                    spot,
                    most,
                    of_iteration: true,
                    estimate,
                    is_significant: false,
                });
            }
        }
    }
    tested
}

fn by_run(before: &[RunRecord], after: &[RunRecord]) -> Vec<Tested> {
    let of = |record: &RunRecord| -> BTreeMap<CodeLocation, (f64, f64)> {
        let mut sums: BTreeMap<CodeLocation, (f64, f64)> = BTreeMap::new();
        for part in record.parts.iter().filter(|part| part.kind == Kind::Computing) {
            let sum = sums.entry(CodeLocation::key(&part.place, &record.sites)).or_default();
            sum.0 += part.ns as f64 / f64::from(record.ranks);
            let most = part.by_ranks.iter().max().copied().unwrap_or(0) as f64;
            sum.1 += most / f64::from(record.ranks_per_group);
        }
        sums
    };
    let sides = [before, after].map(|side| side.iter().map(of).collect::<Vec<_>>());
    let spots: BTreeSet<&CodeLocation> = sides.iter().flatten().flat_map(BTreeMap::keys).collect();
    let length = elapsed(before, after).before;
    let mut tested = Vec::new();
    for spot in spots.into_iter().filter(|spot| **spot != CodeLocation::Elsewhere) {
        for most in [false, true] {
            let values = |side: &[BTreeMap<CodeLocation, (f64, f64)>]| -> Vec<Vec<f64>> {
                let of = |run: &BTreeMap<CodeLocation, (f64, f64)>| {
                    run.get(spot).copied().unwrap_or_default()
                };
                side.iter().map(|run| vec![if most { of(run).1 } else { of(run).0 }]).collect()
            };
            let estimate =
                statistics::compare(&values(&sides[0]), &values(&sides[1]), Location::Mean);
            if estimate.before.max(estimate.after) >= MIN_PART * length {
                let spot = spot.clone();
                tested.push(Tested {
                    spot,
                    most,
                    of_iteration: false,
                    estimate,
                    is_significant: false,
                });
            }
        }
    }
    tested
}
