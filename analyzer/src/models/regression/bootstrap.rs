//! How wrong a prediction may be: a fitted model comes in, coefficients of replicas go out.
//!
//! Parametric bootstrap (Efron and Tibshirani 1993, chapter 6): noise of the spread that the
//! residuals show is put on the fitted times, and everything is done again, the selection of columns
//! included. A replica of the default method takes one candidate, drawn by its weight, not their mean:
//! how far the candidates disagree belongs to the interval. Every other replica is of the fit with all
//! columns, without selection: what selection has wrongly dropped, no replica of its own fit brings
//! back.
//!
//! Where there are repetitions and noise only slows, even their minima lie above the truth. So in every
//! other pair of replicas the times lie lower by as much as the repetitions say ([`Excess`]).

use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

use super::method::{self, Method, Settle};
use super::points::Excess;
use super::problem::Residual;

/// What replicas are made of.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Fitted times, seconds, one a point.
    pub fitted: Vec<f64>,
    /// Spread of the residuals: relative, or seconds.
    pub spread: f64,
    /// Whether its replicas choose among the columns.
    pub selects: bool,
}

/// Share of the predictions that an interval leaves out on either side: 90 % intervals.
const TAIL: f64 = 0.05;

/// Standard deviation of what a dictionary's form misses, relative, at one doubling outside the measured
/// ranges; it grows with the root of the doublings.
pub(super) const FORM_GROWTH: f64 = 0.1;

/// Standard normal numbers, the same for every point that is asked.
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
    /// Whether it chose among columns.
    pub selected: bool,
}

/// Fits of so many replicas, of the sources in turn; the same for the same seed, whatever the number
/// of threads. Replicas whose fit fails are left out.
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
                    // A time is positive; the floor matters only where the model explains nothing.
                    noisy.max(0.01 * fitted)
                })
                .collect();
            let settle = match source.selects {
                true => Settle::Draw(random.f64()),
                false => Settle::All,
            };
            let fit = method::fit(method, residual, matrix, &times, Some(settle)).ok()?;
            let coefficients = DVector::from_vec(fit.values);
            Some(Replica { coefficients, support: fit.support, selected: source.selects })
        })
        .collect()
}

/// The 90 % interval of values of replicas; `None` where there are too few.
pub(super) fn interval(values: &mut [f64]) -> Option<(f64, f64)> {
    if values.len() < 20 {
        return None;
    }
    values.sort_by(f64::total_cmp);
    Some((quantile(values, TAIL), quantile(values, 1.0 - TAIL)))
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + part * (sorted[above] - sorted[below])
}

/// Seeds of neighbouring seeds' replicas must not overlap (golden-ratio steps, as in SplitMix64).
fn mixed(seed: u64, replica: usize) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(replica as u64)
}

/// A mean excess that agrees with the measured one: the sum over the points is as one of exponential
/// numbers.
fn drawn(excess: Excess, random: &mut fastrand::Rng) -> f64 {
    let sum: f64 = (0..excess.points).map(|_| exponential(random)).sum();
    excess.mean * excess.points as f64 / sum.max(f64::MIN_POSITIVE)
}

/// An exponential number of mean 1.
fn exponential(random: &mut fastrand::Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

/// A standard normal number (Box and Muller 1958).
fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}
