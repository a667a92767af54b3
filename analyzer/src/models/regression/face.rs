//! The tie rule of the minimax program: among all optimal coefficients, choose those with the least
//! squares, and among these the shortest vector of scaled coefficients.
//!
//! From an optimal vertex, this solves a convex quadratic program on the optimal face
//! {a ≥ 0, |y − F·a| ≤ ε} by a primal active-set method (Nocedal and Wright, Numerical
//! Optimization, algorithm 16.3) with null-space steps.

use nalgebra::{DMatrix, DVector};

/// Weight of the coefficients' length: small enough to decide only between equal least squares.
const LENGTH_WEIGHT: f64 = 1e-4;
/// Values smaller than this count as zero; the problem is scaled.
const ZERO: f64 = 1e-11;

/// An inequality that may be active.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    /// a_j ≥ 0
    Column(usize),
    /// (y − F·a)_i ≤ ε
    Above(usize),
    /// (F·a − y)_i ≤ ε
    Below(usize),
}

/// Least squares on the face, starting from the feasible `a`.
pub(super) fn least_squares(f: &DMatrix<f64>, y: &DVector<f64>, a: DVector<f64>) -> DVector<f64> {
    let (rows, columns) = f.shape();
    let largest = (y - f * &a).amax();
    // The vertex is feasible only to the solver's tolerance; a small margin keeps it inside.
    let bound = largest * (1.0 + 1e-9) + 1e-13;
    let mut a = a;
    let mut active: Vec<Bound> = (0..columns).filter(|&j| a[j] == 0.0).map(Bound::Column).collect();
    for _ in 0..20 * (rows + columns) {
        let free: Vec<usize> =
            (0..columns).filter(|j| !active.contains(&Bound::Column(*j))).collect();
        let residual = y - f * &a;
        let step = step(f, &residual, &a, &free, &active);
        if step.amax() <= ZERO * (1.0 + a.amax()) {
            match most_negative_multiplier(f, &residual, &a, &active) {
                Some(position) => {
                    active.remove(position);
                    continue;
                }
                None => break,
            }
        }
        let moved = f * &step;
        let mut length = 1.0;
        let mut blocking = None;
        let mut consider = |room: f64, speed: f64, what: Bound| {
            if speed > ZERO {
                let reach = (room / speed).max(0.0);
                if reach < length {
                    (length, blocking) = (reach, Some(what));
                }
            }
        };
        for &j in &free {
            consider(a[j], -step[j], Bound::Column(j));
        }
        for i in 0..rows {
            if !active.contains(&Bound::Above(i)) {
                consider(bound - residual[i], -moved[i], Bound::Above(i));
            }
            if !active.contains(&Bound::Below(i)) {
                consider(bound + residual[i], moved[i], Bound::Below(i));
            }
        }
        a += step * length;
        if let Some(what) = blocking {
            if let Bound::Column(j) = what {
                a[j] = 0.0;
            }
            active.push(what);
        }
    }
    // Columns that entered only through that margin do not count as selected.
    a.map(|a| if a < 1e-7 { 0.0 } else { a })
}

/// The step to the optimum within the active bounds.
fn step(
    f: &DMatrix<f64>,
    residual: &DVector<f64>,
    a: &DVector<f64>,
    free: &[usize],
    active: &[Bound],
) -> DVector<f64> {
    let columns = f.ncols();
    let mut step = DVector::zeros(columns);
    if free.is_empty() {
        return step;
    }
    let part = f.select_columns(free);
    let active_rows: Vec<usize> = active
        .iter()
        .filter_map(|bound| match bound {
            Bound::Above(i) | Bound::Below(i) => Some(*i),
            Bound::Column(_) => None,
        })
        .collect();
    let directions = null_space(&part.select_rows(&active_rows));
    if directions.ncols() == 0 {
        return step;
    }
    // [F; δI] d ≈ [r; −δa]
    let rows = f.nrows();
    let mut left = DMatrix::zeros(rows + free.len(), directions.ncols());
    left.rows_mut(0, rows).copy_from(&(&part * &directions));
    left.rows_mut(rows, free.len()).copy_from(&(&directions * LENGTH_WEIGHT));
    let mut right = DVector::zeros(rows + free.len());
    right.rows_mut(0, rows).copy_from(residual);
    for (position, &j) in free.iter().enumerate() {
        right[rows + position] = -LENGTH_WEIGHT * a[j];
    }
    let qr = left.qr();
    qr.q_tr_mul(&mut right);
    let rotated = right.rows(0, directions.ncols()).into_owned();
    if let Some(along) = qr.r().solve_upper_triangular(&rotated) {
        let part_step = directions * along;
        for (position, &j) in free.iter().enumerate() {
            step[j] = part_step[position];
        }
    }
    step
}

/// An orthonormal basis of {d : A·d = 0}, one column per direction. The rows of A are independent,
/// because a bound becomes active only when a step that keeps the others runs into it.
fn null_space(a: &DMatrix<f64>) -> DMatrix<f64> {
    let (height, width) = a.shape();
    if height >= width {
        return DMatrix::zeros(width, 0);
    }
    let mut square = DMatrix::zeros(width, width);
    square.columns_mut(0, height).copy_from(&a.transpose());
    square.qr().q().columns(height, width - height).into_owned()
}

/// The active bound to release; `None` where all are needed.
fn most_negative_multiplier(
    f: &DMatrix<f64>,
    residual: &DVector<f64>,
    a: &DVector<f64>,
    active: &[Bound],
) -> Option<usize> {
    if active.is_empty() {
        return None;
    }
    let columns = f.ncols();
    let gradient = -f.tr_mul(residual) + a * (LENGTH_WEIGHT * LENGTH_WEIGHT);
    let mut normals = DMatrix::zeros(columns, active.len());
    for (position, bound) in active.iter().enumerate() {
        match bound {
            Bound::Column(j) => normals[(*j, position)] = 1.0,
            Bound::Above(i) => normals.column_mut(position).copy_from(&f.row(*i).transpose()),
            Bound::Below(i) => normals.column_mut(position).copy_from(&-f.row(*i).transpose()),
        }
    }
    let qr = normals.qr();
    let mut rotated = gradient;
    qr.q_tr_mul(&mut rotated);
    let rotated = rotated.rows(0, active.len().min(columns)).into_owned();
    let multipliers = qr.r().solve_upper_triangular(&rotated)?;
    let (position, smallest) = multipliers.argmin();
    (smallest < -ZERO).then_some(position)
}
