//! How to fit, and what to compute.

use crate::models::expression::Expression;

use super::curve::Definition;
use super::least_squares::Weights;

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
    /// Many sums of terms, weighed by how well they explain the points ([`crate::models::evidence`]).
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
