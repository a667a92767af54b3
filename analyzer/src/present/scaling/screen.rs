//! Renders the efficiency model for the terminal.

use crate::models::scaling::bootstrap::{CONFIDENCE, NoiseSource};
use crate::models::scaling::{Comparison, Fit, Form, LeftOut, Model, Scaling, Work, series};

use super::super::paragraph::wrapped;
use super::super::quantity::{percent, seconds, significant};
use super::super::table::Table;
use super::{advice, words};

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
        lines.extend(points(fit).into_iter().map(indented));
        lines.push(String::new());
        match &fit.model {
            Some(model) => {
                lines.push(bold(&format!("MODEL  τ(p) = a/p + χ'0 + χ'1·p, from p1 = {}", fit.p1)));
                lines.extend(coefficients(fit, model).into_iter().map(indented));
                lines.push(String::new());
                lines.extend(isoefficiency(model).into_iter().map(indented));
            }
            None => lines.push("No model: the coefficients cannot be identified.".into()),
        }
        lines.extend(predictions(fit, &bold));
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

fn points(fit: &Fit) -> Vec<String> {
    let all = &fit.series.points;
    let mut table = Table::default();
    let number = |value: Option<f64>| value.map_or("-".into(), |value| significant(value, 3));
    table.right("p", all.iter().map(|point| point.p.to_string()));
    if all.iter().any(|point| point.spread.number > 1) {
        table.right("runs", all.iter().map(|point| point.spread.number.to_string()));
        table.right("τ min", all.iter().map(|point| seconds(point.tau_s)));
        table.right("median", all.iter().map(|point| seconds(point.spread.median)));
        table.right("spread", all.iter().map(|point| percent(point.spread.relative())));
    } else {
        table.right("τ", all.iter().map(|point| seconds(point.tau_s)));
    }
    if !fit.series.work.is_constant() {
        table.right("work", all.iter().map(|p| significant(fit.relative_work(p), 3)));
    }
    table.right("χ", all.iter().map(|point| point.chi_s().map_or("-".into(), seconds)));
    table.right("ε'", all.iter().map(|p| significant(fit.reference_efficiency(p), 3)));
    table.right("= ε_p", all.iter().map(|point| number(point.parallel_efficiency())));
    table.right("× comp. scaling", all.iter().map(|p| number(fit.computation_scaling(p))));
    if let Some(model) = &fit.model {
        let tau =
            |point: &series::Point| model.curve.tau_s(f64::from(point.p), fit.relative_work(point));
        table.right("model τ", all.iter().map(|p| seconds(tau(p))));
        table.right("off by", all.iter().map(|p| percent(tau(p) / p.tau_s - 1.0)));
    }
    let why = |p: u32| match fit.left_out.iter().find(|(other, _)| *other == p) {
        None => String::new(),
        Some((_, LeftOut::BelowP1)) => "not fitted: below p1".into(),
        Some((_, LeftOut::Efficiency(_))) => "not fitted: ε' out of range".into(),
        Some((_, LeftOut::NotChosen)) => "held back".into(),
    };
    if !fit.left_out.is_empty() {
        table.left("", all.iter().map(|point| why(point.p)));
    }
    table.lines()
}

fn coefficients(fit: &Fit, model: &Model) -> Vec<String> {
    let curve = &model.curve;
    let three = |value: f64| scientific(value);
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

fn isoefficiency(model: &Model) -> Vec<String> {
    let mut definitions = Vec::new();
    for iso in &model.isoefficiency {
        if !definitions.contains(&iso.definition) {
            definitions.push(iso.definition);
        }
    }
    let of =
        |definition| model.isoefficiency.iter().filter(move |iso| iso.definition == definition);
    let Some(first) = definitions.first() else { return Vec::new() };
    let mut table = Table::default();
    table.right("efficiency", of(*first).map(|iso| iso.eps.to_string()));
    for definition in &definitions {
        let p = |p: Option<f64>| p.map_or("never".into(), |p| significant(p, 3));
        table.right(&format!("p ({})", definition.name()), of(*definition).map(|iso| p(iso.p)));
    }
    let mut lines = table.lines();
    lines.push(String::new());
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
    let mut table = Table::default();
    table.right("p", all.iter().map(|prediction| prediction.p.to_string()));
    let time = |value: Option<f64>| value.map_or("-".into(), seconds);
    table.right("predicted τ", all.iter().map(|prediction| time(prediction.tau_s.ok())));
    if all.iter().any(|prediction| prediction.interval_s.is_some()) {
        let range = |prediction: &crate::models::scaling::Prediction| {
            let range = prediction.interval_s?;
            Some(format!("{} to {}", seconds(range.lo), seconds(range.hi)))
        };
        table.right(interval, all.iter().map(|p| range(p).unwrap_or_else(|| "-".into())));
    }
    if all.iter().any(|prediction| prediction.measured_s.is_some()) {
        let measured = |value: Option<f64>| value.map_or("-".into(), seconds);
        table.right("measured", all.iter().map(|prediction| measured(prediction.measured_s)));
        let error = |prediction: &crate::models::scaling::Prediction| {
            Some(percent(prediction.tau_s.ok()? / prediction.measured_s? - 1.0))
        };
        table.right("off by", all.iter().map(|p| error(p).unwrap_or_else(|| "-".into())));
    }
    lines.extend(table.lines().into_iter().map(indented));
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
    let steps = &comparison.steps;
    let mut table = Table::default();
    let exponent = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
    table.right(&comparison.param, steps.iter().map(|step| step.value.to_string()));
    table.right("a, times", steps.iter().map(|step| significant(step.a_ratio, 3)));
    for (index, term) in ["a", "χ'0", "χ'1"].into_iter().enumerate() {
        let title = format!("{term} grows as {}^", comparison.param);
        table.right(&title, steps.iter().map(|step| exponent(step.exponents[index])));
    }
    let mut lines = table.lines();
    for step in steps {
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

/// Three significant digits, with a power of ten if the number is small or large.
fn scientific(value: f64) -> String {
    match value.abs() {
        _ if value == 0.0 || !value.is_finite() => value.to_string(),
        size if (1e-3..1e4).contains(&size) => significant(value, 3),
        _ => format!("{value:.2e}"),
    }
}

/// The correlation, with as many digits as distinguish it from 1.
fn correlation(r: f64) -> String {
    if 1.0 - r < 5e-7 { "1".into() } else { format!("{r:.6}").trim_end_matches('0').to_owned() }
}

fn indented(line: String) -> String {
    if line.is_empty() { line } else { format!("  {line}") }
}
