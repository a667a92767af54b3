//! The JSON document of `gammachi scaling`; `docs/reference/predictions-json.md` explains its keys.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::models::scaling::bootstrap::{Interval, Noise};
use crate::models::scaling::fit::{Bounds, Hidden, NextRun, Unbalanced};
use crate::models::scaling::{Comparison, Fit, FittedPoint, Form, Isoefficiency, Scaling};

use super::{advice, words};

/// Version of the document's keys: a key never changes its meaning within one version.
pub const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
struct Document<'a> {
    version: u32,
    gammachi: &'static str,
    source: &'a str,
    fits: Vec<FitDocument<'a>>,
    comparison: Option<&'a Comparison>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct FitDocument<'a> {
    params: BTreeMap<&'a str, &'a str>,
    scaling: &'static str,
    p1: u32,
    sum_gamma_p1_s: f64,
    c0: Option<f64>,
    c1: Option<f64>,
    c2: Option<f64>,
    c0_interval: Option<[f64; 2]>,
    c1_interval: Option<[f64; 2]>,
    c2_interval: Option<[f64; 2]>,
    sigma: Option<f64>,
    kappa: Option<f64>,
    r: Option<f64>,
    a_s: Option<f64>,
    chi0_s: Option<f64>,
    chi1_s: Option<f64>,
    p_c: Option<f64>,
    p_c_lo: Option<f64>,
    p_c_hi: Option<f64>,
    tau_min_s: Option<f64>,
    noise: Option<Noise>,
    isoefficiency: &'a [Isoefficiency],
    predicted_by: &'static str,
    assumes: Option<String>,
    predictions: Vec<PredictionDocument>,
    points: Vec<PointDocument>,
    bounds: Option<Bounds>,
    hidden_overhead: Option<Hidden>,
    imbalance: Option<Unbalanced>,
    next: Option<NextRun>,
    advice: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct PredictionDocument {
    p: u32,
    tau_s: Option<f64>,
    lo_s: Option<f64>,
    hi_s: Option<f64>,
    measured_s: Option<f64>,
    unsupported: Option<String>,
}

#[derive(Debug, Serialize)]
struct PointDocument {
    p: u32,
    fitted: bool,
    tau_s: f64,
    runs: usize,
    median_s: f64,
    max_s: f64,
    sum_gamma_s: Option<f64>,
    chi_s: Option<f64>,
    work: f64,
    efficiency_reference: f64,
    efficiency_parallel: Option<f64>,
    computation_scaling: Option<f64>,
    model_tau_s: Option<f64>,
}

/// The document as indented text with a line feed at the end.
///
/// # Errors
/// If it cannot be serialised.
pub fn json(scaling: &Scaling, notes: &[String]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&document(scaling, notes)).map(|text| text + "\n")
}

/// The document as a value, for other documents that contain it.
pub(in crate::present) fn value(scaling: &Scaling, notes: &[String]) -> serde_json::Value {
    // These types always serialise.
    serde_json::to_value(document(scaling, notes)).unwrap_or_default()
}

fn document<'a>(scaling: &'a Scaling, notes: &'a [String]) -> Document<'a> {
    Document {
        version: VERSION,
        gammachi: env!("CARGO_PKG_VERSION"),
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
