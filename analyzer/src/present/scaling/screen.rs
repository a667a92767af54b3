//! Renders the efficiency model for the terminal.

use crate::models::scaling::bootstrap::{CONFIDENCE, NoiseSource};
use crate::models::scaling::{Comparison, Fit, Form, Model, Scaling, Work, series};
use crate::tables::scaling as tables;

use super::super::paragraph::wrapped;
use super::super::quantity::{percent, scientific, seconds, significant};
use super::super::table;
use super::{advice, counts, structure, words};

/// The screen of all fits, followed by `notes`. With `colour`, headings are bold.
pub fn screen(scaling: &Scaling, notes: &[String], colour: bool) -> String {
    let bold = |text: &str| match colour {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    let mut lines = Vec::new();
    for fit in &scaling.fits {
        let label = crate::models::scaling::label(&fit.series.params);
        let of = if label.is_empty() { String::new() } else { format!("  {label}") };
        lines.push(bold(&format!("SCALING  {}{of}", scaling.source)));
        lines.push(format!("  {}", kind(&fit.series)));
        lines.push(String::new());
        lines.extend(advice::sentences(fit).iter().flat_map(|text| wrapped("  ", text)));
        lines.push(String::new());
        lines.extend(table::lines(&tables::points(fit)).into_iter().map(indented));
        lines.push(String::new());
        match &fit.model {
            Some(model) => {
                lines.push(bold(&format!("MODEL  τ(p) = a/p + χ'0 + χ'1·p, from p1 = {}", fit.p1)));
                lines.extend(coefficients(fit, model).into_iter().map(indented));
                lines.push(String::new());
                let efficiencies = table::lines(&tables::isoefficiency(model));
                if !efficiencies.is_empty() {
                    lines.extend(efficiencies.into_iter().map(indented));
                    lines.push(String::new());
                }
            }
            None => lines.push("No model: the coefficients cannot be identified.".into()),
        }
        lines.extend(predictions(fit, &bold));
        let structure = fit.structure.iter();
        lines.extend(structure.flat_map(|of| structure::lines(of, None, &bold)));
        lines.extend(counts::lines(fit, &bold));
        if let Some(bounds) = fit.bounds {
            lines.extend(wrapped(
                "",
                &format!(
                    "Without any model: τ_min lies between {} (χ at p = {}, if lost time does not fall with p) and \
                     {} (the fastest run).",
                    seconds(bounds.lo_s),
                    bounds.p,
                    seconds(bounds.hi_s)
                ),
            ));
        }
        let warnings = advice::warnings(fit);
        if !warnings.is_empty() {
            lines.push(String::new());
            lines.push(bold("WARNINGS"));
            lines.extend(warnings.iter().flat_map(|warning| wrapped("  ", warning)));
        }
        lines.push(String::new());
    }
    if let Some(comparison) = &scaling.comparison {
        lines.push(bold(&format!("ACROSS {}", comparison.param)));
        lines.extend(across(comparison).into_iter().map(indented));
        lines.push(String::new());
    }
    if !notes.is_empty() {
        lines.push(bold("NOTES"));
        lines.extend(notes.iter().flat_map(|note| wrapped("  ", note)));
        lines.push(String::new());
    }
    lines.join("\n")
}

fn kind(series: &series::Series) -> String {
    match &series.work {
        Work::Constant(why) => format!("strong scaling: {why}"),
        Work::Expression(work) if work.names().is_empty() => {
            "strong scaling: --work says that the work stays the same".into()
        }
        Work::Expression(work) => format!("weak scaling: the work is {work}"),
        Work::Flops => "weak scaling: the work is counted in floating-point operations".into(),
    }
}

fn coefficients(fit: &Fit, model: &Model) -> Vec<String> {
    let curve = &model.curve;
    let three = scientific;
    let mut lines = vec![format!(
        "a = {}   χ'0 = {}   χ'1 = {} per rank   Σγ(p1) = {}",
        seconds(curve.a_s()),
        seconds(curve.chi0_s()),
        seconds(curve.chi1_s()),
        seconds(fit.s)
    )];
    let usl = curve.usl().map_or(String::new(), |(sigma, kappa)| {
        format!("   σ = {}   κ = {}", three(sigma), three(kappa))
    });
    lines.push(format!(
        "c0 = {}   c1 = {}   c2 = {}{usl}   R = {}",
        three(curve.c[0]),
        three(curve.c[1]),
        three(curve.c[2]),
        correlation(model.r)
    ));
    if let Some(c) = model.c_intervals {
        let range = |at: usize| format!("{} to {}", three(c[at].lo), three(c[at].hi));
        lines.push(format!(
            "{:.0} %: c0 {}, c1 {}, c2 {}",
            100.0 * CONFIDENCE,
            range(0),
            range(1),
            range(2)
        ));
    }
    if let Some(p_c) = curve.p_c() {
        let tau_min = model.tau_min_s(&fit.series).map_or(String::new(), |tau_min_s| {
            let range = match model.tau_min_interval_s {
                Some(i) if i.hi.is_finite() => {
                    format!(" (90 %: {} to {})", seconds(i.lo.max(0.0)), seconds(i.hi))
                }
                _ => String::new(),
            };
            format!("   τ_min = {}{range}", seconds(tau_min_s))
        });
        lines.push(format!("p_c = {}{tau_min}", significant(p_c, 3)));
    }
    if let Some(noise) = model.noise {
        let from = match noise.source {
            NoiseSource::Scatter => "scatter about the fit",
            NoiseSource::Repetitions => "repetitions",
            NoiseSource::Both => "scatter and repetitions",
        };
        lines.push(format!(
            "noise of one τ: {}, from {from} ({} degree{} of freedom)",
            percent(noise.relative),
            noise.freedom,
            if noise.freedom == 1 { "" } else { "s" }
        ));
    }
    lines
}

fn predictions(fit: &Fit, bold: &dyn Fn(&str) -> String) -> Vec<String> {
    if fit.predictions.is_empty() {
        return Vec::new();
    }
    let all = &fit.predictions;
    let exact = fit.evidence.as_ref().and_then(|evidence| evidence.exact());
    let (by, interval) = match fit.form {
        Form::Evidence if exact.is_some() => {
            ("a form that reproduces every point to its digits", "90 % interval")
        }
        Form::Evidence => ("many sums of terms, weighted by their fit", "90 % interval"),
        Form::ThreeTerms => ("the three terms", "90 % of runs"),
    };
    let mut lines = vec![bold(&format!("PREDICTED  by {by}"))];
    lines.extend(table::lines(&tables::predictions(all, interval)).into_iter().map(indented));
    for prediction in all {
        if let Err(why) = prediction.tau_s {
            let why = format!("p = {}: {}", prediction.p, words::unsupported(why));
            lines.extend(wrapped("  ", &why));
        }
    }
    lines.extend(words::assumption(fit).iter().flat_map(|text| wrapped("  ", text)));
    lines.push(String::new());
    lines
}

fn across(comparison: &Comparison) -> Vec<String> {
    let mut lines = table::lines(&tables::across(comparison));
    for step in &comparison.steps {
        if let Some(ratio) = step.chi0_ratio.filter(|ratio| *ratio >= 5.0) {
            lines.push(format!(
                "χ'0 at {} = {} is {} times that of the other sizes: load imbalance is the usual cause",
                comparison.param,
                step.value,
                significant(ratio, 2)
            ));
        }
    }
    lines
}

/// The correlation, with as many digits as distinguish it from 1.
fn correlation(r: f64) -> String {
    if 1.0 - r < 5e-7 { "1".into() } else { format!("{r:.6}").trim_end_matches('0').to_owned() }
}

fn indented(line: String) -> String {
    if line.is_empty() { line } else { format!("  {line}") }
}
