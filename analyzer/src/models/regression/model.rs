//! A fitted model: its parts, and what it predicts.

use serde::Serialize;

use crate::models::evidence::Evidence;

use super::basis::Basis;
use super::bootstrap;
use super::method::Method;
use super::points::{Identifiability, Points};
use super::problem::Residual;

/// A column is selected when the candidates that have it carry at least this share of the weight.
pub const SELECTED: f64 = 0.5;

/// How a model is fitted.
#[derive(Debug, Clone)]
pub struct Options {
    pub method: Method,
    /// The residuals that it minimises.
    pub residual: Residual,
    /// Number of bootstrap replicas; with 0 there are no intervals.
    pub replicas: usize,
    /// Seed of the replicas.
    pub seed: u64,
}

impl Options {
    /// A method with its default residuals and 200 replicas.
    pub fn for_method(method: Method) -> Self {
        Self { method, residual: method.residual(), replicas: 200, seed: 1 }
    }
}

/// One fit: a part of a model, or the whole of it.
#[derive(Debug, Clone)]
pub struct Part {
    /// `compute`, `mpi lower`; empty where the model has one part.
    pub label: String,
    /// Factor of its coefficients in the model: ½ for each envelope.
    pub factor: f64,
    pub basis: Basis,
    /// One per column, without the factor.
    pub coefficients: Vec<f64>,
    /// Share of the candidates' weight that has each column.
    pub support: Vec<f64>,
    /// Share of the bootstrap replicas that selected each column, among those that select at all;
    /// `None` without replicas.
    pub replica_share: Option<Vec<f64>>,
    /// Spread of the residuals: relative, or seconds.
    pub spread: f64,
    /// Kind of the residuals.
    pub residual: Residual,
    /// Which columns the points can tell apart.
    pub identifiability: Identifiability,
    /// How far the tie rule of the minimax program moved a scaled coefficient.
    pub tie_moved: Option<f64>,
    /// The points that it was fitted to.
    pub points: Points,
    /// Fitted times at these points, seconds.
    pub fitted: Vec<f64>,
    /// Fits of the replicas.
    pub(super) replicas: Vec<bootstrap::Replica>,
    /// Predicts its times where the rank count is the only variable.
    pub evidence: Option<Evidence>,
}

/// A model of a time: the sum of its parts.
#[derive(Debug, Clone)]
pub struct Model {
    /// The method of all parts.
    pub method: Method,
    /// Its parts, at least one.
    pub parts: Vec<Part>,
}

/// A model's prediction for one configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Prediction {
    /// Values of the variables, in the model's order.
    #[serde(skip)]
    pub values: Vec<f64>,
    /// Seconds; `None` where the model's time is not positive or too uncertain.
    pub value: Option<f64>,
    /// Lower end of the 90 % interval of the model's time, without the noise of a single run;
    /// `None` without replicas or where it would not be positive.
    pub lo: Option<f64>,
    /// Upper end.
    pub hi: Option<f64>,
    /// Warnings about this prediction.
    #[serde(skip)]
    pub warnings: Vec<PredictionWarning>,
}

/// A reason to distrust a prediction.
#[derive(Debug, Clone, PartialEq)]
pub enum PredictionWarning {
    /// A variable lies above all measured values.
    Beyond {
        variable: String,
        /// Its value over the largest measured one.
        times: f64,
        /// Whether the prediction assumes that no regime changes on the way there.
        assumes_regime: bool,
    },
    /// A variable lies below all measured values.
    Below {
        variable: String,
        /// The smallest measured value over its value.
        times: f64,
    },
    /// The value depends on columns that the fitted points cannot distinguish.
    Undecided,
    /// The 90 % interval is too wide for a single time to mean anything; it is given all the same.
    TooWide,
    /// The model's time is not positive there.
    NotPositive,
    /// The interval reaches below 0.
    IntervalBelowZero,
    /// The model misses the points that it was fitted to
    /// ([`FitQuality::misfit`](super::fit_quality::FitQuality::misfit)). Neither time nor interval is
    /// given.
    PoorFit(f64),
}
