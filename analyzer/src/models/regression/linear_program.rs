//! The minimax linear program of Orii et al. (eq. 2) and least absolute deviations, both with
//! non-negative coefficients, solved by the simplex method.

use microlp::{ComparisonOp, OptimizationDirection, Problem as Program, Variable};
use nalgebra::DVector;
use thiserror::Error;

use super::face;
use super::problem::Problem;

/// Why a program has no solution.
#[derive(Debug, Error)]
pub(super) enum SolverError {
    /// The solver's own error.
    #[error("{0}")]
    Solver(#[from] microlp::Error),
    /// The solver gave up.
    #[error("the solver was interrupted")]
    Interrupted,
}

/// The optimum of a program, and how far the tie rule moved it.
#[derive(Debug, Clone)]
pub(super) struct Optimum {
    /// Scaled coefficients.
    pub a: DVector<f64>,
    /// The largest change of a scaled coefficient by the tie rule; `None` where no tie rule
    /// applies.
    pub moved: Option<f64>,
}

/// Minimises max|y − F·a| over a ≥ 0, and among all optima takes the one with the least squares.
///
/// # Errors
/// The solver fails.
pub(super) fn minimax(problem: &Problem) -> Result<Optimum, SolverError> {
    let vertex = vertex(problem)?;
    let a = face::least_squares(&problem.f, &problem.y, vertex.clone());
    let moved = (&a - &vertex).amax();
    Ok(Optimum { a, moved: Some(moved) })
}

/// One optimal vertex of the minimax program, as the simplex method finds it.
pub(super) fn vertex(problem: &Problem) -> Result<DVector<f64>, SolverError> {
    let mut program = Program::new(OptimizationDirection::Minimize);
    let largest = program.add_var(1.0, (0.0, f64::INFINITY));
    let variables = coefficients(&mut program, problem);
    for (row, y) in problem.f.row_iter().zip(problem.y.iter()) {
        let sum: Vec<(Variable, f64)> =
            variables.iter().copied().zip(row.iter().copied()).collect();
        let with = |sign: f64| {
            let mut sum = sum.clone();
            sum.push((largest, sign));
            sum
        };
        program.add_constraint(with(1.0), ComparisonOp::Ge, *y);
        program.add_constraint(with(-1.0), ComparisonOp::Le, *y);
    }
    solved(&program, &variables)
}

/// Minimises Σ|y − F·a| over a ≥ 0.
///
/// # Errors
/// The solver fails.
pub(super) fn least_absolute(problem: &Problem) -> Result<DVector<f64>, SolverError> {
    let mut program = Program::new(OptimizationDirection::Minimize);
    let variables = coefficients(&mut program, problem);
    for (row, y) in problem.f.row_iter().zip(problem.y.iter()) {
        let above = program.add_var(1.0, (0.0, f64::INFINITY));
        let below = program.add_var(1.0, (0.0, f64::INFINITY));
        let mut sum: Vec<(Variable, f64)> =
            variables.iter().copied().zip(row.iter().copied()).collect();
        sum.push((above, 1.0));
        sum.push((below, -1.0));
        program.add_constraint(&sum, ComparisonOp::Eq, *y);
    }
    solved(&program, &variables)
}

fn coefficients(program: &mut Program, problem: &Problem) -> Vec<Variable> {
    (0..problem.f.ncols()).map(|_| program.add_var(0.0, (0.0, f64::INFINITY))).collect()
}

fn solved(program: &Program, variables: &[Variable]) -> Result<DVector<f64>, SolverError> {
    let outcome = program.solve()?;
    let solution = outcome.into_solution().map_err(|_| SolverError::Interrupted)?;
    // The solver's zeros may carry rounding errors.
    let value = |variable: &Variable| {
        let value = solution.var_value(*variable);
        if value > 1e-12 { value } else { 0.0 }
    };
    Ok(DVector::from_iterator(variables.len(), variables.iter().map(value)))
}
