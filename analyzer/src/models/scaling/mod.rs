//! The efficiency model (Orii 2009): fits a table of runs over the rank count, one [`Fit`] for each
//! combination of parameters.
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
    /// The first few from p₁ on; the others are held back and predicted.
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
    /// The three terms of Orii 2009, a/p + χ'0 + χ'1·p.
    ThreeTerms,
}

/// How to fit, and what to compute.
#[derive(Debug, Clone)]
pub struct Options {
    /// Reference rank count; if not given, the smallest with a known Σγ.
    pub p1: Option<u32>,
    /// Assume ε'(1) = 1 as an additional point.
    pub anchor_one: bool,
    /// Which points to fit.
    pub points: PointChoice,
    /// Whether to square residuals of y or relative residuals of τ.
    pub weights: Weights,
    /// Target efficiencies, each above 0 and at most 1.
    pub targets: Vec<f64>,
    /// The definitions of efficiency that the targets apply to.
    pub definitions: Vec<Definition>,
    /// The work, as an expression of p, the parameters and `flops`.
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
    /// An error in the table.
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
        /// The table.
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

/// Parameters as text: `N=20000, NB=80`.
pub fn label(params: &[(String, String)]) -> String {
    let pairs: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(", ")
}

/// All fits of a table.
#[derive(Debug, Clone)]
pub struct Scaling {
    /// The table that they are from.
    pub source: String,
    /// One per combination of parameters, ascending.
    pub fits: Vec<Fit>,
    /// How the terms grow from fit to fit, where the fits differ in one numeric parameter.
    pub comparison: Option<Comparison>,
}

impl Scaling {
    /// Fits every series of a table.
    ///
    /// # Errors
    /// The table, the expression or an option is unsuitable.
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
