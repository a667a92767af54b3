//! What can be wrong with a regression: the place and the fact. `present` adds which options help.

use thiserror::Error;

use super::basis::BasisError;
use super::two_step::LEAST_IN_SLICE;
use crate::models::expression::ExpressionError;
use crate::models::observations::ObservationsError;

/// Why a model cannot be fitted or asked.
#[derive(Debug, Error)]
pub enum RegressionError {
    /// The list of columns.
    #[error(transparent)]
    Basis(#[from] BasisError),
    /// The table.
    #[error(transparent)]
    Observations(#[from] ObservationsError),
    /// A name in a column that is neither variable nor constant.
    #[error("column {source}")]
    UnknownName {
        /// The expression's own error.
        source: ExpressionError,
        /// The name.
        name: String,
    },
    /// A column has no value at a point.
    #[error("{place}: column {source}")]
    NoValue {
        /// The table and line.
        place: String,
        /// The expression's own error.
        source: ExpressionError,
    },
    /// Too few points.
    #[error(
        "{source_name}: {points} different points; {method} needs at least {least}. Measure more \
         configurations; repetitions of one do not count"
    )]
    TooFewPoints {
        /// The table.
        source_name: String,
        /// Configurations.
        points: usize,
        /// How many there must be.
        least: usize,
        /// The method.
        method: &'static str,
    },
    /// A variable has one value.
    #[error(
        "{source_name}: {variable} is {value} at every point to fit; what it does cannot be learnt"
    )]
    ConstantVariable {
        /// The table.
        source_name: String,
        /// The variable.
        variable: String,
        /// Its value.
        value: f64,
    },
    /// Least squares without a sign has no unique solution.
    #[error(
        "lsm: {columns} columns cannot be told apart on {rows} points; use fewer columns, more \
         points, or a method with a sign (nnls, robust)"
    )]
    NotDetermined {
        /// Points.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// A solver failed.
    #[error("{method}: the linear program could not be solved: {what}")]
    Solver {
        /// The method.
        method: &'static str,
        /// What the solver said.
        what: String,
    },
    /// A rank count of 0 or less.
    #[error("{place}: {variable} is {value}; a rank count is above 0")]
    RankCount {
        /// The table and line.
        place: String,
        /// The variable that counts ranks.
        variable: String,
        /// Its value.
        value: f64,
    },
    /// A variable to select in that the points do not have.
    #[error("{variable} is not among the variables {}", .known.join(","))]
    UnknownVariable {
        /// The variable.
        variable: String,
        /// The variables that there are.
        known: Vec<String>,
    },
    /// Nowhere are there enough values of one variable while the others stay the same.
    #[error(
        "{source_name}: at least {LEAST_IN_SLICE} values of {variable} at one value of the other \
         variables are wanted; there are fewer everywhere"
    )]
    FewValues {
        /// The table.
        source_name: String,
        /// The variable.
        variable: String,
    },
    /// No variable has values enough to hold back some.
    #[error("nothing can be held back: at least 4 different values of a variable are wanted")]
    NothingToHoldBack,
}
