//! Non-negative least squares, optionally with a lasso penalty.
//!
//! The active-set method of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23),
//! extended by a linear term λ·Σa. Each subproblem is solved by Householder QR of the columns in
//! use.

use nalgebra::{DMatrix, DVector};

/// A gradient smaller than this counts as zero; the problem is scaled.
const ZERO: f64 = 1e-11;

/// Minimises ½‖y − F·a‖² + λ·Σa over a ≥ 0, starting from the columns `start`.
///
/// The result has exact zeros. Where the optimum is not unique, the column with the largest
/// gradient enters first, and the first of equal ones.
pub(super) fn solve(
    f: &DMatrix<f64>,
    y: &DVector<f64>,
    lambda: f64,
    start: &[usize],
) -> DVector<f64> {
    let columns = f.ncols();
    let mut a = DVector::zeros(columns);
    let mut used: Vec<usize> = start.to_vec();
    inner_loop(f, y, lambda, &mut used, &mut a);
    // A column that entered and left at once would do so for ever.
    let mut rejected = vec![false; columns];
    for _ in 0..3 * columns + 10 {
        let gradient = f.tr_mul(&(y - f * &a)).add_scalar(-lambda);
        let next = (0..columns)
            .filter(|&j| !rejected[j] && !used.contains(&j) && gradient[j] > ZERO)
            .max_by(|&i, &j| gradient[i].total_cmp(&gradient[j]).then(j.cmp(&i)));
        let Some(next) = next else { break };
        used.push(next);
        inner_loop(f, y, lambda, &mut used, &mut a);
        if a[next] > 0.0 {
            rejected.fill(false);
        } else {
            rejected[next] = true;
        }
    }
    a
}

/// Moves `a` to the optimum on the columns in use, dropping columns that would turn negative.
fn inner_loop(
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
        // The longest step towards the target at which nothing turns negative.
        let mut step = 1.0;
        let mut blocking = None;
        for (position, &j) in used.iter().enumerate() {
            if target[position] <= 0.0 {
                let length = a[j] / (a[j] - target[position]);
                let length = if length.is_finite() { length } else { 0.0 };
                if length < step || blocking.is_none() {
                    (step, blocking) = (length, Some(position));
                }
            }
        }
        for (position, &j) in used.iter().enumerate() {
            a[j] += step * (target[position] - a[j]);
        }
        let Some(position) = blocking else { return };
        a[used[position]] = 0.0;
        used.remove(position);
    }
}

/// The unconstrained optimum on some columns; `None` where they are linearly dependent.
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
