//! The time at a rank count, as a sum over the labels of the critical path.

use super::alternatives::join_alternatives;
use super::first_use::join_first_uses;
use super::labels::{Key, RunLabels, ranks_per_host};
use super::machine::MachineTimes;
use super::quantities::Asked;
use super::regimes::Regime;
use super::sizes::separate_sizes;
use super::spreads::join_spreads;

/// Why the structure of the runs says nothing.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Abstains {
    /// Runs at fewer rank counts than laws need.
    #[error(
        "timed runs at {0} rank counts are too few for laws of p; at least {LEAST_RUNS} are needed"
    )]
    FewRankCounts(usize),
    /// Ranks had to share cores in so many runs.
    #[error("ranks shared cores in {0} of the runs, whose times are then not those of the program")]
    SharedCores(usize),
    /// Waits cannot be told from transfers.
    #[error(
        "{:.0} % of the ranks' time lies in waits shorter than the error of their clocks, so the critical path is not known",
        100.0 * .0
    )]
    Clocks(f64),
    /// A run is read for this up to so many calls.
    #[error("the run with {p} ranks has more than {most} calls")]
    ManyCalls { p: u32, most: u64 },
    /// A run that was read before.
    #[error("one of the runs could not be read again")]
    Unreadable,
    /// Labels add up to too little of the elapsed time.
    #[error("places in the program explain only {:.0} % of the time", 100.0 * .0)]
    Unexplained(f64),
}

/// Rank counts that are needed.
pub const LEAST_RUNS: usize = 5;

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
    /// Runs for counts alone.
    counted: Vec<RunLabels>,
    machine: MachineTimes,
    held_back: HeldBack,
}

/// What the other runs predict for the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldBack {
    pub p: u32,
    pub predicted_s: f64,
    pub measured_s: f64,
}

impl HeldBack {
    /// Relative error.
    pub fn error(&self) -> f64 {
        (self.predicted_s / self.measured_s - 1.0).abs()
    }

    /// Error of the logarithm, by which intervals grow in both directions.
    fn log_error(&self) -> f64 {
        (self.predicted_s / self.measured_s).ln().abs()
    }
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

/// A label's part of a predicted time.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub name: String,
    pub first_use: bool,
    pub seconds: f64,
    /// Events on the path.
    pub count: f64,
    /// The law of the count, if it has one.
    pub count_law: Option<String>,
    /// Bytes of an event.
    pub bytes: f64,
    /// Their law.
    pub bytes_law: Option<String>,
    /// Bytes of a message in the run that is nearest, and of those asked for, if libraries may send these
    /// in another way.
    pub leaves_sizes: Option<(f64, f64)>,
    /// Where its calls begin to be carried out in another way than in any run.
    pub regime: Option<Regime>,
    /// Standard deviation of its logarithm.
    pub(super) sd: f64,
}

impl Structure {
    /// Of runs at different rank counts; of several at one the fastest counts. Runs for counts alone are
    /// held to the laws of the others. `machine` has times of
    /// messages on their machine, if these were measured.
    ///
    /// # Errors
    /// See [`Abstains`].
    pub fn new(mut runs: Vec<RunLabels>, mut machine: MachineTimes) -> Result<Self, Abstains> {
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
        let timed = runs.len();
        runs.append(&mut counted);
        join_spreads(&mut runs);
        join_first_uses(&mut runs);
        separate_sizes(&mut runs);
        counted = runs.split_off(timed);
        join_alternatives(&mut runs);
        let Some((last, others)) = runs.split_last() else {
            return Err(Abstains::FewRankCounts(0));
        };
        let (predicted_s, _) = sum(others, &[], last.p, &machine);
        let held_back = HeldBack { p: last.p, predicted_s, measured_s: last.tau_s };
        Ok(Self { runs, counted, machine, held_back })
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
        let (tau_s, mut parts) = sum(&self.runs, &self.counted, p, &self.machine);
        parts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let largest = self.runs.last().map_or(1.0, |run| f64::from(run.p));
        let doublings = (f64::from(p) / largest).log2().max(0.0);
        let variance: f64 = parts.iter().map(|part| (part.sd * part.seconds / tau_s).powi(2)).sum();
        let checked = self.held_back.log_error().max(LEAST_ERROR);
        let per_host = self.runs.iter().map(|run| run.per_host).max().unwrap_or(1);
        let hosts = if per_host > 1 { MORE_HOSTS * doublings } else { 0.0 };
        let sd = variance.sqrt().hypot(checked * (1.0 + doublings).sqrt()).hypot(hosts);
        let factor = (Z90 * sd).exp();
        Forecast { p, tau_s, interval_s: (tau_s / factor, tau_s * factor), parts }
    }
}

/// The parts of the time at a rank count, and their sum. What labels do not explain of the runs is
/// added in the same proportion.
fn sum(
    runs: &[RunLabels],
    counted: &[RunLabels],
    p: u32,
    machine: &MachineTimes,
) -> (f64, Vec<Part>) {
    let per_host = ranks_per_host(&runs.iter().collect::<Vec<_>>());
    let asked = Asked { runs, counted, p: f64::from(p), per_host, machine };
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
    (parts.iter().map(|part| part.seconds).sum(), parts)
}
