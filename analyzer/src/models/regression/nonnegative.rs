//! Least squares with coefficients that are not negative, and the same with a lasso penalty.
//!
//! The active-set method of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23),
//! with a linear term λ·Σa, each subproblem solved by Householder QR of the columns in use.

use nalgebra::{DMatrix, DVector};

/// A gradient smaller than this is zero; the problem is scaled.
const ZERO: f64 = 1e-11;

/// Minimises ½‖y − F·a‖² + λ·Σa over a ≥ 0. `start`: columns thought to be in use.
///
/// The result has exact zeros. Where the optimum is not unique, columns come in by the largest
/// gradient, the first of equal ones.
pub(super) fn solve(
    f: &DMatrix<f64>,
    y: &DVector<f64>,
    lambda: f64,
    start: &[usize],
) -> DVector<f64> {
    let columns = f.ncols();
    let mut a = DVector::zeros(columns);
    let mut used: Vec<usize> = start.to_vec();
    settle(f, y, lambda, &mut used, &mut a);
    // A column that came in and was thrown out at once would do so for ever.
    let mut refused = vec![false; columns];
    for _ in 0..3 * columns + 10 {
        let gradient = f.tr_mul(&(y - f * &a)).add_scalar(-lambda);
        let next = (0..columns)
            .filter(|&j| !refused[j] && !used.contains(&j) && gradient[j] > ZERO)
            .max_by(|&i, &j| gradient[i].total_cmp(&gradient[j]).then(j.cmp(&i)));
        let Some(next) = next else { break };
        used.push(next);
        settle(f, y, lambda, &mut used, &mut a);
        if a[next] > 0.0 {
            refused.fill(false);
        } else {
            refused[next] = true;
        }
    }
    a
}

/// Moves `a` to the optimum on the columns in use, leaving out those that would turn negative.
fn settle(
    f: &DMatrix<f64>,
    y: &DVector<f64>,
    lambda: f64,
    used: &mut Vec<usize>,
    a: &mut DVector<f64>,
) {
    while !used.is_empty() {
        let Some(target) = on_columns(f, y, lambda, used) else {
            // The newest column depends on the others.
            let last = used.pop().unwrap_or(0);
            a[last] = 0.0;
            continue;
        };
        // How far towards the target nothing turns negative.
        let mut step = 1.0;
        let mut blocking = None;
        for (place, &j) in used.iter().enumerate() {
            if target[place] <= 0.0 {
                let length = a[j] / (a[j] - target[place]);
                let length = if length.is_finite() { length } else { 0.0 };
                if length < step || blocking.is_none() {
                    (step, blocking) = (length, Some(place));
                }
            }
        }
        for (place, &j) in used.iter().enumerate() {
            a[j] += step * (target[place] - a[j]);
        }
        let Some(place) = blocking else { return };
        a[used[place]] = 0.0;
        used.remove(place);
    }
}

/// The unconstrained optimum on some columns, or `None` where they depend on each other.
pub(super) fn on_columns(
    f: &DMatrix<f64>,
    y: &DVector<f64>,
    lambda: f64,
    used: &[usize],
) -> Option<DVector<f64>> {
    if used.len() > f.nrows() {
        return None;
    }
    let part = f.select_columns(used);
    let qr = part.qr();
    let r = qr.r();
    let largest = r.diagonal().amax();
    if r.diagonal().iter().any(|d| d.abs() <= 1e-12 * largest) {
        return None;
    }
    let mut rotated = y.clone();
    qr.q_tr_mul(&mut rotated);
    let mut right = rotated.rows(0, used.len()).into_owned();
    if lambda != 0.0 {
        // RᵀR a = Fᵀy − λ1, so R a = Qᵀy − λ R⁻ᵀ1.
        let ones = DVector::from_element(used.len(), 1.0);
        right -= r.tr_solve_upper_triangular(&ones)? * lambda;
    }
    r.solve_upper_triangular(&right)
}
