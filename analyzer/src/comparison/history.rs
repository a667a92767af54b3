//! Finds lasting changes in a series of runs, also those that were undone, and where counts changed.
//! Where ranks lacked cores, a change is judged as a comparison is ([`Basis`]).

use super::basis::Basis;
use super::place::CodeLocation;
use super::record::RunRecord;
use super::statistics::{self, ALPHA, Estimate, Location};
use super::{alignment, counts};

/// Minimum number of runs on either side of a change.
const MIN_RUNS: usize = 3;
/// Minimum relative change that is marked.
const MIN_CHANGE: f64 = 0.01;

/// Runs that did the same work on the same machine, in chronological order.
#[derive(Debug)]
pub struct Series<'r> {
    /// Oldest first.
    pub runs: Vec<&'r RunRecord>,
    /// Whether the values are times of an iteration instead of elapsed times.
    pub of_iteration: bool,
    /// Value of each run, nanoseconds.
    pub values: Vec<f64>,
    /// The changes, in chronological order.
    pub changes: Vec<Change>,
    /// Where the time changed but nothing tells whether the program did, because ranks lacked cores;
    /// in chronological order.
    pub undecided: Vec<Change>,
    /// Positions of the first runs in which calls, bytes, messages or partners are others.
    pub other_counts: Vec<usize>,
}

/// A lasting change of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Position of the first run after the change.
    pub at: usize,
    /// Compares the runs since the previous change with those up to the next one.
    pub estimate: Estimate,
    /// What decides whether the time differs.
    pub basis: Basis,
}

impl<'r> Series<'r> {
    /// Groups runs, given oldest first, into series; the longest series first.
    pub fn all(runs: &'r [RunRecord]) -> Vec<Self> {
        let mut groups: Vec<Vec<&RunRecord>> = Vec::new();
        for run in runs {
            match groups.iter_mut().find(|group| group[0].is_alike(run)) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        groups.into_iter().map(Self::new).collect()
    }

    fn new(runs: Vec<&'r RunRecord>) -> Self {
        let anchor = |run: &RunRecord| {
            let of = run.iterations.as_ref()?;
            Some((CodeLocation::key(&of.anchor, &run.sites), run.share_of_iterations() >= 0.8))
        };
        let mut aligned: Vec<RunRecord> = runs.iter().map(|run| (*run).clone()).collect();
        alignment::align(aligned.iter_mut().rev());
        let first = anchor(&aligned[0]);
        let of_iteration =
            matches!(first, Some((_, true))) && aligned.iter().all(|run| anchor(run) == first);
        let value = |run: &&RunRecord| match run.iterations.as_ref().filter(|_| of_iteration) {
            Some(of) => of.median_ns(),
            None => run.elapsed_ns as f64,
        };
        let values: Vec<f64> = runs.iter().map(value).collect();
        let mut ends = vec![0, values.len()];
        split(&values, (0, values.len()), &mut ends);
        ends.sort_unstable();
        let changes = ends.windows(3).map(|ends| {
            let (before, after) = (ends[0]..ends[1], ends[1]..ends[2]);
            let estimate = compared(&values[before.clone()], &values[after.clone()]);
            let sides = [&aligned[before], &aligned[after]];
            let basis = Basis::find(sides, &estimate, &counts::changes(sides[0], sides[1]).0);
            Change { at: ends[1], estimate, basis }
        });
        let (undecided, changes) =
            changes.partition(|change| matches!(change.basis, Basis::LackOfCores { .. }));
        let other_counts = other_counts(&aligned.iter().collect::<Vec<_>>());
        Self { runs, of_iteration, values, changes, undecided, other_counts }
    }
}

/// Where counts changed between two runs and the next two; counts that vary within two are left out.
fn other_counts(runs: &[&RunRecord]) -> Vec<usize> {
    let owned = |runs: &[&RunRecord]| runs.iter().map(|run| (*run).clone()).collect::<Vec<_>>();
    let changed = |at: &usize| {
        let after = &runs[*at..runs.len().min(at + 2)];
        let of_pair = counts::changes(&owned(&runs[at.saturating_sub(2)..*at]), &owned(after)).0;
        let of_two = counts::changes(&owned(&runs[at - 1..*at]), &owned(&after[..1])).0;
        !of_pair.is_empty() && !of_two.is_empty()
    };
    (1..runs.len()).filter(changed).collect()
}

fn compared(before: &[f64], after: &[f64]) -> Estimate {
    let runs = |of: &[f64]| -> Vec<Vec<f64>> { of.iter().map(|value| vec![*value]).collect() };
    statistics::compare(&runs(before), &runs(after), Location::Mean)
}

/// Finds the position that divides a stretch best, if it does so with certainty, and continues in
/// both parts. The more candidates there are, the more certain it has to be (Bonferroni).
fn split(values: &[f64], (from, to): (usize, usize), ends: &mut Vec<usize>) {
    if to - from < 2 * MIN_RUNS {
        return;
    }
    let positions = from + MIN_RUNS..=to - MIN_RUNS;
    let limit = ALPHA / positions.clone().count() as f64;
    let estimates = positions.map(|at| (at, compared(&values[from..at], &values[at..to])));
    let best = estimates.min_by(|(_, a), (_, b)| a.p.total_cmp(&b.p));
    if let Some((at, estimate)) = best
        && estimate.p < limit
        && estimate.relative().abs() >= MIN_CHANGE
    {
        ends.push(at);
        split(values, (from, at), ends);
        split(values, (at, to), ends);
    } else if let Some((begin, end)) = for_a_while(values, (from, to)) {
        ends.extend([begin, end]);
        for part in [(from, begin), (begin, end), (end, to)] {
            split(values, part, ends);
        }
    }
}

/// Most runs among which a change that was undone is looked for: their pairs are tried.
const MAX_RUNS_FOR_PAIRS: usize = 200;

/// The part of a stretch that differs best from the runs before and behind it together, if it does so with certainty: a
/// change that was undone, which no single position divides well.
fn for_a_while(values: &[f64], (from, to): (usize, usize)) -> Option<(usize, usize)> {
    if to - from < 3 * MIN_RUNS || to - from > MAX_RUNS_FOR_PAIRS {
        return None;
    }
    let begins = from + MIN_RUNS..=to - 2 * MIN_RUNS;
    let pairs =
        begins.flat_map(|begin| (begin + MIN_RUNS..=to - MIN_RUNS).map(move |end| (begin, end)));
    let pairs: Vec<(usize, usize)> = pairs.collect();
    let limit = ALPHA / pairs.len() as f64;
    let outside = |(begin, end): (usize, usize)| [&values[from..begin], &values[end..to]].concat();
    let estimates =
        pairs.iter().map(|pair| (*pair, compared(&outside(*pair), &values[pair.0..pair.1])));
    let best = estimates.min_by(|(_, a), (_, b)| a.p.total_cmp(&b.p));
    let is_change = |of: &Estimate| of.p < limit && of.relative().abs() >= MIN_CHANGE;
    best.filter(|(_, estimate)| is_change(estimate)).map(|(pair, _)| pair)
}
