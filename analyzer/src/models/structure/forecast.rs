//! The time at a rank count, as a sum over the labels of the critical path.

use super::abstains::{Abstains, LEAST_RUNS};
use super::alternatives::join_alternatives;
use super::first_use::join_first_uses;
use super::held_back::HeldBack;
use super::labels::{Key, RunLabels, ranks_per_host};
use super::machine::MachineTimes;
use super::part::{Part, uncertainty};
use super::problem_size::{AtSize, at_size};
use super::quantities::Asked;
use super::size_laws::{LawsOfSize, SizedRun};
use super::sizes::separate_sizes;
use super::spreads::join_spreads;

/// Share of the elapsed time that labels must explain in every run.
const LEAST_EXPLAINED: f64 = 0.9;

/// Share of the ranks' time in waits shorter than the error of clocks, at most.
const MOST_UNCERTAIN: f64 = 0.05;

/// Quantile of the normal distribution for intervals of 90 %.
const Z90: f64 = 1.645;

/// Relative error of a forecast by one doubling that has not been checked, at least.
const LEAST_ERROR: f64 = 0.02;

/// The same for each doubling where ranks share hosts: how many of them use a host's link at once
/// changes with the rank count, and no run tells how.
const MORE_HOSTS: f64 = 0.05;

/// What the runs of one program say of other rank counts.
#[derive(Debug, Clone)]
pub struct Structure {
    /// One for each rank count, ascending.
    runs: Vec<RunLabels>,
    /// Runs at other problem sizes, which tell what calls take.
    sized: Vec<RunLabels>,
    /// Runs for counts alone.
    counted: Vec<RunLabels>,
    machine: MachineTimes,
    held_back: HeldBack,
    /// Where its runs were continued over problem sizes.
    over_sizes: Option<OverSizes>,
}

/// How runs were continued to a problem size that was not measured.
#[derive(Debug, Clone)]
struct OverSizes {
    held_back: HeldBack,
    sd: f64,
    laws: Vec<LawsOfSize>,
}

/// A predicted time.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    pub p: u32,
    pub tau_s: f64,
    /// 90 % interval.
    pub interval_s: (f64, f64),
    /// What makes it, most time first.
    pub parts: Vec<Part>,
}

impl Structure {
    /// Of runs at different rank counts; of several at one the fastest counts. Runs for counts alone are
    /// held to the laws of the others. `machine` has times of
    /// messages on their machine, if these were measured.
    ///
    /// # Errors
    /// See [`Abstains`].
    pub fn new(runs: Vec<RunLabels>, machine: MachineTimes) -> Result<Self, Abstains> {
        Self::with_sizes(runs, Vec::new(), machine)
    }

    /// The same, beside runs at other problem sizes that tell what calls take.
    fn with_sizes(
        mut runs: Vec<RunLabels>,
        mut sized: Vec<RunLabels>,
        mut machine: MachineTimes,
    ) -> Result<Self, Abstains> {
        runs.sort_by(|a, b| {
            (a.p, a.tau_s).partial_cmp(&(b.p, b.tau_s)).unwrap_or(std::cmp::Ordering::Equal)
        });
        let (mut counted, mut runs): (Vec<RunLabels>, Vec<RunLabels>) =
            runs.into_iter().partition(|run| run.counts_only);
        // The library of the runs, not that of the measurement.
        machine.library = runs.iter().find_map(|run| run.library).or(machine.library);
        runs.dedup_by_key(|run| run.p);
        counted.retain(|counted| runs.iter().all(|run| run.p != counted.p));
        counted.dedup_by_key(|run| run.p);
        if runs.len() < LEAST_RUNS {
            return Err(Abstains::FewRankCounts(runs.len()));
        }
        for run in &runs {
            if run.uncertain > MOST_UNCERTAIN {
                return Err(Abstains::Clocks(run.uncertain));
            }
            let explained: f64 = run.labels.iter().map(|label| label.seconds).sum();
            if explained < LEAST_EXPLAINED * run.tau_s {
                return Err(Abstains::Unexplained(explained / run.tau_s));
            }
        }
        let (timed, of_size) = (runs.len(), runs.len() + sized.len());
        runs.append(&mut sized);
        runs.append(&mut counted);
        join_spreads(&mut runs);
        join_first_uses(&mut runs);
        separate_sizes(&mut runs);
        counted = runs.split_off(of_size);
        sized = runs.split_off(timed);
        join_alternatives(&mut runs);
        let Some((last, others)) = runs.split_last() else {
            return Err(Abstains::FewRankCounts(0));
        };
        let smaller: Vec<RunLabels> = sized.iter().filter(|of| of.p < last.p).cloned().collect();
        let before =
            Known { runs: others, sized: &smaller, counted: &[], machine: &machine, laws: &[] };
        let (predicted_s, _) = before.sum(last.p);
        let held_back = HeldBack { p: last.p, predicted_s, measured_s: last.tau_s };
        Ok(Self { runs, sized, counted, machine, held_back, over_sizes: None })
    }

    /// Of runs at different rank counts and problem sizes: at another problem size. What the runs do is continued over
    /// problem sizes first, at each rank count, and over rank counts then.
    ///
    /// # Errors
    /// See [`Abstains`].
    pub fn at_problem_size(
        runs: Vec<SizedRun>,
        size: f64,
        machine: MachineTimes,
    ) -> Result<Self, Abstains> {
        let timed = runs.iter().map(|of| &of.run).filter(|run| !run.counts_only);
        let sized = timed.cloned().collect();
        let AtSize { runs, sd, held_back, doublings, laws } = at_size(runs, size, &machine)?;
        let checked = held_back.log_error().max(LEAST_ERROR) * (1.0 + doublings).sqrt();
        let over_sizes = Some(OverSizes { held_back, sd: sd.hypot(checked), laws });
        Ok(Self { over_sizes, ..Self::with_sizes(runs, sized, machine)? })
    }

    /// The run with most ranks and the largest problem, as runs with smaller problems predict it; `None` if its runs
    /// were not continued over problem sizes.
    pub fn held_back_size(&self) -> Option<HeldBack> {
        self.over_sizes.as_ref().map(|of| of.held_back)
    }

    /// The largest run, as the others predict it.
    pub fn held_back(&self) -> HeldBack {
        self.held_back
    }

    /// Whether every run was on one host.
    pub fn is_of_one_host(&self) -> bool {
        self.runs.iter().all(|run| run.per_host == run.p)
    }

    /// The time at a rank count.
    pub fn at(&self, p: u32) -> Forecast {
        let laws = self.over_sizes.as_ref().map_or(&[][..], |of| &of.laws);
        let Self { runs, sized, counted, machine, .. } = self;
        let (tau_s, mut parts) = Known { runs, sized, counted, machine, laws }.sum(p);
        parts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let largest = self.runs.last().map_or(1.0, |run| f64::from(run.p));
        let doublings = (f64::from(p) / largest).log2().max(0.0);
        let checked = self.held_back.log_error().max(LEAST_ERROR);
        let per_host = self.runs.iter().map(|run| run.per_host).max().unwrap_or(1);
        let hosts = if per_host > 1 { MORE_HOSTS * doublings } else { 0.0 };
        let sd = uncertainty(&parts).hypot(checked * (1.0 + doublings).sqrt()).hypot(hosts);
        let sd = sd.hypot(self.over_sizes.as_ref().map_or(0.0, |of| of.sd));
        let factor = (Z90 * sd).exp();
        Forecast { p, tau_s, interval_s: (tau_s / factor, tau_s * factor), parts }
    }
}

/// What is known of a program.
struct Known<'s> {
    /// Runs, measured ones or at a problem size to which they were continued.
    runs: &'s [RunLabels],
    /// In the latter case those that were measured.
    sized: &'s [RunLabels],
    counted: &'s [RunLabels],
    machine: &'s MachineTimes,
    laws: &'s [LawsOfSize],
}

impl Known<'_> {
    /// The parts of the time at a rank count, and their sum. What labels do not explain of the runs is
    /// added in the same proportion.
    fn sum(&self, p: u32) -> (f64, Vec<Part>) {
        let Self { runs, sized, counted, machine, laws } = *self;
        let per_host = ranks_per_host(&runs.iter().collect::<Vec<_>>());
        let calling = if sized.is_empty() { runs } else { sized };
        let asked = Asked { runs, calling, counted, p: f64::from(p), per_host, machine, laws };
        let mut keys: Vec<Key> = Vec::new();
        let late = runs.iter().rev().take(2).flat_map(|run| &run.labels);
        for label in late.filter(|label| label.seconds > 0.0) {
            if !keys.contains(&label.key()) {
                keys.push(label.key());
            }
        }
        let parts: Vec<Part> = keys.into_iter().filter_map(|key| asked.part(key)).collect();
        let explained =
            |run: &RunLabels| run.tau_s / run.labels.iter().map(|label| label.seconds).sum::<f64>();
        let scale = runs.iter().map(explained).sum::<f64>() / runs.len() as f64;
        let parts: Vec<Part> =
            parts.into_iter().map(|part| Part { seconds: part.seconds * scale, ..part }).collect();
        let parts = asked.with_centre(parts);
        (parts.iter().map(|part| part.seconds).sum(), parts)
    }
}
