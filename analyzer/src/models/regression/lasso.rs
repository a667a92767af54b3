//! The positive lasso: minimises ½‖y − F·a‖² + λ·Σa‖F_j‖ over a ≥ 0 along a path of λ, or at the λ
//! that cross-validation chooses.
//!
//! See Tibshirani 1996, and the positive lasso of Efron et al. 2004, section 3.4. Each coefficient
//! is penalised by the length of its column, so that scaling a column changes nothing.

use nalgebra::{DMatrix, DVector};

use super::nonnegative;
use super::problem::Problem;

/// Values of λ along the path.
const STEPS: usize = 60;
/// The smallest λ, relative to the one at which the first column enters.
const SMALLEST: f64 = 1e-5;
/// Number of folds in cross-validation.
const FOLDS: usize = 5;

/// The supports along the path, from small to large, each once.
pub(super) fn supports(problem: &Problem) -> Vec<Vec<usize>> {
    let (f, _) = unit_columns(&problem.f);
    let mut supports: Vec<Vec<usize>> = Vec::new();
    for a in path(&f, &problem.y, &lambdas(&f, &problem.y)) {
        let support: Vec<usize> = (0..a.len()).filter(|&j| a[j] > 0.0).collect();
        if !support.is_empty() && !supports.contains(&support) {
            supports.push(support);
        }
    }
    supports
}

/// The coefficients at the λ with the smallest error in cross-validation. Each fold takes every
/// fifth point, so that it has small and large runs.
pub(super) fn cross_validated(problem: &Problem) -> DVector<f64> {
    let (f, lengths) = unit_columns(&problem.f);
    let y = &problem.y;
    let lambdas = lambdas(&f, y);
    let folds = FOLDS.min(y.len());
    let mut errors = vec![0.0; lambdas.len()];
    for fold in 0..folds {
        let training: Vec<usize> = (0..y.len()).filter(|i| i % folds != fold).collect();
        let held: Vec<usize> = (0..y.len()).filter(|i| i % folds == fold).collect();
        let solutions = path(&f.select_rows(&training), &y.select_rows(&training), &lambdas);
        let (held_f, held_y) = (f.select_rows(&held), y.select_rows(&held));
        for (error, a) in errors.iter_mut().zip(solutions) {
            *error += (&held_y - &held_f * a).norm_squared();
        }
    }
    let best = (0..errors.len()).min_by(|&i, &j| errors[i].total_cmp(&errors[j])).unwrap_or(0);
    let chosen = path(&f, y, &lambdas[..=best]).pop();
    chosen.unwrap_or_else(|| DVector::zeros(f.ncols())).component_div(&lengths)
}

/// Columns scaled to length 1, and their original lengths.
fn unit_columns(f: &DMatrix<f64>) -> (DMatrix<f64>, DVector<f64>) {
    let lengths = DVector::from_iterator(
        f.ncols(),
        f.column_iter().map(|column| match column.norm() {
            0.0 => 1.0,
            length => length,
        }),
    );
    let mut unit = f.clone();
    for (mut column, length) in unit.column_iter_mut().zip(lengths.iter()) {
        column /= *length;
    }
    (unit, lengths)
}

/// Values of λ in geometric progression, from the one at which every coefficient becomes 0.
fn lambdas(f: &DMatrix<f64>, y: &DVector<f64>) -> Vec<f64> {
    let largest = f.tr_mul(y).max().max(f64::MIN_POSITIVE);
    let step = SMALLEST.powf(1.0 / (STEPS - 1) as f64);
    (0..STEPS).map(|k| largest * step.powi(k as i32)).collect()
}

fn path(f: &DMatrix<f64>, y: &DVector<f64>, lambdas: &[f64]) -> Vec<DVector<f64>> {
    let mut used: Vec<usize> = Vec::new();
    lambdas
        .iter()
        .map(|&lambda| {
            let a = nonnegative::solve(f, y, lambda, &used);
            used = (0..a.len()).filter(|&j| a[j] > 0.0).collect();
            a
        })
        .collect()
}
