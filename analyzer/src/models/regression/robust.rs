//! The default method: which columns are there, and with which coefficients.
//!
//! 1. Huber weights by non-negative least squares on relative residuals, all columns.
//! 2. Candidate supports: those of the positive lasso path, and what adding, dropping and exchanging
//!    single columns makes of the best.
//! 3. Every support is fitted and judged by AICc; the coefficients are the mean over the candidates,
//!    weighted by exp(−ΔAICc/2) (Burnham and Anderson 2002, chapter 4). The model is linear in its
//!    coefficients, so the mean is one model again.

use std::collections::HashMap;

use nalgebra::{DMatrix, DVector};

use super::problem::Problem;
use super::{lasso, linear_program, nonnegative};

/// A residual that never counts as less than rounding.
const LEAST_SCALE: f64 = 1e-9;
/// Huber's constant: 95 % efficient where the noise is normal.
const HUBER: f64 = 1.345;

/// Fits of weights and supports in turn; the supports hardly move after the second.
const PASSES: usize = 2;
/// Candidates weigh exp(−ΔAICc/(2·SOFTNESS)). 1 is Akaike's weight; extrapolation gains from softer
/// ones, because the candidates' criteria share the noise of the same few points.
const SOFTNESS: f64 = 3.0;
/// Candidates that weigh less than this share of the best are left out.
const NEGLIGIBLE: f64 = 1e-3;

/// What becomes of the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// The weighted mean of all.
    Mean,
    /// The best one alone: fewer columns, and errors about a tenth larger.
    Best,
}

/// A fit of the default method.
#[derive(Debug, Clone)]
pub(super) struct Robust {
    /// Scaled coefficients.
    pub a: DVector<f64>,
    /// Share of the candidates' weight that has the column; one a column.
    pub support: Vec<f64>,
    /// Robust spread of the relative residuals, corrected for the number of coefficients.
    pub spread: f64,
}

/// Fits relative residuals.
pub(super) fn fit(problem: &Problem, selection: Selection) -> Robust {
    let (mut weights, _) = huber(problem);
    let mut support_weights = Vec::new();
    let mut result = DVector::zeros(problem.f.ncols());
    let mut k_eff = 1.0;
    for _ in 0..PASSES {
        let chosen = select(&problem.weighted(&weights), selection);
        (result, k_eff, support_weights) = (chosen.mean, chosen.size, chosen.weights);
        let residuals = problem.residuals(&result);
        weights = huber_weights(&residuals, scale(&residuals, k_eff));
    }
    let residuals = problem.residuals(&result);
    Robust { spread: scale(&residuals, k_eff), a: result, support: support_weights }
}

/// Robust standard deviation of residuals after fitting so many coefficients.
fn scale(residuals: &DVector<f64>, coefficients: f64) -> f64 {
    let n = residuals.len() as f64;
    let mut magnitudes: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
    magnitudes.sort_by(f64::total_cmp);
    let middle = magnitudes.len() / 2;
    let median = match magnitudes.len() % 2 {
        1 => magnitudes[middle],
        _ => 0.5 * (magnitudes[middle - 1] + magnitudes[middle]),
    };
    let correction = (n / (n - coefficients).max(1.0)).sqrt();
    (1.4826 * median * correction).max(LEAST_SCALE)
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

struct Candidate {
    criterion: f64,
    coefficients: DVector<f64>,
}

/// Every support that was fitted; `None` where the fit has a coefficient that is not positive.
struct Candidates<'a> {
    f: &'a DMatrix<f64>,
    y: &'a DVector<f64>,
    largest: usize,
    found: HashMap<Vec<usize>, Option<Candidate>>,
}

impl Candidates<'_> {
    fn criterion_of(&mut self, support: &[usize]) -> Option<f64> {
        if support.is_empty() || support.len() > self.largest {
            return None;
        }
        if let Some(known) = self.found.get(support) {
            return known.as_ref().map(|c| c.criterion);
        }
        let candidate = self.fitted(support);
        let criterion = candidate.as_ref().map(|c| c.criterion);
        self.found.insert(support.to_vec(), candidate);
        criterion
    }

    fn fitted(&self, support: &[usize]) -> Option<Candidate> {
        let coefficients = nonnegative::on_columns(self.f, self.y, 0.0, support)?;
        if coefficients.iter().any(|a| *a <= 0.0) {
            return None;
        }
        let mut residual = self.y.clone();
        for (a, &j) in coefficients.iter().zip(support) {
            residual.axpy(-a, &self.f.column(j), 1.0);
        }
        let n = self.y.len() as f64;
        let squares = (residual.norm_squared() / n).max(LEAST_SCALE * LEAST_SCALE);
        let k = support.len() as f64;
        let criterion = n * squares.ln() + 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0);
        Some(Candidate { criterion, coefficients })
    }
}

/// What selection made of a weighted problem.
struct Chosen {
    mean: DVector<f64>,
    /// Mean number of coefficients.
    size: f64,
    /// Share of the weight that has each column.
    weights: Vec<f64>,
}

fn select(problem: &Problem, selection: Selection) -> Chosen {
    let (rows, columns) = problem.f.shape();
    let mut candidates = Candidates {
        f: &problem.f,
        y: &problem.y,
        largest: rows.saturating_sub(2).min(columns).max(1),
        found: HashMap::new(),
    };
    let mut best: Option<(f64, Vec<usize>)> = None;
    let better =
        |best: &mut Option<(f64, Vec<usize>)>, criterion: Option<f64>, support: Vec<usize>| {
            if let Some(c) = criterion
                && best
                    .as_ref()
                    .is_none_or(|(least, known)| c < *least || (c == *least && support < *known))
            {
                *best = Some((c, support));
            }
        };
    for support in lasso::supports(problem) {
        // A support whose fit turns negative stands for its non-negative part.
        let part = problem.f.select_columns(&support);
        let a = nonnegative::solve(&part, &problem.y, 0.0, &[]);
        let support: Vec<usize> =
            support.into_iter().zip(a.iter()).filter(|(_, a)| **a > 0.0).map(|(j, _)| j).collect();
        let criterion = candidates.criterion_of(&support);
        better(&mut best, criterion, support);
    }
    loop {
        let Some((before, support)) = best.clone() else { break };
        for neighbour in neighbours(&support, columns) {
            let criterion = candidates.criterion_of(&neighbour);
            better(&mut best, criterion, neighbour);
        }
        if best.as_ref().is_some_and(|(now, _)| *now >= before) {
            break;
        }
    }
    let mut chosen =
        Chosen { mean: DVector::zeros(columns), size: 0.0, weights: vec![0.0; columns] };
    let Some((least, best)) = best else { return chosen };
    let mut all: Vec<(&Vec<usize>, &Candidate)> =
        candidates.found.iter().filter_map(|(s, c)| c.as_ref().map(|c| (s, c))).collect();
    // The order of a sum must not depend on that of a hash table.
    all.sort_by(|a, b| a.0.cmp(b.0));
    let mut total = 0.0;
    for (support, candidate) in all {
        let weight = match selection {
            Selection::Mean => (-(candidate.criterion - least) / (2.0 * SOFTNESS)).exp(),
            Selection::Best => f64::from(u8::from(*support == best)),
        };
        if weight < NEGLIGIBLE {
            continue;
        }
        total += weight;
        chosen.size += weight * support.len() as f64;
        for (a, &j) in candidate.coefficients.iter().zip(support) {
            chosen.mean[j] += weight * a;
            chosen.weights[j] += weight;
        }
    }
    chosen.mean /= total;
    chosen.size /= total;
    chosen.weights.iter_mut().for_each(|weight| *weight /= total);
    chosen
}

/// Supports with one column more, one less, or one exchanged, sorted inside.
fn neighbours(support: &[usize], columns: usize) -> Vec<Vec<usize>> {
    let outside: Vec<usize> = (0..columns).filter(|j| !support.contains(j)).collect();
    let mut neighbours = Vec::new();
    let mut add = |mut columns: Vec<usize>| {
        columns.sort_unstable();
        neighbours.push(columns);
    };
    for &new in &outside {
        add([support, &[new]].concat());
    }
    for place in 0..support.len() {
        let mut rest = support.to_vec();
        rest.remove(place);
        for &new in &outside {
            add([rest.as_slice(), &[new]].concat());
        }
        add(rest);
    }
    neighbours
}
