//! The JSON document of `gammachi scaling`; `docs/reference/predictions-json.md` explains its keys.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::models::scaling::bootstrap::{Interval, Noise};
use crate::models::scaling::fit::{Bounds, Hidden, NextRun, Unbalanced};
use crate::models::scaling::{Comparison, Fit, FittedPoint, Form, Isoefficiency, Scaling};
use crate::present::document::{Head, text};

use super::counts::{self, CountsDocument};
use super::structure::{self, StructureDocument};
use super::{advice, words};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    head: Head,
    source: &'a str,
    /// One for each combination of parameters.
    fits: Vec<FitDocument<'a>>,
    /// The terms of the fits; null: there is one fit, or they differ in several parameters.
    comparison: Option<&'a Comparison>,
    notes: &'a [String],
}

/// A fit ([definitions](../guide/predict.md#how-far-does-it-scale)); null where there is no model.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FitDocument<'a> {
    /// Values of the parameters.
    params: BTreeMap<&'a str, &'a str>,
    /// `strong` or `weak`.
    scaling: &'static str,
    /// p₁, the reference rank count.
    p1: u32,
    /// S, computation of all ranks at p₁.
    sum_gamma_p1_s: f64,
    /// Coefficient of (1 − ε')/ε' = c0 + c1·p + c2·p².
    c0: Option<f64>,
    /// Its linear coefficient.
    c1: Option<f64>,
    /// Its quadratic coefficient.
    c2: Option<f64>,
    /// Of 90 %, as the next two.
    c0_interval: Option<[f64; 2]>,
    c1_interval: Option<[f64; 2]>,
    c2_interval: Option<[f64; 2]>,
    /// σ, contention.
    sigma: Option<f64>,
    /// κ, coherence.
    kappa: Option<f64>,
    /// Correlation of measured and fitted (1 − ε')/ε'.
    r: Option<f64>,
    /// a of τ(p) = a/p + χ'₀ + χ'₁·p.
    a_s: Option<f64>,
    /// χ'₀ = S·c1.
    chi0_s: Option<f64>,
    /// χ'₁ = S·c2.
    chi1_s: Option<f64>,
    /// Where time stops falling; null: nowhere.
    p_c: Option<f64>,
    /// Lower end of its interval.
    p_c_lo: Option<f64>,
    /// Upper end; null: it has none.
    p_c_hi: Option<f64>,
    /// Time there.
    tau_min_s: Option<f64>,
    /// Noise of one τ; null: unknown.
    noise: Option<Noise>,
    /// Rank counts at which the efficiency falls to a target.
    isoefficiency: &'a [Isoefficiency],
    /// `evidence` or `three-terms`.
    predicted_by: &'static str,
    /// What predictions assume, in words.
    assumes: Option<String>,
    /// The times asked for, and those of points held back.
    predictions: Vec<PredictionDocument>,
    /// The same from what the program does; absent for tables, regions and three terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    structure: Option<StructureDocument>,
    /// Calls of all ranks at the rank counts asked for; absent as `structure`, and below four rank counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<CountsDocument>,
    /// The measured points.
    points: Vec<PointDocument>,
    /// Bounds of the shortest time without a model.
    bounds: Option<Bounds>,
    /// Lost time counted as computation.
    hidden_overhead: Option<Hidden>,
    /// Uneven computation.
    imbalance: Option<Unbalanced>,
    /// The run that would tell most.
    next: Option<NextRun>,
    /// Sentences on what limits the program.
    advice: Vec<String>,
    /// Sentences on what to doubt.
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PredictionDocument {
    p: u32,
    /// Elapsed time; null: `unsupported` says why.
    tau_s: Option<f64>,
    /// Lower end of its 90 % interval, also where that is too wide for a time.
    lo_s: Option<f64>,
    /// Upper end.
    hi_s: Option<f64>,
    /// Measured time of a point that was held back.
    measured_s: Option<f64>,
    /// Why there is no time, and what to measure.
    unsupported: Option<String>,
}

/// The runs at a rank count.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PointDocument {
    p: u32,
    /// The model was fitted to it.
    fitted: bool,
    /// τ of the fastest run; the following figures are of that run.
    tau_s: f64,
    runs: usize,
    /// Median τ.
    median_s: f64,
    /// Largest τ.
    max_s: f64,
    /// Σγ, computation of all ranks.
    sum_gamma_s: Option<f64>,
    /// χ, mean lost time.
    chi_s: Option<f64>,
    /// Work relative to p₁.
    work: f64,
    /// ε' = `efficiency_parallel` · `computation_scaling`.
    efficiency_reference: f64,
    /// ε_p.
    efficiency_parallel: Option<f64>,
    /// Computation at p₁ for the same work over Σγ.
    computation_scaling: Option<f64>,
    /// τ of the model.
    model_tau_s: Option<f64>,
}

/// The document as indented text with a line feed at the end.
pub fn json(scaling: &Scaling, notes: &[String]) -> serde_json::Result<String> {
    text(&document(scaling, notes))
}

/// The document as a value, for other documents that contain it.
pub(in crate::present) fn value(scaling: &Scaling, notes: &[String]) -> serde_json::Value {
    // These types always serialise.
    serde_json::to_value(document(scaling, notes)).unwrap_or_default()
}

fn document<'a>(scaling: &'a Scaling, notes: &'a [String]) -> Document<'a> {
    Document {
        head: Head::default(),
        source: &scaling.source,
        fits: scaling.fits.iter().map(fit_document).collect(),
        comparison: scaling.comparison.as_ref(),
        notes,
    }
}

fn fit_document(fit: &Fit) -> FitDocument<'_> {
    let model = fit.model.as_ref();
    let curve = model.map(|model| model.curve);
    let usl = curve.and_then(|curve| curve.usl());
    let interval =
        |at: usize| model.and_then(|m| m.c_intervals).map(|c: [Interval; 3]| [c[at].lo, c[at].hi]);
    let p_c_interval = model.filter(|m| m.curve.p_c().is_some()).and_then(|m| m.p_c_interval);
    FitDocument {
        params: fit.series.params.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect(),
        scaling: if fit.series.work.is_constant() { "strong" } else { "weak" },
        p1: fit.p1,
        sum_gamma_p1_s: fit.s,
        c0: curve.map(|curve| curve.c[0]),
        c1: curve.map(|curve| curve.c[1]),
        c2: curve.map(|curve| curve.c[2]),
        c0_interval: interval(0),
        c1_interval: interval(1),
        c2_interval: interval(2),
        sigma: usl.map(|(sigma, _)| sigma),
        kappa: usl.map(|(_, kappa)| kappa),
        r: model.map(|model| model.r),
        a_s: curve.map(|curve| curve.a_s()),
        chi0_s: curve.map(|curve| curve.chi0_s()),
        chi1_s: curve.map(|curve| curve.chi1_s()),
        p_c: curve.and_then(|curve| curve.p_c()),
        p_c_lo: p_c_interval.map(|interval| interval.lo).filter(|lo| lo.is_finite()),
        p_c_hi: p_c_interval.map(|interval| interval.hi).filter(|hi| hi.is_finite()),
        tau_min_s: model.and_then(|model| model.tau_min_s(&fit.series)),
        noise: model.and_then(|model| model.noise),
        isoefficiency: model.map_or(&[], |model| &model.isoefficiency),
        predicted_by: match fit.form {
            Form::Evidence => "evidence",
            Form::ThreeTerms => "three-terms",
        },
        assumes: words::assumption(fit),
        predictions: predictions(fit),
        structure: fit.structure.as_ref().map(structure::document),
        counts: counts::document(fit),
        points: points(fit),
        bounds: fit.bounds,
        hidden_overhead: model.and_then(|model| model.hidden),
        imbalance: fit.unbalanced,
        next: model.and_then(|model| model.next),
        advice: advice::sentences(fit),
        warnings: advice::warnings(fit),
    }
}

fn predictions(fit: &Fit) -> Vec<PredictionDocument> {
    let all = fit.predictions.iter();
    all.map(|prediction| PredictionDocument {
        p: prediction.p,
        tau_s: prediction.tau_s.ok(),
        lo_s: prediction.interval_s.map(|interval| interval.lo),
        hi_s: prediction.interval_s.map(|interval| interval.hi),
        measured_s: prediction.measured_s,
        unsupported: prediction.tau_s.err().map(words::unsupported),
    })
    .collect()
}

fn points(fit: &Fit) -> Vec<PointDocument> {
    let fitted = |p: u32| fit.fitted.iter().any(|f: &FittedPoint| f.measured && f.p == p);
    let all = fit.series.points.iter();
    all.map(|point| PointDocument {
        p: point.p,
        fitted: fitted(point.p),
        tau_s: point.tau_s,
        runs: point.spread.number,
        median_s: point.spread.median,
        max_s: point.spread.max,
        sum_gamma_s: point.sum_gamma_s,
        chi_s: point.chi_s(),
        work: fit.relative_work(point),
        efficiency_reference: fit.reference_efficiency(point),
        efficiency_parallel: point.parallel_efficiency(),
        computation_scaling: fit.computation_scaling(point),
        model_tau_s: fit
            .model
            .as_ref()
            .map(|model| model.curve.tau_s(f64::from(point.p), fit.relative_work(point))),
    })
    .collect()
}
