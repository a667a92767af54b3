//! Whether runs are slower than a baseline allows.

use super::Comparison;
use super::quantities::Tested;
use super::record::RunRecord;
use super::statistics::{ALPHA, Estimate, LEAST_DEGREES};
use super::subject::{Difference, Mixed, Relation};

/// Elapsed time has to be so many times as certain as the time that decides.
const BESIDE: f64 = 4.0;
/// A part of the program that is slower counts if it costs so much of what the whole run may be slower.
const LEAST_COST: f64 = 0.2;

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Not slower, or by no more than is allowed.
    Fine,
    /// Slower than is allowed.
    Regressed,
    /// Too few runs, or they scatter too much.
    CannotTell,
}

/// Why nothing can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// Nobody knows how much runs scatter.
    TooFewRuns,
    /// The interval is too wide.
    TooNoisy,
}

/// What a check found.
#[derive(Debug)]
pub struct Check {
    /// What came of it.
    pub verdict: Verdict,
    /// Where it cannot be told: why.
    pub because: Option<Because>,
    /// How many runs of each it would take; `None`: more than anybody makes, or enough are there.
    pub runs_wanted: Option<usize>,
    /// Parts of the program that are slower, by their position among those that were tested.
    pub slower_parts: Vec<usize>,
}

impl Check {
    /// Whether the runs after are slower than those before by more than a part of it.
    pub fn new(of: &Comparison, at_most: f64) -> Self {
        let whole = whole(of);
        let slower_parts: Vec<usize> = slower_parts(of, at_most);
        let is_faster = of.decisive().interval.is_some_and(|(_, hi)| hi < 0.0);
        let is_slower = whole.iter().any(|(estimate, alpha)| {
            one_sided(estimate) <= *alpha
                && estimate.degrees >= LEAST_DEGREES
                && !estimate.is_assumed
                && estimate.relative() > at_most
        });
        let nothing = Self {
            verdict: Verdict::Fine,
            because: None,
            runs_wanted: None,
            slower_parts: slower_parts.clone(),
        };
        if is_slower || !slower_parts.is_empty() && !is_faster {
            return Self { verdict: Verdict::Regressed, ..nothing };
        }
        let decisive = of.decisive();
        let knows_spread = !decisive.is_assumed && decisive.degrees >= LEAST_DEGREES;
        let is_within = decisive.relative_interval().is_some_and(|(_, hi)| hi <= at_most);
        if knows_spread && is_within {
            return nothing;
        }
        let runs_wanted = decisive.runs_for(at_most).map(|runs| match knows_spread {
            true => runs.max(decisive.runs + 1),
            // With an unknown spread fewer than three say nothing.
            false => runs.max(3),
        });
        let because = Some(if knows_spread { Because::TooNoisy } else { Because::TooFewRuns });
        Self { verdict: Verdict::CannotTell, because, runs_wanted, ..nothing }
    }
}

/// The time that decides, and, beside an iteration's, elapsed time; each with the chance of an alarm that it may
/// have without a change. Elapsed time only has to show what a typical iteration does not.
fn whole<'c>(of: &'c Comparison) -> Vec<(&'c Estimate, f64)> {
    match of.is_mostly_iterations() {
        true => vec![(of.decisive(), ALPHA), (&of.elapsed, ALPHA / BESIDE)],
        false => vec![(&of.elapsed, ALPHA)],
    }
}

/// Chance of so much more time, or yet more, where there is no change.
fn one_sided(estimate: &Estimate) -> f64 {
    match estimate.difference() > 0.0 {
        true => estimate.p / 2.0,
        false => 1.0 - estimate.p / 2.0,
    }
}

fn slower_parts(of: &Comparison, at_most: f64) -> Vec<usize> {
    let whole = |tested: &Tested| match tested.of_iteration {
        true => of.iteration.as_ref().map_or(f64::INFINITY, |iteration| iteration.before),
        false => of.elapsed.before,
    };
    let is_slower = |tested: &Tested| {
        tested.is_found
            && !tested.estimate.is_assumed
            && tested.estimate.relative() > at_most
            && tested.estimate.difference() > LEAST_COST * at_most * whole(tested)
    };
    let all = of.tested.iter().enumerate();
    all.filter(|(_, tested)| is_slower(tested)).map(|(at, _)| at).collect()
}

/// The runs of a baseline that others may be compared with.
#[derive(Debug, Default)]
pub struct Matching {
    /// Those that did the same work on the same machine.
    pub alike: Vec<RunRecord>,
    /// How many did not, and in what, most first.
    pub others: Vec<(Vec<Difference>, usize)>,
}

impl Matching {
    /// Of a baseline, for runs that are alike.
    pub fn of(baseline: Vec<RunRecord>, runs: &[RunRecord]) -> Self {
        let mut this = Self::default();
        let Some(first) = runs.first() else { return this };
        for record in baseline {
            let mut what = record.differences(first);
            what.retain(|difference| !difference.is_change());
            if what.is_empty() {
                this.alike.push(record);
                continue;
            }
            match this.others.iter_mut().find(|(known, _)| *known == what) {
                Some((_, count)) => *count += 1,
                None => this.others.push((what, 1)),
            }
        }
        this.others.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        this
    }

    /// What both have in common.
    ///
    /// # Errors
    /// Runs to be checked that are not alike.
    pub fn relation(&self, runs: &[RunRecord]) -> Result<Relation, Mixed> {
        Relation::of(&self.alike, runs)
    }
}
