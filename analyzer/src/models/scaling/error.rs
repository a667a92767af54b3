//! Why a table of runs cannot be fitted.

use thiserror::Error;

use crate::models::expression::ExpressionError;
use crate::models::observations::ObservationsError;

/// Why nothing can be fitted.
#[derive(Debug, Error)]
pub enum ScalingError {
    #[error(transparent)]
    Observations(#[from] ObservationsError),
    /// An error in the expression of the work.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// Parameters change with p, and nothing says how the work changes with them.
    #[error(
        "{source_name}: every combination of parameters has one rank count only, because {params} \
         changes with p"
    )]
    Unclear {
        source_name: String,
        /// The parameters that change with p.
        params: String,
    },
    /// The work is not a positive number.
    #[error("{location}: the work is {value}; it must be a number above 0")]
    NoWork {
        /// Table and row.
        location: String,
        /// The computed work.
        value: f64,
    },
    /// Σγ(p₁) is not known.
    #[error("{}", no_reference(.params, *.p1, .known))]
    NoReference {
        /// Parameters of the series.
        params: Vec<(String, String)>,
        /// The p₁ asked for.
        p1: Option<u32>,
        /// Rank counts with a Σγ.
        known: Vec<u32>,
    },
    /// Fewer than two points were asked for. (A table with one point is not an error.)
    #[error("{0} points to fit: at least two points are needed")]
    FewPoints(usize),
}

pub(super) fn no_reference(params: &[(String, String)], p1: Option<u32>, known: &[u32]) -> String {
    let of = match params {
        [] => String::new(),
        params => format!(" of {}", label(params)),
    };
    let known: Vec<String> = known.iter().map(u32::to_string).collect();
    match p1 {
        Some(p1) if !known.is_empty() => format!(
            "no run{of} has p = {p1} and a sum_gamma_s; those that have: p = {}",
            known.join(", ")
        ),
        _ => format!(
            "no run{of} has a sum_gamma_s; the sum of the ranks' computation time is needed at one \
             rank count at least"
        ),
    }
}

/// Parameters as text: `N=20000, NB=80`.
pub fn label(params: &[(String, String)]) -> String {
    let pairs: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(", ")
}
