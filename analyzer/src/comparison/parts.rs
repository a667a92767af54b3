//! Splits the difference of mean times into parts that add up to the nanosecond.

use std::collections::{BTreeMap, BTreeSet};

use super::place::CodeLocation;
use super::record::{Factors, Kind, Part, RunRecord};
use super::statistics::{self, Estimate, Location};

/// Identifies a part of a rank's time in all runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Kind of time.
    pub kind: Kind,
    /// Wait state, for waiting.
    pub state: Option<String>,
    /// Place in the program, without lines.
    pub spot: CodeLocation,
    /// Rank that was waited for, for waiting.
    pub delayed_by: Option<u32>,
}

impl Key {
    fn new(part: &Part, record: &RunRecord) -> Self {
        let spot = CodeLocation::key(&part.place, &record.sites);
        Self { kind: part.kind, state: part.state.clone(), spot, delayed_by: part.delayed_by }
    }
}

/// The difference of a part, for the mean rank in the mean run.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The part.
    pub key: Key,
    /// Place with line numbers, of the runs after if known, otherwise before.
    pub shown: CodeLocation,
    /// Nanoseconds of the mean rank, after minus before; these add up.
    pub ns: i64,
    /// Means and interval, nanoseconds.
    pub estimate: Estimate,
    /// For computing: nanoseconds per rank, after minus before, by group of ranks; medians over the
    /// runs, which do not add up.
    pub by_ranks: Vec<f64>,
}

/// The differences of all parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Differences {
    /// The difference of mean elapsed times, nanoseconds.
    pub elapsed_ns: i64,
    /// Largest difference first. Their sum and the unexplained rest are the difference of elapsed
    /// times.
    pub parts: Vec<Difference>,
    /// The difference that no part explains.
    pub unexplained_ns: i64,
    pub ranks_per_group: u32,
}

/// Division with a non-negative remainder.
fn div_rem_floor(numerator: i128, denominator: i128) -> (i128, i128) {
    (numerator.div_euclid(denominator), numerator.rem_euclid(denominator))
}

impl Differences {
    /// Compares runs that all have the same number of ranks; empty otherwise.
    pub fn new(before: &[RunRecord], after: &[RunRecord]) -> Self {
        let groups = |record: &RunRecord| (record.ranks, record.ranks_per_group);
        let ranks: BTreeSet<(u32, u32)> = before.iter().chain(after).map(groups).collect();
        let Some((ranks, ranks_per_group)) = ranks.first().copied().filter(|_| ranks.len() == 1)
        else {
            return Self::default();
        };
        let sums = [before, after].map(|side| side.iter().map(parts_by_key).collect::<Vec<_>>());
        let keys: BTreeSet<Key> =
            sums.iter().flatten().flat_map(|run| run.keys().cloned()).collect();
        // The mean rank in the mean run, over the common denominator of both sides, in whole
        // numbers.
        let (n, m) = (before.len() as i128, after.len() as i128);
        let denominator = n * m * i128::from(ranks);
        let over = |of: &dyn Fn(&BTreeMap<Key, PartTime>) -> i128| {
            let sum = |side: usize| sums[side].iter().map(of).sum::<i128>();
            sum(1) * n - sum(0) * m
        };
        let numerators: Vec<i128> = keys
            .iter()
            .map(|key| over(&|run| run.get(key).map_or(0, |found| i128::from(found.ns))))
            .collect();
        let elapsed =
            |side: &[RunRecord]| side.iter().map(|r| i128::from(r.elapsed_ns)).sum::<i128>();
        let whole = (elapsed(after) * n - elapsed(before) * m) * i128::from(ranks);
        let rounded =
            |numerator: i128| div_rem_floor(2 * numerator + denominator, 2 * denominator).0;
        let explained = rounded(numerators.iter().sum());
        let shares = integer_quotients(&numerators, denominator, explained);
        let parts = keys.into_iter().zip(shares);
        let mut parts: Vec<Difference> =
            parts.map(|(key, ns)| difference(key, ns, &sums, (ranks, ranks_per_group))).collect();
        parts.sort_by(|a, b| b.ns.abs().cmp(&a.ns.abs()).then_with(|| a.key.cmp(&b.key)));
        let elapsed_ns = rounded(whole);
        Self {
            elapsed_ns: elapsed_ns as i64,
            parts,
            unexplained_ns: (elapsed_ns - explained) as i64,
            ranks_per_group,
        }
    }

    /// The sum over some of the parts.
    pub fn sum(&self, of: impl Fn(&Difference) -> bool) -> i64 {
        self.parts.iter().filter(|part| of(part)).map(|part| part.ns).sum()
    }
}

/// Several parts combined.
#[derive(Debug, Clone, PartialEq)]
pub struct Group<N> {
    /// What they have in common.
    pub name: N,
    /// Nanoseconds of the mean rank, after minus before: the sum over the parts.
    pub ns: i64,
    /// Means and interval, nanoseconds.
    pub estimate: Estimate,
}

impl Differences {
    /// Combines parts with the same name, largest difference first; parts without a name are left
    /// out.
    pub fn groups<N: Ord + Clone>(
        &self,
        [before, after]: [&[RunRecord]; 2],
        name: impl Fn(&Key) -> Option<N>,
    ) -> Vec<Group<N>> {
        let mut sums: BTreeMap<N, i64> = BTreeMap::new();
        for part in &self.parts {
            if let Some(name) = name(&part.key) {
                *sums.entry(name).or_default() += part.ns;
            }
        }
        let by_run = |record: &RunRecord| {
            let mut sums: BTreeMap<N, f64> = BTreeMap::new();
            for part in &record.parts {
                if let Some(name) = name(&Key::new(part, record)) {
                    *sums.entry(name).or_default() += part.ns as f64 / f64::from(record.ranks);
                }
            }
            sums
        };
        let sides = [before, after].map(|side| side.iter().map(by_run).collect::<Vec<_>>());
        let groups = sums.into_iter().map(|(name, ns)| {
            let values = |side: &[BTreeMap<N, f64>]| -> Vec<Vec<f64>> {
                side.iter().map(|run| vec![run.get(&name).copied().unwrap_or(0.0)]).collect()
            };
            let estimate =
                statistics::compare(&values(&sides[0]), &values(&sides[1]), Location::Mean);
            Group { name, ns, estimate }
        });
        let mut groups: Vec<Group<N>> = groups.collect();
        groups.sort_by(|a, b| b.ns.abs().cmp(&a.ns.abs()).then_with(|| a.name.cmp(&b.name)));
        groups
    }
}

/// Integer quotients with a given sum: each is rounded down, and the rest goes to the largest
/// remainders.
fn integer_quotients(numerators: &[i128], denominator: i128, sum: i128) -> Vec<i64> {
    let divided: Vec<(i128, i128)> =
        numerators.iter().map(|of| div_rem_floor(*of, denominator)).collect();
    let mut shares: Vec<i64> = divided.iter().map(|(whole, _)| *whole as i64).collect();
    let left = sum - divided.iter().map(|(whole, _)| whole).sum::<i128>();
    let mut order: Vec<usize> = (0..divided.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(divided[*at].1), *at));
    for at in order.into_iter().take(left.max(0) as usize) {
        shares[at] += 1;
    }
    shares
}

/// A part of a run, summed over the ranks.
#[derive(Debug, Clone)]
struct PartTime {
    ns: i64,
    by_ranks: Vec<i64>,
    shown: CodeLocation,
}

/// The parts of a run by key; parts with the same key are combined.
fn parts_by_key(record: &RunRecord) -> BTreeMap<Key, PartTime> {
    let mut all: BTreeMap<Key, PartTime> = BTreeMap::new();
    for part in &record.parts {
        let shown = CodeLocation::for_display(&part.place, &record.sites);
        let found = all.entry(Key::new(part, record)).or_insert_with(|| PartTime {
            ns: 0,
            by_ranks: vec![0; part.by_ranks.len()],
            shown,
        });
        found.ns += part.ns;
        for (sum, ns) in found.by_ranks.iter_mut().zip(&part.by_ranks) {
            *sum += ns;
        }
    }
    all
}

fn difference(
    key: Key,
    ns: i64,
    sums: &[Vec<BTreeMap<Key, PartTime>>; 2],
    (ranks, ranks_per_group): (u32, u32),
) -> Difference {
    let values = |side: &[BTreeMap<Key, PartTime>]| -> Vec<Vec<f64>> {
        let value =
            |run: &BTreeMap<Key, PartTime>| run.get(&key).map_or(0.0, |found| found.ns as f64);
        side.iter().map(|run| vec![value(run) / f64::from(ranks)]).collect()
    };
    let estimate = statistics::compare(&values(&sums[0]), &values(&sums[1]), Location::Mean);
    let groups = ranks.div_ceil(ranks_per_group) as usize;
    let in_group = |group: usize| (ranks - group as u32 * ranks_per_group).min(ranks_per_group);
    // The median over the runs: a disturbed run does not show which ranks changed.
    let typical = |side: &[BTreeMap<Key, PartTime>], group: usize| {
        let ns = |run: &BTreeMap<Key, PartTime>| {
            run.get(&key).and_then(|of| of.by_ranks.get(group).copied())
        };
        let mut values: Vec<f64> = side.iter().map(|run| ns(run).unwrap_or(0) as f64).collect();
        crate::statistics::median(&mut values).unwrap_or(0.0) / f64::from(in_group(group))
    };
    let by_ranks = match key.kind {
        Kind::Computing => {
            (0..groups).map(|group| typical(&sums[1], group) - typical(&sums[0], group)).collect()
        }
        _ => Vec::new(),
    };
    let shown = sums.iter().rev().flatten().find_map(|run| Some(run.get(&key)?.shown.clone()));
    let shown = shown.unwrap_or_else(|| key.spot.clone());
    Difference { key, shown, ns, estimate, by_ranks }
}

/// A factor of the efficiency tree, or a share of all ranks' time.
#[derive(Debug, Clone, PartialEq)]
pub struct FactorDifference {
    /// Name in documents.
    pub name: &'static str,
    /// Both means, and the interval.
    pub estimate: Estimate,
}

/// The factors that are known in all runs. They are meaningful for different rank counts, too.
pub fn tree(before: &[RunRecord], after: &[RunRecord]) -> Vec<FactorDifference> {
    type Factor = fn(&Factors) -> Option<f64>;
    let factors: [(&'static str, Factor); 8] = [
        ("parallel", |of| Some(of.parallel)),
        ("load_balance", |of| of.load_balance),
        ("within_hosts", |of| of.within_hosts),
        ("between_hosts", |of| of.between_hosts),
        ("communication", |of| Some(of.communication)),
        ("serialisation", |of| of.serialisation),
        ("moving_imbalance", |of| of.moving_imbalance),
        ("transfer", |of| of.transfer),
    ];
    let compared = |of: &dyn Fn(&RunRecord) -> Option<f64>| {
        let values = |side: &[RunRecord]| -> Option<Vec<Vec<f64>>> {
            side.iter().map(|record| of(record).map(|value| vec![value])).collect()
        };
        Some(statistics::compare(&values(before)?, &values(after)?, Location::Mean))
    };
    let of_factors = factors.into_iter().filter_map(|(name, factor)| {
        let estimate = compared(&|record| factor(record.tree.as_ref()?))?;
        Some(FactorDifference { name, estimate })
    });
    of_factors.collect()
}

/// Means of the kinds of time as shares of all ranks' time, before and after. They are meaningful
/// for different rank counts, too.
pub fn shares(before: &[RunRecord], after: &[RunRecord]) -> Vec<(Kind, Estimate)> {
    let share = |record: &RunRecord, kind: Kind| {
        record.mean_ns(|part| part.kind == kind) / record.elapsed_ns as f64
    };
    let of = |kind: Kind| {
        let values = |side: &[RunRecord]| -> Vec<Vec<f64>> {
            side.iter().map(|record| vec![share(record, kind)]).collect()
        };
        (kind, statistics::compare(&values(before), &values(after), Location::Mean))
    };
    Kind::ALL.map(of).to_vec()
}
