//! Checks the linear program against every vertex of its feasible set.

use nalgebra::{DMatrix, DVector};

use super::normal;
use crate::models::regression::linear_program::{minimax, vertex};
use crate::models::regression::problem::{Problem, Residual};

/// The minimum over a ≥ 0 of the largest residual, found by trying all sets of active constraints:
/// an optimum lies at a vertex of {(a, ε): a ≥ 0, |y − F·a| ≤ ε}.
fn enumerated(f: &DMatrix<f64>, y: &DVector<f64>) -> f64 {
    let (rows, columns) = f.shape();
    // Constraint k: normal · (a, ε) ≥ right
    let mut normals = Vec::new();
    for i in 0..rows {
        for sign in [1.0, -1.0] {
            let mut normal: Vec<f64> = f.row(i).iter().map(|value| sign * value).collect();
            normal.push(1.0);
            normals.push((normal, sign * y[i]));
        }
    }
    for j in 0..columns {
        let mut normal = vec![0.0; columns + 1];
        normal[j] = 1.0;
        normals.push((normal, 0.0));
    }
    let mut best = f64::INFINITY;
    let mut chosen: Vec<usize> = (0..=columns).collect();
    loop {
        let left = DMatrix::from_fn(columns + 1, columns + 1, |r, c| normals[chosen[r]].0[c]);
        let right = DVector::from_fn(columns + 1, |r, _| normals[chosen[r]].1);
        if let Some(point) = left.lu().solve(&right) {
            let feasible = normals.iter().all(|(normal, right)| {
                normal.iter().zip(point.iter()).map(|(n, x)| n * x).sum::<f64>() >= right - 1e-9
            });
            if feasible && point[columns] < best {
                best = point[columns];
            }
        }
        // The next set in lexicographic order.
        let Some(position) =
            (0..=columns).rev().find(|&k| chosen[k] < normals.len() - (columns + 1 - k))
        else {
            return best;
        };
        chosen[position] += 1;
        for k in position + 1..=columns {
            chosen[k] = chosen[k - 1] + 1;
        }
    }
}

#[test]
fn a_thousand_linear_programs_agree_with_enumeration() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut ties = 0;
    for case in 0..1000 {
        let rows = random.usize(3..6);
        let columns = random.usize(1..4);
        let mut f = DMatrix::from_fn(rows, columns, |_, _| {
            // Columns of performance models differ by many orders of magnitude.
            (1.0 + normal(&mut random).abs()) * if random.f64() < 0.2 { -1.0 } else { 1.0 }
        });
        for j in 0..columns {
            f.column_mut(j).scale_mut(10f64.powi(random.i32(-12..12)));
        }
        if case % 5 == 0 && columns > 1 {
            // Equal columns: the optimum is not unique.
            let first = f.column(0).into_owned();
            f.column_mut(columns - 1).copy_from(&first);
        }
        let mut y: Vec<f64> = (0..rows).map(|_| 0.1 + 10.0 * random.f64()).collect();
        if case % 3 == 0 {
            // Two times of the same configuration fix the largest residual and leave the rest free.
            let first = f.row(0).into_owned();
            f.row_mut(1).copy_from(&first);
            y[1] = 5.0 * y[0] + 10.0;
        }
        let problem = Problem::new(&f, &y, Residual::Absolute);
        let truth = enumerated(&problem.f, &problem.y);
        let optimum = minimax(&problem).expect("it has an optimum");
        for (a, what) in
            [(vertex(&problem).expect("it has one"), "vertex"), (optimum.a, "tie rule")]
        {
            assert!(a.iter().all(|a| *a >= 0.0));
            let largest = problem.residuals(&a).amax();
            assert!((largest - truth).abs() < 1e-6, "case {case}, {what}: {largest} for {truth}");
        }
        ties += usize::from(optimum.moved.is_some_and(|moved| moved > 1e-6));
    }
    assert!(ties > 100, "the tie rule had work in {ties} cases");
}
