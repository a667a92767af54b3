//! The default method: selects columns and finds their coefficients.
//!
//! 1. Huber weights by non-negative least squares on relative residuals, with all columns.
//! 2. Candidate supports: those of the positive lasso path, then those that result from adding,
//!    dropping and exchanging single columns of the best.
//! 3. Every support is fitted and judged by AICc. The coefficients are the mean over the
//!    candidates, weighted by exp(−ΔAICc/2) (Burnham and Anderson 2002, chapter 4), with the
//!    weights softened by [`SOFTNESS`]. The model is linear in its coefficients, so the mean is
//!    again one model.

use nalgebra::DVector;

use super::candidates::Candidates;
use super::problem::Problem;
use super::{lasso, linear_program, nonnegative};
use crate::statistics::median;

/// Residuals below this are rounding.
const MIN_SCALE: f64 = 1e-9;
/// Huber's constant: 95 % efficient where the noise is normal.
const HUBER: f64 = 1.345;

/// Rounds of fitting supports and updating weights; supports hardly change after the second.
const PASSES: usize = 2;
/// Candidates weigh exp(−ΔAICc/(2·SOFTNESS)). A value of 1 gives Akaike's weights; softer weights
/// extrapolate better, because the candidates' criteria share the noise of the same few points.
const SOFTNESS: f64 = 3.0;
/// Candidates that weigh less than this share of the best are ignored.
const NEGLIGIBLE: f64 = 1e-3;

/// How the candidates give the result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Selection {
    /// Their weighted mean.
    Mean,
    /// One candidate, drawn by its weight with this number in 0..1. Replicas use it, so that their
    /// spread includes the disagreement of the candidates.
    Draw(f64),
    /// No candidate: all columns, without selection.
    All,
    /// The best candidate alone, which gives fewer columns and errors about a tenth larger.
    Best,
}

/// A fit of the default method.
#[derive(Debug, Clone)]
pub(super) struct Robust {
    /// Scaled coefficients.
    pub a: DVector<f64>,
    /// Share of the candidates' weight that has each column.
    pub support: Vec<f64>,
    /// Robust spread of the relative residuals, corrected for the number of coefficients and for
    /// the small number of points.
    pub spread: f64,
}

/// Fits by relative residuals.
pub(super) fn fit(problem: &Problem, selection: Selection) -> Robust {
    let (mut weights, _) = huber(problem);
    let mut support_weights = Vec::new();
    let mut result = DVector::zeros(problem.f.ncols());
    let mut k_eff = 1.0;
    for pass in 1..=PASSES {
        let with = match selection {
            Selection::Draw(_) if pass < PASSES => Selection::Mean,
            other => other,
        };
        let chosen = select(&problem.weighted(&weights), with);
        (result, k_eff, support_weights) = (chosen.mean, chosen.size, chosen.weights);
        let residuals = problem.residuals(&result);
        weights = huber_weights(&residuals, scale(&residuals, k_eff));
    }
    let residuals = problem.residuals(&result);
    Robust { spread: spread(&residuals, k_eff), a: result, support: support_weights }
}

/// Spread for replicas: the larger of two estimates, one from the median and one from the weighted
/// squares. With few degrees of freedom it is widened, as Student's t is wider than the normal.
fn spread(residuals: &DVector<f64>, coefficients: f64) -> f64 {
    let median = scale(residuals, coefficients);
    let free = (residuals.len() as f64 - coefficients).max(1.0);
    let weights = huber_weights(residuals, median);
    let squares: f64 = residuals.iter().zip(&weights).map(|(r, w)| w * r * r).sum();
    median.max((squares / free).sqrt()) * (1.0 + 1.1 / free)
}

/// Robust standard deviation of the residuals after fitting this many coefficients.
fn scale(residuals: &DVector<f64>, coefficients: f64) -> f64 {
    let n = residuals.len() as f64;
    let mut magnitudes: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
    let median = median(&mut magnitudes).expect("there is at least one residual");
    let correction = (n / (n - coefficients).max(1.0)).sqrt();
    (1.4826 * median * correction).max(MIN_SCALE)
}

fn huber_weights(residuals: &DVector<f64>, scale: f64) -> Vec<f64> {
    residuals.iter().map(|r| (HUBER * scale / r.abs()).min(1.0)).collect()
}

/// Weights of the points after Huber's iteration with all columns.
fn huber(problem: &Problem) -> (Vec<f64>, DVector<f64>) {
    let mut a = linear_program::least_absolute(problem)
        .unwrap_or_else(|_| nonnegative::solve(&problem.f, &problem.y, 0.0, &[]));
    let mut weights = vec![1.0; problem.y.len()];
    for _ in 0..20 {
        let used: Vec<usize> = (0..a.len()).filter(|&j| a[j] > 0.0).collect();
        let residuals = problem.residuals(&a);
        let next = huber_weights(&residuals, scale(&residuals, used.len() as f64));
        let change =
            weights.iter().zip(&next).map(|(a, b): (&f64, &f64)| (a - b).abs()).fold(0.0, f64::max);
        weights = next;
        if change < 1e-4 {
            break;
        }
        let weighted = problem.weighted(&weights);
        a = nonnegative::solve(&weighted.f, &weighted.y, 0.0, &used);
    }
    (weights, a)
}

/// Result of selecting columns for a weighted problem.
struct Chosen {
    mean: DVector<f64>,
    /// Mean number of coefficients.
    size: f64,
    /// Share of the weight that has each column.
    weights: Vec<f64>,
}

fn select(problem: &Problem, selection: Selection) -> Chosen {
    let columns = problem.f.ncols();
    if selection == Selection::All {
        let mean = nonnegative::solve(&problem.f, &problem.y, 0.0, &[]);
        let weights: Vec<f64> = mean.iter().map(|a| f64::from(u8::from(*a > 0.0))).collect();
        return Chosen { size: weights.iter().sum(), mean, weights };
    }
    let mut candidates = Candidates::new(&problem.f, &problem.y);
    for support in lasso::supports(problem) {
        // Where a fit turns negative, use the non-negative part of its support.
        let part = problem.f.select_columns(&support);
        let a = nonnegative::solve(&part, &problem.y, 0.0, &[]);
        let positive = support.into_iter().zip(a.iter()).filter(|(_, a)| **a > 0.0);
        let support: Vec<usize> = positive.map(|(j, _)| j).collect();
        candidates.try_support(&support);
    }
    while let Some((before, support)) = candidates.best().cloned() {
        candidates.try_neighbours(&support);
        if candidates.best().is_some_and(|(now, _)| *now >= before) {
            break;
        }
    }
    let mut chosen =
        Chosen { mean: DVector::zeros(columns), size: 0.0, weights: vec![0.0; columns] };
    let Some((smallest, best)) = candidates.best() else { return chosen };
    let mut weighed = Vec::new();
    for (support, candidate) in candidates.sorted() {
        let weight = match selection {
            Selection::Mean | Selection::Draw(_) => {
                (-(candidate.criterion - smallest) / (2.0 * SOFTNESS)).exp()
            }
            Selection::Best | Selection::All => f64::from(u8::from(support == best)),
        };
        if weight >= NEGLIGIBLE {
            weighed.push((weight, candidate));
        }
    }
    if let Selection::Draw(share) = selection {
        let mut left = share * weighed.iter().map(|(weight, _)| weight).sum::<f64>();
        let drawn = weighed.iter().position(|(weight, _)| {
            left -= weight;
            left <= 0.0
        });
        weighed = weighed.into_iter().skip(drawn.unwrap_or(0)).take(1).collect();
    }
    let total: f64 = weighed.iter().map(|(weight, _)| weight).sum();
    for (weight, candidate) in weighed {
        chosen.size += weight * candidate.columns.len() as f64;
        for (a, &j) in candidate.coefficients.iter().zip(&candidate.columns) {
            chosen.mean[j] += weight * a;
            chosen.weights[j] += weight;
        }
    }
    chosen.mean /= total;
    chosen.size /= total;
    chosen.weights.iter_mut().for_each(|weight| *weight /= total);
    chosen
}
