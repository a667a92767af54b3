//! Checks whether runs are slower than a baseline allows.

use serde::Serialize;

use super::basis::Basis;
use super::compared::Comparison;
use super::quantities::{RATE, Tested};
use super::record::RunRecord;
use super::statistics::{ALPHA, Estimate, MIN_DEGREES, discoveries};
use super::subject::{Difference, Mixed, Relation};

/// Factor by which elapsed time has to be more certain than the time that decides.
const ELAPSED_STRICTNESS: f64 = 4.0;
/// Factor by which a slowdown has to be more certain if the scatter of runs is hardly known: 2 to
/// [`MIN_DEGREES`] degrees of freedom, for example three runs each, of which only one side scatters.
const HARDLY_KNOWN_STRICTNESS: f64 = 10.0;
/// A slower part of the program counts only if it costs at least this share of the slowdown that is
/// allowed for the whole run.
const MIN_COST: f64 = 0.2;

/// The result of a check, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Not slower, or by no more than is allowed.
    Fine,
    /// Undecided: too few runs, or they scatter too much.
    CannotTell,
    /// Slower than is allowed.
    Regressed,
}

/// Why a check is undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndecidedReason {
    /// It is not known how much runs scatter.
    TooFewRuns,
    /// The interval is too wide.
    TooNoisy,
    /// Ranks waited for cores.
    LackOfCores,
}

/// What a check found.
#[derive(Debug)]
pub struct Check {
    /// The result.
    pub verdict: Verdict,
    pub because: Option<UndecidedReason>,
    /// Number of runs per side that would decide it; `None` if unreasonably many, or if there are
    /// enough.
    pub runs_wanted: Option<usize>,
    /// Slower parts of the program, by their position among the tested parts.
    pub slower_parts: Vec<usize>,
}

impl Check {
    /// Checks of several configurations whether the runs after are slower than those before by more
    /// than a given fraction. The more there are, the more certain each has to be (Benjamini and
    /// Hochberg 1995).
    pub fn all(of: &[Comparison], at_most: f64) -> Vec<Self> {
        let p_values: Vec<f64> = of.iter().map(|one| p_slower(one, at_most)).collect();
        let slower = discoveries(&p_values, ALPHA);
        let p_values = of.iter().flat_map(|one| one.tested.iter().map(|part| part.estimate.p));
        let mut found = discoveries(&p_values.collect::<Vec<_>>(), RATE).into_iter();
        let checks = of.iter().zip(slower).map(|(one, is_slower)| {
            let found: Vec<bool> = found.by_ref().take(one.tested.len()).collect();
            let mut parts = slower_parts(one, at_most);
            parts.retain(|at| found[*at]);
            Self::new(one, at_most, is_slower, parts)
        });
        checks.collect()
    }

    /// The verdict on several configurations: slower if one is, undecided if one is.
    pub fn worst(of: &[Self]) -> Verdict {
        of.iter().map(|check| check.verdict).max().unwrap_or(Verdict::CannotTell)
    }

    fn new(of: &Comparison, at_most: f64, is_slower: bool, slower_parts: Vec<usize>) -> Self {
        let decisive = of.decisive();
        let is_faster = of.is_certain() && decisive.difference() < 0.0;
        let nothing = Self {
            verdict: Verdict::Fine,
            because: None,
            runs_wanted: None,
            slower_parts: slower_parts.clone(),
        };
        if is_slower || !slower_parts.is_empty() && !is_faster {
            return Self { verdict: Verdict::Regressed, ..nothing };
        }
        if of.basis == Basis::Counts && is_faster {
            return nothing;
        }
        if matches!(of.basis, Basis::LackOfCores { .. }) {
            let because = Some(UndecidedReason::LackOfCores);
            return Self { verdict: Verdict::CannotTell, because, ..nothing };
        }
        let knows_spread = !decisive.is_assumed && decisive.degrees >= MIN_DEGREES;
        let is_within = decisive.relative_interval().is_some_and(|(_, hi)| hi <= at_most);
        if knows_spread && is_within {
            return nothing;
        }
        let runs_wanted = match (decisive.runs_for(at_most), knows_spread) {
            (runs, true) => runs.map(|runs| runs.max(decisive.runs + 1)),
            // With an unknown spread, fewer than three runs say nothing, not even of how many it takes.
            (runs, false) => Some(runs.unwrap_or(3).max(3).max(decisive.runs + 1)),
        };
        let because = Some(if knows_spread {
            UndecidedReason::TooNoisy
        } else {
            UndecidedReason::TooFewRuns
        });
        Self { verdict: Verdict::CannotTell, because, runs_wanted, ..nothing }
    }
}

/// The probability of a run, or an iteration, that is so much slower, without a change; 1 if it is
/// not slower than is allowed, or too little is known of how runs scatter. Where iterations decide,
/// elapsed time only has to reveal what a typical one does not show.
fn p_slower(of: &Comparison, at_most: f64) -> f64 {
    match of.basis {
        Basis::Counts if of.decisive().relative() > at_most => return 0.0,
        Basis::Counts | Basis::LackOfCores { .. } => return 1.0,
        Basis::Scatter => {}
    }
    let estimates = match of.is_mostly_iterations() {
        true => vec![(of.decisive(), 1.0), (&of.elapsed, ELAPSED_STRICTNESS)],
        false => vec![(&of.elapsed, 1.0)],
    };
    let is_known = |of: &Estimate| of.degrees >= 2.0 && !of.is_assumed;
    let slower = estimates.into_iter().filter(|(of, _)| is_known(of) && of.relative() > at_most);
    let of_scatter = |of: &Estimate| match of.degrees >= MIN_DEGREES {
        true => 1.0,
        false => HARDLY_KNOWN_STRICTNESS,
    };
    slower.map(|(of, strictness)| strictness * of_scatter(of) * one_sided(of)).fold(1.0, f64::min)
}

/// One-sided p-value: the probability of so much more time, or even more, without a change.
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
        tested.is_significant
            && !tested.estimate.is_assumed
            && tested.estimate.relative() > at_most
            && tested.estimate.difference() > MIN_COST * at_most * whole(tested)
    };
    let all = of.tested.iter().enumerate();
    all.filter(|(_, tested)| is_slower(tested)).map(|(at, _)| at).collect()
}

/// The runs of a baseline that others may be compared with.
#[derive(Debug, Default)]
pub struct Matching {
    /// Those that did the same work on the same machine.
    pub alike: Vec<RunRecord>,
    /// Numbers of other runs, by the aspects in which they differ, most frequent first.
    pub others: Vec<(Vec<Difference>, usize)>,
}

impl Matching {
    /// Selects from a baseline, for runs that are alike.
    pub fn new(baseline: &[RunRecord], runs: &[RunRecord]) -> Self {
        let mut this = Self::default();
        let Some(first) = runs.first() else { return this };
        for record in baseline {
            let mut what = record.differences(first);
            what.retain(|difference| !difference.is_change());
            if what.is_empty() {
                this.alike.push(record.clone());
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

    /// Relates both sets of runs.
    ///
    /// # Errors
    /// The runs to be checked are not alike.
    pub fn relation(&self, runs: &[RunRecord]) -> Result<Relation, Mixed> {
        Relation::between(&self.alike, runs)
    }
}
