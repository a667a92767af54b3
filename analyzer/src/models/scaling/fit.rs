//! Fits one series: coefficients with intervals, rank counts and predictions, or why there are
//! none.

use serde::Serialize;

use crate::models::evidence::{Contradiction, Evidence};
use crate::models::structure::Counts;

use super::bootstrap::{Interval, Noise, Replicas};
use super::by_structure::Structural;
use super::curve::{Curve, Definition};
use super::options::Form;
use super::series::Series;

/// Why a point was not fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LeftOut {
    /// Its rank count is below p₁.
    BelowP1,
    /// ε' is not between 0.1 and 1.
    Efficiency(f64),
    /// The user chose other points.
    NotChosen,
}

/// A point as the fit sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedPoint {
    /// Rank count.
    pub p: u32,
    /// (1−ε')/ε' as measured.
    pub y: f64,
    /// False for the assumed point ε'(1) = 1.
    pub measured: bool,
}

/// Rank count at which the efficiency falls to a target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Isoefficiency {
    /// Which efficiency.
    pub definition: Definition,
    /// Target.
    pub eps: f64,
    /// Rank count; `None` where the model never passes it.
    pub p: Option<f64>,
}

/// A fitted curve, and what follows from it.
#[derive(Debug, Clone)]
pub struct Model {
    /// The fitted curve.
    pub curve: Curve,
    /// Correlation coefficient of y as measured and as fitted.
    pub r: f64,
    /// Noise of a measured τ, where the data determine it.
    pub noise: Option<Noise>,
    /// Intervals of c0, c1, c2.
    pub c_intervals: Option<[Interval; 3]>,
    /// Interval of p_c; infinite above where the data set no bound.
    pub p_c_interval: Option<Interval>,
    /// Interval of τ_min, seconds.
    pub tau_min_interval_s: Option<Interval>,
    /// For each target and definition.
    pub isoefficiency: Vec<Isoefficiency>,
    /// Overhead hidden in the computation.
    pub hidden: Option<Hidden>,
    /// The run that would narrow the answer most.
    pub next: Option<NextRun>,
    pub(super) replicas: Option<Replicas>,
}

impl Model {
    /// 90 % intervals of one measured τ at these rank counts, seconds. Rank counts with unknown
    /// work are left out; without an estimate of the noise the result is empty.
    pub fn band(&self, fit: &Fit, rank_counts: &[f64]) -> Vec<(f64, Interval)> {
        let Some(replicas) = &self.replicas else { return Vec::new() };
        let at = |p: &f64| Some((*p, replicas.prediction(*p, fit.relative_work_at(*p)?)));
        rank_counts.iter().filter_map(at).collect()
    }

    /// τ(p_c), seconds; `None` in weak scaling, where p_c maximises speed but does not minimise
    /// time.
    pub fn tau_min_s(&self, series: &Series) -> Option<f64> {
        let p_c = self.curve.p_c().filter(|_| series.work.is_constant())?;
        Some(self.curve.tau_s(p_c, 1.0))
    }
}

/// One series, with its model and predictions.
#[derive(Debug, Clone)]
pub struct Fit {
    /// The measured points.
    pub series: Series,
    /// Reference rank count.
    pub p1: u32,
    /// S = Σγ(p₁), seconds.
    pub s: f64,
    pub fitted: Vec<FittedPoint>,
    /// The rank counts that were not, and why.
    pub left_out: Vec<(u32, LeftOut)>,
    /// `None` where too few points are left.
    pub model: Option<Model>,
    /// Predictions asked for, and those of held-back points.
    pub predictions: Vec<Prediction>,
    /// What predicts them.
    pub form: Form,
    /// Basis of the predictions; `None` where none were asked for, the three terms predict, or too
    /// few rank counts were measured.
    pub evidence: Option<Evidence>,
    /// What the structure of the runs predicts, or why nothing; `None` where it was not asked.
    pub structure: Option<Structural>,
    /// What the runs say of the calls of other rank counts; `None` where there are too few for laws, or as above.
    pub counts: Option<Counts>,
    /// Measured times that contradict the curves through the points.
    pub contradictions: Vec<Contradiction>,
    /// Bounds of τ_min that need no model.
    pub bounds: Option<Bounds>,
    /// Uneven computation over the ranks.
    pub unbalanced: Option<Unbalanced>,
    /// Reasons to doubt figures.
    pub warnings: Vec<Warning>,
}

/// Bounds of τ_min that need no model: in τ–χ space, more ranks move a run to the left, and
/// overhead that does not fall with p stops it at the diagonal τ = χ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bounds {
    /// χ of the run at [`Bounds::p`], seconds: τ_min is above it.
    #[serde(rename = "tau_min_lo_s")]
    pub lo_s: f64,
    /// Smallest measured τ, seconds.
    #[serde(rename = "tau_min_hi_s")]
    pub hi_s: f64,
    /// Rank count of the run that gives the lower bound.
    pub p: u32,
}

/// Overhead counted as computation: χ' grows beyond the measured χ, because Σγ grows with p.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hidden {
    /// Largest rank count with a known χ.
    pub p: u32,
    /// χ' − χ there, seconds.
    #[serde(skip)]
    pub gap_s: f64,
    /// χ' there, seconds.
    pub model_chi_s: f64,
    /// χ there, seconds.
    pub chi_s: f64,
    /// The smallest τ − (χ' − χ) over the measured rank counts, seconds.
    pub tau_without_s: f64,
    /// Its rank count.
    pub tau_without_p: u32,
}

/// Uneven computation: χ_i differs over the ranks of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unbalanced {
    /// Largest rank count with a known range of χ_i.
    pub p: u32,
    /// Smallest χ_i there, seconds.
    pub chi_min_s: f64,
    /// Largest χ_i there, seconds.
    pub chi_max_s: f64,
    /// Mean χ less smallest χ_i there, seconds: the computation of the busiest rank beyond the
    /// mean.
    pub excess_s: f64,
    /// Whether its share of τ grows from the smallest rank count above 1 to the largest.
    pub grows: bool,
    /// The smallest τ less this excess over the measured rank counts, seconds.
    pub tau_without_s: f64,
    /// Its rank count.
    pub tau_without_p: u32,
}

/// The run that would narrow the answer most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NextRun {
    /// Rank count.
    pub p: u32,
    /// What the run narrows: `p_c`, or `c2` where there is no p_c.
    pub narrows: &'static str,
    /// Relative standard error of that now; `None` where the noise is not known.
    pub error_now: Option<f64>,
    /// The same with the run.
    pub error_then: Option<f64>,
}

/// Why a time is not predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unsupported {
    /// Too few rank counts were measured; holds the one to measure next.
    FewRankCounts(u32),
    /// The 90 % interval is too wide for a single time to mean anything; it is given all the same.
    TooWide {
        /// Largest rank count that can be predicted, among doublings of the largest measured one.
        beyond: u32,
        /// Rank count to measure next.
        next: u32,
    },
    /// The work at that rank count is not known.
    UnknownWork,
    /// The time that the three terms give is not above 0.
    NotPositive,
    /// The three terms cannot be fitted.
    NoModel,
}

/// A predicted time, at a rank count that was not measured or was held back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Rank count.
    pub p: u32,
    /// τ(p), seconds, or why there is none.
    pub tau_s: Result<f64, Unsupported>,
    /// 90 % interval, seconds: by evidence that of the undisturbed time (even where it is too wide
    /// for a time), by the three terms that of one measured run.
    pub interval_s: Option<Interval>,
    /// Measured τ, seconds, if the point was held back.
    pub measured_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// Fewer than three rank counts are left to fit: how many, and whether ε'(1) = 1 would help.
    TooFewPoints(usize, bool),
    /// As many points as coefficients: the curve passes through all points, so it does not show how
    /// good it is.
    ExactFit,
    /// Neither scatter nor repetitions give the noise.
    NoNoise,
    /// ε' at these rank counts is not between 0.1 and 1.
    OutOfRange(Vec<(u32, f64)>),
    /// Measured, but below p₁.
    BelowP1(Vec<u32>),
    /// 1+c0 < 0.
    NegativeA(f64),
    /// c1 < 0.
    NegativeC1(f64),
    /// c2 ≤ 0.
    NoMinimum(f64),
    /// c2's interval touches 0.
    UnsupportedPc,
    /// p_c lies far beyond the fitted rank counts.
    FarPc(f64, u32),
    /// The anchor was asked for, but p = 1 was measured.
    AnchorMeasured,
    /// ε'(1) = 1 is assumed.
    Anchored,
    /// Listed rank counts that were not measured.
    NotMeasured(Vec<u32>),
    /// The three terms predict far beyond the fitted rank counts.
    FarPrediction(u32, f64),
    /// Counted operations change with p though the work is taken as constant.
    FlopsChange(f64),
    /// Weak scaling, where p_c maximises speed.
    WeakScaling,
}
