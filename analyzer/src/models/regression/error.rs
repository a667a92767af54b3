//! Errors of the regression. Each message says where and what; `present` adds which options help.

use thiserror::Error;

use crate::models::expression::ExpressionError;
use crate::models::observations::ObservationsError;

use super::basis::BasisError;

/// Why a model cannot be fitted or evaluated.
#[derive(Debug, Error)]
pub enum RegressionError {
    /// An error in the list of columns.
    #[error(transparent)]
    Basis(#[from] BasisError),
    #[error(transparent)]
    Observations(#[from] ObservationsError),
    /// A name in a column that is neither variable nor constant.
    #[error("column {source}")]
    UnknownName {
        /// The expression's own error.
        source: ExpressionError,
        name: String,
    },
    /// A column has no value at a point.
    #[error("{location}: column {source}")]
    NoValue {
        /// The table and line.
        location: String,
        /// The expression's own error.
        source: ExpressionError,
    },
    /// Too few points.
    #[error(
        "{source_name}: {points} different points; {method} needs at least {required}. Measure \
         more configurations; repetitions of one do not count"
    )]
    TooFewPoints {
        source_name: String,
        /// Number of configurations.
        points: usize,
        /// Minimum number.
        required: usize,
        method: &'static str,
    },
    /// A variable has the same value at every point.
    #[error("{source_name}: {variable} is {value} at every point to fit, so its effect is unknown")]
    ConstantVariable { source_name: String, variable: String, value: f64 },
    /// Unconstrained least squares has no unique solution.
    #[error(
        "lsm: {rows} points do not determine {columns} columns; use fewer columns, more points, or \
         a method without negative coefficients (nnls, robust)"
    )]
    NotDetermined {
        /// Number of points.
        rows: usize,
        columns: usize,
    },
    /// A solver failed.
    #[error("{method}: the linear program could not be solved: {what}")]
    Solver {
        method: &'static str,
        /// The solver's own message.
        what: String,
    },
    /// A rank count of 0 or less.
    #[error("{location}: {variable} is {value}; a rank count is above 0")]
    RankCount {
        /// The table and line.
        location: String,
        /// The variable that counts ranks.
        variable: String,
        value: f64,
    },
    /// Columns are to be selected in a variable that the points do not have.
    #[error("{variable} is not among the variables {}", .known.join(","))]
    UnknownVariable {
        variable: String,
        /// The variables of the points.
        known: Vec<String>,
    },
    /// No slice has enough values of one variable at fixed values of the others.
    #[error(
        "{source_name}: at least {MIN_SLICE_POINTS} values of {variable} are needed at the same \
         values of the other variables; there are fewer everywhere"
    )]
    FewValues { source_name: String, variable: String },
    /// No variable has enough values to hold some back.
    #[error("nothing can be held back: at least 4 different values of a variable are needed")]
    NothingToHoldBack,
}

/// Minimum number of points in a slice, to fit its one variable.
pub(super) const MIN_SLICE_POINTS: usize = 3;
