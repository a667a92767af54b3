//! What can be wrong with a regression, as sentences that name the place and the remedy.

use thiserror::Error;

use super::basis::BasisError;
use crate::models::expression::ExpressionError;
use crate::models::observations::ObservationsError;

/// Why a model cannot be fitted or asked.
#[derive(Debug, Error)]
pub enum RegressionError {
    /// The list of columns.
    #[error("--basis: {0}")]
    Basis(#[from] BasisError),
    /// The table.
    #[error(transparent)]
    Observations(#[from] ObservationsError),
    /// A name in a column that is neither variable nor constant.
    #[error(
        "--basis: column {source}; add it to --vars where the table has a column of that name, or \
         give its value with --const {name}=…"
    )]
    UnknownName {
        /// The expression's own error.
        source: ExpressionError,
        /// The name.
        name: String,
    },
    /// A column has no value at a point.
    #[error("{place}: column {source}; change the column, or leave the point out (--holdout)")]
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
        "{source_name}: {variable} is {value} at every point to fit; what it does cannot be learnt. \
         Leave it out of --vars and give it as --const {variable}={value}"
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
    /// Anything else about what was asked.
    #[error("{0}")]
    Asked(String),
}
