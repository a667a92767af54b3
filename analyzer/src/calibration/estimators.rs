//! Estimators of a clock offset (parent less child, in ticks), for comparison.

use trace_format::clock_estimate::{TwoWay, estimate};

use crate::statistics::nearest_rank;

/// A way to estimate an offset from exchanges.
#[derive(Debug, Clone, Copy)]
pub struct Estimator {
    /// Name for display.
    pub name: &'static str,
    /// Parent less child, ticks; `None` for too few exchanges.
    pub estimate: fn(&[TwoWay]) -> Option<f64>,
}

/// All estimators compared. Those with a fixed number of exchanges use the first ones of a trial.
pub const ESTIMATORS: [Estimator; 7] = [
    Estimator { name: "mean of 9 of 10", estimate: |all| mean(all.get(1..10)?) },
    Estimator { name: "minimum of 10", estimate: |all| minimum(all.get(..10)?) },
    Estimator { name: "minimum of 100", estimate: |all| minimum(all.get(..100)?) },
    Estimator { name: "minimum of 1000", estimate: |all| minimum(all.get(..1000)?) },
    Estimator { name: "median of all", estimate: median },
    Estimator { name: "interval intersection", estimate: intersection },
    Estimator { name: "mean of lowest tenth", estimate: lowest_tenth },
];

/// Offset at the midpoint of an exchange. Differences wrap, because counters of two hosts may be
/// far apart.
fn offset(sample: &TwoWay) -> f64 {
    let middle = sample.received.wrapping_sub(sample.sent) as f64 / 2.0;
    sample.answered.wrapping_sub(sample.sent) as i64 as f64 - middle
}

fn mean(samples: &[TwoWay]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().map(offset).sum::<f64>() / samples.len() as f64)
}

fn minimum(samples: &[TwoWay]) -> Option<f64> {
    samples.iter().min_by_key(|sample| sample.round_trip()).map(offset)
}

fn median(samples: &[TwoWay]) -> Option<f64> {
    let mut offsets: Vec<f64> = samples.iter().map(offset).collect();
    offsets.sort_by(f64::total_cmp);
    nearest_rank(&offsets, 0.5)
}

/// Middle of the interval of offsets that all exchanges allow.
fn intersection(samples: &[TwoWay]) -> Option<f64> {
    let difference = |a: u64, b: u64| a.wrapping_sub(b) as i64;
    let low = samples.iter().map(|s| difference(s.answered, s.received)).max()?;
    let high = samples.iter().map(|s| difference(s.answered, s.sent)).min()?;
    Some((low as f64 + high as f64) / 2.0)
}

/// The recorder's own estimator.
fn lowest_tenth(samples: &[TwoWay]) -> Option<f64> {
    let found = estimate(samples)?;
    Some(found.parent_ticks.wrapping_sub(found.child_ticks) as i64 as f64)
}
