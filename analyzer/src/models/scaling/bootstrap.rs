//! Bootstrap of a fit: intervals of its coefficients, of p_c and of predicted times.
//!
//! This is a parametric bootstrap: measured times are redrawn about the fitted curve and refitted.
//! The noise level is itself estimated from few degrees of freedom, so each replica draws its own
//! level from the scaled inverse χ² distribution. That widens the intervals as Student's t would.

use serde::Serialize;

use super::curve::Curve;
use super::least_squares::Quadratic;
use crate::statistics::{nearest_rank, normal};

/// Share of the replicas inside an interval.
pub const CONFIDENCE: f64 = 0.90;
const REPLICAS: usize = 4000;
/// Fixed, so that the same data give the same intervals.
const SEED: u64 = 0x6761_6d6d_6163_6869;

/// What the noise level is estimated from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoiseSource {
    /// Scatter of the points about the fit.
    Scatter,
    /// Repetitions of the same rank count.
    Repetitions,
    /// Both, which agree.
    Both,
}

/// The noise of a measured τ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Noise {
    /// Standard deviation relative to τ.
    pub relative: f64,
    /// Degrees of freedom of the estimate.
    #[serde(rename = "degrees_of_freedom")]
    pub freedom: usize,
    /// What it is estimated from.
    pub source: NoiseSource,
}

impl Noise {
    /// Combines the scatter about the fit and that of the repetitions, each a standard deviation
    /// with its degrees of freedom. `None` where both have none.
    pub(super) fn combine(scatter: (f64, usize), repetitions: (f64, usize)) -> Option<Self> {
        let noise = |(relative, freedom), source| Self { relative, freedom, source };
        match (scatter.1, repetitions.1) {
            (0, 0) => None,
            (0, _) => Some(noise(repetitions, NoiseSource::Repetitions)),
            (_, 0) => Some(noise(scatter, NoiseSource::Scatter)),
            // Points that scatter more than repetitions show that the curve misses something. Only
            // their scatter tells how much.
            _ if scatter.0 > repetitions.0 => Some(noise(scatter, NoiseSource::Scatter)),
            _ => Some(noise((repetitions.0, scatter.1 + repetitions.1), NoiseSource::Both)),
        }
    }
}

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end; infinite where the data set no bound.
    pub hi: f64,
}

/// Refits of redrawn data.
#[derive(Debug, Clone)]
pub(super) struct Replicas {
    curves: Vec<Curve>,
    /// Relative time of one more run, one per replica.
    runs: Vec<f64>,
}

impl Replicas {
    /// Draws and refits. `noisy` marks the points that were measured; the others are assumptions
    /// without noise.
    pub fn draw(problem: &Quadratic, curve: &Curve, noisy: &[bool], noise: Noise) -> Self {
        let mut random = fastrand::Rng::with_seed(SEED);
        let fitted: Vec<f64> = problem.points().iter().map(|p| 1.0 + curve.y(*p)).collect();
        let (mut curves, mut runs) = (Vec::with_capacity(REPLICAS), Vec::with_capacity(REPLICAS));
        let mut y = vec![0.0; fitted.len()];
        for _ in 0..REPLICAS {
            let chi_square: f64 = (0..noise.freedom).map(|_| normal(&mut random).powi(2)).sum();
            let sd = noise.relative * (noise.freedom as f64 / chi_square).sqrt();
            for ((y, fitted), noisy) in y.iter_mut().zip(&fitted).zip(noisy) {
                let error = if *noisy { sd * normal(&mut random) } else { 0.0 };
                *y = fitted * (1.0 + error) - 1.0;
            }
            curves.push(Curve { c: problem.solve(&y), ..*curve });
            runs.push(1.0 + sd * normal(&mut random));
        }
        Self { curves, runs }
    }

    /// Interval of a figure of the curve; replicas without the figure count as infinite.
    pub fn interval(&self, figure: impl Fn(&Curve) -> Option<f64>) -> Interval {
        interval(self.curves.iter().map(|c| figure(c).unwrap_or(f64::INFINITY)).collect())
    }

    /// Interval of one more measured τ(p), seconds; `work` is w(p).
    pub fn prediction(&self, p: f64, work: f64) -> Interval {
        interval(self.curves.iter().zip(&self.runs).map(|(c, r)| c.tau_s(p, work) * r).collect())
    }
}

fn interval(mut values: Vec<f64>) -> Interval {
    values.sort_by(f64::total_cmp);
    let at = |share| nearest_rank(&values, share).unwrap_or(f64::INFINITY);
    Interval { lo: at((1.0 - CONFIDENCE) / 2.0), hi: at((1.0 + CONFIDENCE) / 2.0) }
}
