//! The efficiency model: a table of runs over the rank count comes in, a [`Scaling`] with one
//! [`Fit`] a combination of parameters goes out.
//!
//! No sequential run is needed: Σγ at a reference rank count p₁ takes its place. The model and its
//! formulas are in [`curve`]; docs/guide/predict.md explains every figure to the user.

pub mod bootstrap;
mod comparison;
pub mod curve;
pub mod findings;
pub mod fit;
mod least_squares;
mod prediction;
pub mod series;
mod warning;

use thiserror::Error;

use super::Observations;
use super::expression::{Expression, ExpressionError};
use super::observations::ObservationsError;

pub use comparison::{Comparison, Step};
pub use curve::{Curve, Definition};
pub use fit::{Fit, FittedPoint, Isoefficiency, LeftOut, Model};
pub use least_squares::Weights;
pub use prediction::{Prediction, Unsupported};
pub use series::{Point, Series, Work};
pub use warning::Warning;

/// Which points are fitted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PointChoice {
    /// All from p₁ on.
    #[default]
    All,
    /// So many from p₁ on; the others are held back and predicted.
    First(usize),
    /// These rank counts; the others are held back and predicted.
    Listed(Vec<u32>),
}

/// What predicts times that were not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Many sums of terms, weighed by how well they explain the points ([`super::evidence`]).
    #[default]
    Evidence,
    /// The paper's three terms, a/p + χ'0 + χ'1·p.
    ThreeTerms,
}

/// How to fit and what to answer.
#[derive(Debug, Clone)]
pub struct Options {
    /// Reference rank count; the smallest with a known Σγ where not given.
    pub p1: Option<u32>,
    /// Assume ε'(1) = 1 as one more point.
    pub anchor_one: bool,
    /// Which points.
    pub points: PointChoice,
    /// Whether residuals of y or relative residuals of τ are squared.
    pub weights: Weights,
    /// Target efficiencies, each above 0 and at most 1.
    pub targets: Vec<f64>,
    /// Which efficiencies reach the targets.
    pub definitions: Vec<Definition>,
    /// The work as an expression of p, the parameters and `flops`.
    pub work: Option<Expression>,
    /// Rank counts to predict.
    pub predict: Vec<u32>,
    /// What predicts them.
    pub form: Form,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            p1: None,
            anchor_one: false,
            points: PointChoice::All,
            weights: Weights::Plain,
            targets: vec![0.9, 0.5],
            definitions: vec![Definition::Reference, Definition::Asymptotic],
            work: None,
            predict: Vec::new(),
            form: Form::default(),
        }
    }
}

/// Why nothing can be fitted.
#[derive(Debug, Error)]
pub enum ScalingError {
    /// The table.
    #[error(transparent)]
    Observations(#[from] ObservationsError),
    /// The expression of the work.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// Parameters change with p, and nothing says how the work does.
    #[error(
        "{source_name}: every combination of parameters has one rank count only, because {params} \
         changes with p"
    )]
    Unclear {
        /// The table.
        source_name: String,
        /// The parameters that change with p.
        params: String,
    },
    /// The work is no amount.
    #[error("{place}: the work is {value}; it must be a number above 0")]
    NoWork {
        /// Table and row.
        place: String,
        /// What came out.
        value: f64,
    },
    /// Σγ(p₁) is not known.
    #[error("{}", no_reference(.params, *.p1, .known))]
    NoReference {
        /// Which series.
        params: Vec<(String, String)>,
        /// What was asked for.
        p1: Option<u32>,
        /// Rank counts with a Σγ.
        known: Vec<u32>,
    },
    /// One point in the table has an answer of its own; fewer than two asked for have none.
    #[error("{0} points to fit: at least two points are needed")]
    FewPoints(usize),
}

fn no_reference(params: &[(String, String)], p1: Option<u32>, known: &[u32]) -> String {
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

/// `N=20000, NB=80`.
pub fn label(params: &[(String, String)]) -> String {
    let pairs: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(", ")
}

/// All fits of a table.
#[derive(Debug, Clone)]
pub struct Scaling {
    /// The table that they are from.
    pub source: String,
    /// One a combination of parameters, ascending.
    pub fits: Vec<Fit>,
    /// How the terms grow from fit to fit, where one numeric parameter tells them apart.
    pub comparison: Option<Comparison>,
}

impl Scaling {
    /// Fits every series of a table.
    ///
    /// # Errors
    /// The table, the expression or an option does not allow it.
    pub fn new(table: &Observations, options: &Options) -> Result<Self, ScalingError> {
        if let PointChoice::First(number) = options.points
            && number < 2
        {
            return Err(ScalingError::FewPoints(number));
        }
        let fits: Vec<Fit> = series::series(table, options.work.as_ref())?
            .into_iter()
            .map(|series| Fit::new(series, options))
            .collect::<Result<_, _>>()?;
        let comparison = Comparison::of(&fits);
        Ok(Self { source: table.source().to_owned(), fits, comparison })
    }
}

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;
