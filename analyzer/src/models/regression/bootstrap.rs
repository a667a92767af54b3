//! Bootstrap replicas, which estimate how wrong a prediction may be.
//!
//! This is a parametric bootstrap (Efron and Tibshirani 1993, chapter 6): each replica adds noise
//! to the fitted times, as large as the residuals suggest, and repeats the whole fit, including the
//! selection of columns. A replica of the default method uses one candidate, drawn by its weight,
//! in place of their mean, because the disagreement of the candidates belongs to the interval.
//! Every other replica starts from a fit of all columns without selection: a column wrongly dropped
//! by selection would never return in replicas of the selected fit.
//!
//! Where there are repetitions and noise only slows a run down, even the minima lie above the
//! truth. So in every other pair of replicas the times are lowered by as much as the repetitions
//! suggest ([`Excess`]).

use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

use super::method::{self, Method, ReplicaColumns};
use super::points::Excess;
use super::problem::Residual;
use crate::statistics::{normal, quantile};

/// A fit that replicas are drawn from.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Fitted times, seconds, one per point.
    pub fitted: Vec<f64>,
    /// Spread of the residuals: relative, or seconds.
    pub spread: f64,
    /// Whether its replicas select columns.
    pub selects: bool,
}

/// Share of the replicas that an interval leaves out on either side: 90 % intervals.
const TAIL: f64 = 0.05;

/// Relative standard deviation of a dictionary's error of form, one doubling outside the measured
/// ranges; it grows with the square root of the doublings.
pub(super) const FORM_GROWTH: f64 = 0.1;

/// Standard normal deviates, the same for every point.
pub(super) fn deviates(number: usize) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(0x6761_6d6d_6163_6869);
    (0..number).map(|_| normal(&mut random)).collect()
}

/// One replica's fit.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    /// Unscaled coefficients.
    pub coefficients: DVector<f64>,
    /// Share of the candidates' weight that has each column.
    pub support: Vec<f64>,
    /// Whether it selected columns.
    pub selected: bool,
}

/// Fits `number` replicas, alternating between the sources. The result depends on the seed but not
/// on the number of threads. Replicas whose fit fails are left out.
pub(super) fn replicas(
    method: Method,
    residual: Residual,
    matrix: &DMatrix<f64>,
    sources: &[Source],
    excess: Option<Excess>,
    (number, seed): (usize, u64),
) -> Vec<Replica> {
    (0..number)
        .into_par_iter()
        .filter_map(|replica| {
            let source = &sources[replica % sources.len()];
            let mut random = fastrand::Rng::with_seed(mixed(seed, replica));
            let lower = excess.filter(|_| replica / sources.len() % 2 == 1);
            let lower = lower.map_or(0.0, |excess| drawn(excess, &mut random));
            let times: Vec<f64> = source
                .fitted
                .iter()
                .map(|fitted| {
                    let time = fitted * (1.0 - lower * exponential(&mut random)).max(0.0);
                    let noise = source.spread * normal(&mut random);
                    let noisy = match residual {
                        Residual::Relative => time * (1.0 + noise),
                        Residual::Absolute => time + noise,
                    };
                    // Times stay positive; the floor matters only where the model explains nothing.
                    noisy.max(0.01 * fitted)
                })
                .collect();
            let columns = match source.selects {
                true => ReplicaColumns::Draw(random.f64()),
                false => ReplicaColumns::All,
            };
            let fit = method::fit(method, residual, matrix, &times, Some(columns)).ok()?;
            let coefficients = DVector::from_vec(fit.values);
            Some(Replica { coefficients, support: fit.support, selected: source.selects })
        })
        .collect()
}

/// The 90 % interval of the replicas' values; `None` for fewer than 20.
pub(super) fn interval(values: &mut [f64]) -> Option<(f64, f64)> {
    if values.len() < 20 {
        return None;
    }
    values.sort_by(f64::total_cmp);
    Some((quantile(values, TAIL), quantile(values, 1.0 - TAIL)))
}

/// Seed of a replica. Neighbouring seeds must not share replicas, hence the golden-ratio steps, as
/// in SplitMix64.
fn mixed(seed: u64, replica: usize) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(replica as u64)
}

/// Draws a mean excess that is consistent with the measured one, taking the excess at each point as
/// exponentially distributed.
fn drawn(excess: Excess, random: &mut fastrand::Rng) -> f64 {
    let sum: f64 = (0..excess.points).map(|_| exponential(random)).sum();
    excess.mean * excess.points as f64 / sum.max(f64::MIN_POSITIVE)
}

/// An exponential deviate of mean 1.
fn exponential(random: &mut fastrand::Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}
