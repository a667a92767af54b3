//! Finds lasting changes in a series of runs.

use super::record::RunRecord;
use super::statistics::{self, ALPHA, Estimate, Location, median};

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
}

/// A lasting change of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Position of the first run after the change.
    pub at: usize,
    /// Compares the runs since the previous change with those up to the next one.
    pub estimate: Estimate,
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
            Some((
                super::place::Spot::key(&of.anchor, &run.sites),
                run.share_of_iterations() >= 0.8,
            ))
        };
        let first = anchor(runs[0]);
        let of_iteration =
            matches!(first, Some((_, true))) && runs.iter().all(|run| anchor(run) == first);
        let value = |run: &&RunRecord| match run.iterations.as_ref().filter(|_| of_iteration) {
            Some(of) => median(&mut of.elapsed.iter().map(|ns| *ns as f64).collect::<Vec<_>>()),
            None => run.elapsed_ns as f64,
        };
        let values: Vec<f64> = runs.iter().map(value).collect();
        let mut ends = vec![0, values.len()];
        split(&values, (0, values.len()), &mut ends);
        ends.sort_unstable();
        let stretches: Vec<&[f64]> = ends.windows(2).map(|of| &values[of[0]..of[1]]).collect();
        let changes = stretches
            .windows(2)
            .zip(&ends[1..])
            .map(|(of, at)| Change { at: *at, estimate: compared(of[0], of[1]) });
        let changes = changes.collect();
        Self { runs, of_iteration, values, changes }
    }
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
    }
}
