//! The methods by name: fits coefficients to a matrix and times.

use nalgebra::{DMatrix, DVector};

use super::error::RegressionError;
use super::problem::{Problem, Residual};
use super::robust::{self, Selection};
use super::{lasso, linear_program, nonnegative};

/// How coefficients are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The default: Huber weights, supports from the positive lasso path and their neighbours, and
    /// the mean of the candidates by AICc.
    Robust,
    /// As robust, but with the best support alone.
    Sparse,
    /// The linear program of Orii et al., which minimises the largest residual; of equal optima the
    /// one with the least squares.
    Minimax,
    /// Non-negative least squares.
    Nnls,
    /// Minimises the sum of absolute residuals.
    L1,
    /// Positive lasso, λ by 5-fold cross-validation.
    Lasso,
    /// Unconstrained least squares, Orii et al.'s example of overfitting.
    Lsm,
}

impl Method {
    /// Every method, the default first.
    pub const ALL: [Self; 7] =
        [Self::Robust, Self::Sparse, Self::Nnls, Self::Minimax, Self::L1, Self::Lasso, Self::Lsm];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Robust => "robust",
            Self::Sparse => "sparse",
            Self::Minimax => "minimax",
            Self::Nnls => "nnls",
            Self::L1 => "l1",
            Self::Lasso => "lasso",
            Self::Lsm => "lsm",
        }
    }

    /// The residuals that it minimises by default: the methods of Orii et al. use seconds, as they
    /// do.
    pub fn residual(self) -> Residual {
        match self {
            Self::Robust | Self::Sparse | Self::Nnls => Residual::Relative,
            Self::Minimax | Self::L1 | Self::Lasso | Self::Lsm => Residual::Absolute,
        }
    }
}

/// Coefficients of one fit.
#[derive(Debug, Clone)]
pub(super) struct Coefficients {
    /// One per column, unscaled.
    pub values: Vec<f64>,
    /// Share of the candidates' weight that has each column; 1 or 0 where there is one candidate.
    pub support: Vec<f64>,
    /// Standard deviation of the residuals (relative, or in seconds), corrected for the number of
    /// coefficients.
    pub spread: f64,
    /// How far the tie rule of the minimax program moved a scaled coefficient.
    pub moved: Option<f64>,
}

/// Which columns a replica of the default method uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ReplicaColumns {
    /// Those of one candidate, drawn by its weight with this number in 0..1.
    Draw(f64),
    /// All columns.
    All,
}

/// Fits by one method. `matrix` is points × columns, unscaled; each point has one positive time.
/// `replica` is given for replicas only.
///
/// # Errors
/// The solver gives up on a linear program; or the points do not determine the columns in
/// unconstrained least squares.
pub(super) fn fit(
    method: Method,
    residual: Residual,
    matrix: &DMatrix<f64>,
    times: &[f64],
    replica: Option<ReplicaColumns>,
) -> Result<Coefficients, RegressionError> {
    let problem = Problem::new(matrix, times, residual);
    let failed = |error: linear_program::SolverError| RegressionError::Solver {
        method: method.name(),
        what: error.to_string(),
    };
    let mut moved = None;
    let a = match method {
        Method::Robust | Method::Sparse => {
            let selection = match (method, replica) {
                (Method::Robust, None) => Selection::Mean,
                (Method::Robust, Some(ReplicaColumns::Draw(share))) => Selection::Draw(share),
                (Method::Robust, Some(ReplicaColumns::All)) => Selection::All,
                _ => Selection::Best,
            };
            let fit = robust::fit(&problem, selection);
            let values = problem.unscale(&without_negligible(&problem, fit.a));
            let scale = scale_of(residual, times);
            let spread = fit.spread * scale;
            return Ok(Coefficients { values, support: fit.support, spread, moved });
        }
        Method::Nnls => nonnegative::solve(&problem.f, &problem.y, 0.0, &[]),
        Method::Minimax => {
            let optimum = linear_program::minimax(&problem).map_err(failed)?;
            moved = optimum.moved;
            optimum.a
        }
        Method::L1 => linear_program::least_absolute(&problem).map_err(failed)?,
        Method::Lasso => lasso::cross_validated(&problem),
        Method::Lsm => least_squares(&problem)?,
    };
    let a = if method == Method::Lsm { a } else { without_negligible(&problem, a) };
    let used = a.iter().filter(|a| **a != 0.0).count() as f64;
    let residuals = problem.residuals(&a);
    let free = (times.len() as f64 - used).max(1.0);
    let spread = (residuals.norm_squared() / free).sqrt() * scale_of(residual, times);
    let support = a.iter().map(|a| if *a == 0.0 { 0.0 } else { 1.0 }).collect();
    Ok(Coefficients { values: problem.unscale(&a), support, spread, moved })
}

/// The size of one unit of a scaled residual, as a ratio or in seconds.
fn scale_of(residual: Residual, times: &[f64]) -> f64 {
    match residual {
        Residual::Relative => 1.0,
        Residual::Absolute => times.iter().copied().fold(0.0, f64::max),
    }
}

/// Drops columns that are there only by rounding.
fn without_negligible(problem: &Problem, a: DVector<f64>) -> DVector<f64> {
    // Scaled columns and times are at most 1.
    let largest = problem.y.amax();
    a.map(|a| if a.abs() < 1e-9 * largest { 0.0 } else { a })
}

fn least_squares(problem: &Problem) -> Result<DVector<f64>, RegressionError> {
    let (rows, columns) = problem.f.shape();
    let all: Vec<usize> = (0..columns).collect();
    nonnegative::on_columns(&problem.f, &problem.y, 0.0, &all)
        .ok_or(RegressionError::NotDetermined { rows, columns })
}
