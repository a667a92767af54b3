//! Where a series of runs changes for good.

use super::record::RunRecord;
use super::statistics::{self, ALPHA, Estimate, Location, median};

/// Runs on either side of a change.
const LEAST_RUNS: usize = 3;
/// Smaller changes are not marked.
const LEAST_CHANGE: f64 = 0.01;

/// Runs that did the same work on the same machine, in the order of time.
#[derive(Debug)]
pub struct Series<'r> {
    /// The oldest first.
    pub runs: Vec<&'r RunRecord>,
    /// Whether an iteration's time is followed, not elapsed time.
    pub of_iteration: bool,
    /// Nanoseconds of each run.
    pub values: Vec<f64>,
    /// Where it changes, in the order of time.
    pub changes: Vec<Change>,
}

/// From this run on it takes longer, or less long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Position of the first run after it.
    pub at: usize,
    /// The runs since the change before, and up to the next.
    pub estimate: Estimate,
}

impl<'r> Series<'r> {
    /// Sorts runs, given the oldest first, into series; the longest first.
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

/// Finds the place that divides a stretch best, where one does so for certain, and goes on in both halves. The more
/// places there are, the more certain it has to be (Bonferroni).
fn split(values: &[f64], (from, to): (usize, usize), ends: &mut Vec<usize>) {
    if to - from < 2 * LEAST_RUNS {
        return;
    }
    let places = from + LEAST_RUNS..=to - LEAST_RUNS;
    let limit = ALPHA / places.clone().count() as f64;
    let estimates = places.map(|at| (at, compared(&values[from..at], &values[at..to])));
    let best = estimates.min_by(|(_, a), (_, b)| a.p.total_cmp(&b.p));
    if let Some((at, estimate)) = best
        && estimate.p < limit
        && estimate.relative().abs() >= LEAST_CHANGE
    {
        ends.push(at);
        split(values, (from, at), ends);
        split(values, (at, to), ends);
    }
}
