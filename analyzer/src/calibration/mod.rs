//! Evaluates a clock calibration run of `kernels clock` ([`Stamps`]): clock offsets by pair and
//! trial in both directions, compared with the truth where it is known; round trips; drift; and a
//! comparison of estimators.
//!
//! This stands beside the stages of a recorded run: it reads no trace, and `present` shows the
//! result.

mod estimators;
mod stamps;

use serde::{Deserialize, Serialize};

use crate::statistics::nearest_rank;

pub use estimators::{ESTIMATORS, Estimator};
pub use stamps::{Exchange, PairStamps, RankHost, Stamps, StampsError};

use trace_format::clock_estimate::{TwoWay, estimate};

/// Name of the format in a stored result.
pub const FORMAT: &str = "gammachi clock calibration";
/// Bins of a round-trip histogram.
const BINS: usize = 24;

/// Result of a calibration run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Calibration {
    /// `gammachi clock calibration`.
    pub format: String,
    /// MPI library that the kernel ran under.
    pub mpi: String,
    /// Counter that was read.
    pub counter: String,
    /// Exchanges per trial.
    pub rounds: u64,
    /// Seconds between the two measurements; 0 if there was only one.
    pub drift_s: f64,
    /// Host of every rank.
    pub hosts: Vec<String>,
    /// Pairs of the tree.
    pub pairs: Vec<PairCalibration>,
    /// Errors of several estimators on the same stamps; empty if no pair has a known truth.
    pub estimators: Vec<EstimatorErrors>,
}

/// One pair of ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PairCalibration {
    /// The rank whose clock is measured.
    pub child: usize,
    /// The rank that it is compared with.
    pub parent: usize,
    /// Reference offset of the parent's counter relative to the child's, nanoseconds of the child's
    /// counter: the median of all trials but the first.
    pub reference_ns: f64,
    /// Whether both ranks read the same counter, so that the true offset is 0.
    pub truth_known: bool,
    /// Trials of the first measurement.
    pub trials: Vec<TrialCalibration>,
    /// Drift of the parent's counter relative to the child's, parts per million; `None` with one
    /// measurement.
    pub drift_ppm: Option<f64>,
    /// Error bound of the drift, parts per million.
    pub drift_bound_ppm: Option<f64>,
    /// Round trips of all exchanges, forward and reverse.
    pub round_trips: RoundTrips,
}

/// One trial. Offsets are relative to the pair's reference, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrialCalibration {
    /// Estimate from exchanges that the child starts.
    pub forward_ns: f64,
    /// Estimate from exchanges that the parent starts.
    pub reverse_ns: f64,
    /// Error bound of the forward estimate.
    pub bound_ns: f64,
    /// Error of the forward estimate, where the truth is known.
    pub error_ns: Option<f64>,
}

/// A histogram of round trips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RoundTrips {
    /// Number of exchanges.
    pub count: usize,
    /// Shortest, nanoseconds.
    pub min_ns: f64,
    /// Median, nanoseconds.
    pub median_ns: f64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: f64,
    /// Longest, nanoseconds.
    pub max_ns: f64,
    /// Start, end (nanoseconds) and count of each bin; the last bin also counts everything longer.
    pub bins: Vec<(f64, f64, u64)>,
}

/// Absolute errors of an estimator over pairs and trials, nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EstimatorErrors {
    /// Its name.
    pub name: String,
    /// Number of estimates.
    pub count: usize,
    /// Median.
    pub p50_ns: f64,
    /// 95th percentile.
    pub p95_ns: f64,
    /// Largest.
    pub max_ns: f64,
}

impl Calibration {
    /// Derives everything from the stamps.
    pub fn new(stamps: &Stamps) -> Self {
        let pairs: Vec<PairCalibration> =
            stamps.pairs.iter().map(|pair| pair_calibration(stamps, pair)).collect();
        Self {
            format: FORMAT.into(),
            mpi: stamps.mpi.clone(),
            counter: stamps.counter.clone(),
            rounds: stamps.rounds,
            drift_s: stamps.drift_s,
            hosts: stamps.ranks.iter().map(|rank| rank.host.clone()).collect(),
            estimators: estimator_errors(stamps),
            pairs,
        }
    }
}

/// The value nearest to a share of ascending values; not a number for none.
fn rank(sorted: &[f64], share: f64) -> f64 {
    nearest_rank(sorted, share).unwrap_or(f64::NAN)
}

/// From exchanges that the child started: the parent's counter less the child's in whole ticks, the
/// error bound, and the child's counter.
fn forward(exchanges: &[Exchange]) -> Option<(i64, u64, u64)> {
    let samples: Vec<TwoWay> = exchanges.iter().map(Exchange::two_way).collect();
    let found = estimate(&samples)?;
    let theta = found.parent_ticks.wrapping_sub(found.child_ticks) as i64;
    Some((theta, found.bound_ticks, found.child_ticks))
}

fn pair_calibration(stamps: &Stamps, pair: &PairStamps) -> PairCalibration {
    let ns_per_tick = stamps.ns_per_tick(pair.child);
    let truth_known = stamps.truth_is_zero(pair);
    let trials = |measurement: usize| -> Vec<(i64, i64, u64, u64)> {
        let of = |all: &[Vec<Vec<Exchange>>]| all.get(measurement).cloned().unwrap_or_default();
        let both = of(&pair.forward).into_iter().zip(of(&pair.reverse));
        both.filter_map(|(ahead, back)| {
            let (theta, bound, at) = forward(&ahead)?;
            // The parent started these, so the sign is reversed.
            let (back_theta, _, _) = forward(&back)?;
            Some((theta, back_theta.wrapping_neg(), bound, at))
        })
        .collect()
    };
    let first = trials(0);
    // Unless all counters began together, offsets are large; only their differences are small.
    let base = first.first().map_or(0, |trial| trial.0);
    let relative_ns = |theta: i64| theta.wrapping_sub(base) as f64 * ns_per_tick;
    let mut counted: Vec<f64> = first.iter().skip(1).map(|trial| relative_ns(trial.0)).collect();
    if counted.is_empty() {
        counted.extend(first.iter().map(|trial| relative_ns(trial.0)));
    }
    counted.sort_by(f64::total_cmp);
    let reference_ns = rank(&counted, 0.5);
    let later = trials(1);
    let drift = drift_ppm(&first, &later);
    PairCalibration {
        child: pair.child,
        parent: pair.parent,
        reference_ns: reference_ns + base as f64 * ns_per_tick,
        truth_known,
        trials: first
            .iter()
            .map(|(theta, back, bound, _)| TrialCalibration {
                forward_ns: relative_ns(*theta) - reference_ns,
                reverse_ns: relative_ns(*back) - reference_ns,
                bound_ns: *bound as f64 * ns_per_tick,
                error_ns: truth_known.then_some(*theta as f64 * ns_per_tick),
            })
            .collect(),
        drift_ppm: drift.map(|(ppm, _)| ppm),
        drift_bound_ppm: drift.map(|(_, bound)| bound),
        round_trips: round_trips(stamps, pair),
    }
}

/// Slope between the trials with the smallest error bounds of the two measurements, and the bound
/// of that slope.
fn drift_ppm(first: &[(i64, i64, u64, u64)], later: &[(i64, i64, u64, u64)]) -> Option<(f64, f64)> {
    let best = |trials: &[(i64, i64, u64, u64)]| trials.iter().min_by_key(|trial| trial.2).copied();
    let (a, b) = (best(first)?, best(later)?);
    let ticks = b.3.checked_sub(a.3).filter(|ticks| *ticks > 0)? as f64;
    Some(((b.0.wrapping_sub(a.0)) as f64 / ticks * 1e6, (a.2 + b.2) as f64 / ticks * 1e6))
}

fn round_trips(stamps: &Stamps, pair: &PairStamps) -> RoundTrips {
    let of = |all: &[Vec<Vec<Exchange>>], rank: usize| -> Vec<f64> {
        let ns_per_tick = stamps.ns_per_tick(rank);
        let exchanges = all.iter().flatten().flatten();
        exchanges.map(|e| e.two_way().round_trip() as f64 * ns_per_tick).collect()
    };
    let mut sorted = of(&pair.forward, pair.child);
    sorted.extend(of(&pair.reverse, pair.parent));
    sorted.sort_by(f64::total_cmp);
    let (min_ns, p99_ns) = (rank(&sorted, 0.0), rank(&sorted, 0.99));
    let width = ((p99_ns - min_ns) / BINS as f64).max(1.0);
    let mut bins: Vec<(f64, f64, u64)> = (0..BINS)
        .map(|bin| (min_ns + bin as f64 * width, min_ns + (bin + 1) as f64 * width, 0))
        .collect();
    for value in &sorted {
        bins[(((value - min_ns) / width) as usize).min(BINS - 1)].2 += 1;
    }
    RoundTrips {
        count: sorted.len(),
        min_ns,
        median_ns: rank(&sorted, 0.5),
        p99_ns,
        max_ns: rank(&sorted, 1.0),
        bins,
    }
}

/// Errors of every estimator on the trials of every pair whose truth is known, in both directions.
fn estimator_errors(stamps: &Stamps) -> Vec<EstimatorErrors> {
    let known: Vec<&PairStamps> =
        stamps.pairs.iter().filter(|pair| stamps.truth_is_zero(pair)).collect();
    let errors = |estimator: &Estimator| -> Option<EstimatorErrors> {
        let mut absolute: Vec<f64> = Vec::new();
        for pair in &known {
            for (all, rank) in [(&pair.forward, pair.child), (&pair.reverse, pair.parent)] {
                let ns_per_tick = stamps.ns_per_tick(rank);
                for trial in all.iter().flatten() {
                    let samples: Vec<TwoWay> = trial.iter().map(Exchange::two_way).collect();
                    absolute.extend((estimator.estimate)(&samples).map(|t| t.abs() * ns_per_tick));
                }
            }
        }
        absolute.sort_by(f64::total_cmp);
        (!absolute.is_empty()).then(|| EstimatorErrors {
            name: estimator.name.into(),
            count: absolute.len(),
            p50_ns: rank(&absolute, 0.5),
            p95_ns: rank(&absolute, 0.95),
            max_ns: rank(&absolute, 1.0),
        })
    };
    ESTIMATORS.iter().filter_map(errors).collect()
}

#[cfg(test)]
mod tests;
