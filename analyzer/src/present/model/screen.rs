//! Renders a model for the terminal.

use std::fmt::Write as _;

use crate::models::regression::{Comparison, Findings, Method, Points, Prediction, Residual, Term};
use crate::present::context::plural;
use crate::present::paragraph::wrapped;
use crate::present::quantity::{percent, significant};
use crate::present::table;
use crate::tables::{Cell, Table};

use super::words::{contradictions, error_sentence, held_back, warnings};

/// Smallest share of the time for which a column that most candidates lack gets a line of its own.
const MIN_LINE_SHARE: f64 = 0.005;
/// Maximum number of columns listed in a group of indistinguishable ones.
const MAX_LISTED: usize = 12;

/// The screen.
pub fn screen(findings: &Findings) -> String {
    let mut text = String::new();
    for sentence in contradictions(findings) {
        wrapped("", &sentence).iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    head(&mut text, findings);
    columns(&mut text, findings);
    indistinguishable(&mut text, findings);
    if let Some((chosen, scores)) = &findings.choice {
        choice(&mut text, *chosen, scores);
    }
    if let Some(held) = &findings.held {
        text.push_str("\nHELD BACK\n");
        let measured = Some(held.points.times.as_slice());
        predictions(&mut text, &held.points, &held.predictions, measured);
    }
    if !findings.predictions.is_empty() {
        text.push_str(
            "\nPREDICTED  (90 % interval of the model's time; a single run's noise comes on top)\n",
        );
        let points = &findings.model.parts[0].points;
        predictions(&mut text, points, &findings.predictions, None);
    }
    if let Some(comparison) = &findings.comparison {
        let _ = writeln!(
            text,
            "\nMETHODS  relative error at {}: {}",
            plural(comparison.held, "held-back point"),
            held_back(comparison.what)
        );
        scores(&mut text, comparison, None);
    }
    text
}

fn head(text: &mut String, findings: &Findings) {
    let model = &findings.model;
    let first = &model.parts[0];
    let is_exact = first.evidence.as_ref().is_some_and(|evidence| evidence.exact().is_some());
    let method = match (model.method_name(), first.residual) {
        ("evidence", _) if is_exact => {
            "evidence (a form that reproduces every point to its digits)".into()
        }
        ("evidence", _) => {
            "evidence (many sums of terms, weighted; the typical one is shown)".into()
        }
        (name, Residual::Relative) => format!("{name} (relative residuals)"),
        (name, Residual::Absolute) => format!("{name} (residuals in seconds)"),
    };
    let minima = match findings.rows > first.points.len() {
        true => {
            let over = match findings.minimum_over.as_slice() {
                [] => String::new(),
                names => format!(" over {}", names.join(" and ")),
            };
            format!(", minima of {}{over}", plural(findings.rows, "row"))
        }
        false => String::new(),
    };
    let _ = writeln!(
        text,
        "MODEL  {} in {} | {} | {} of {}{minima}",
        findings.response,
        first.points.variables.join(", "),
        method,
        plural(first.points.len(), "point"),
        findings.source
    );
    for part in &model.parts {
        let label = match part.label.as_str() {
            "" => String::new(),
            label => format!("{label}: "),
        };
        let _ = writeln!(
            text,
            "BASIS  {label}{}, {}; rank {} on {}, condition {}",
            part.basis.name,
            plural(part.basis.columns.len(), "column"),
            part.identifiability.rank,
            plural(part.points.len(), "point"),
            significant(part.identifiability.condition, 2)
        );
    }
    let quality = findings.quality();
    let _ = writeln!(
        text,
        "FIT    largest relative error {}, root mean square {}",
        percent(quality.max_relative),
        percent(quality.rms_relative)
    );
    if let Some(moved) = first.tie_moved.filter(|moved| *moved > 1e-6) {
        let _ = writeln!(
            text,
            "       the minimax optimum is not unique; least squares among the optima chose (scaled \
             coefficients moved by up to {})",
            significant(moved, 2)
        );
    }
    if let Some(steps) = &findings.two_step {
        for step in &steps.variables {
            let list: Vec<String> = step
                .survivors
                .iter()
                .map(|(column, slices, of)| format!("{column} ({slices} of {of} slices)"))
                .collect();
            let of_dictionary = if step.dictionary { ", of the dictionary" } else { "" };
            let _ =
                writeln!(text, "STEP 1 in {}{of_dictionary}: {}", step.variable, list.join(", "));
        }
    }
}

fn columns(text: &mut String, findings: &Findings) {
    let asked = findings.evaluation_point();
    let terms = findings.terms();
    let total: f64 = terms.iter().filter_map(|term| term.seconds).sum();
    let weight = |term: &Term| term.seconds.unwrap_or(0.0).abs();
    let (mut selected, small): (Vec<&Term>, Vec<&Term>) = terms
        .iter()
        .filter(|term| term.coefficient != 0.0)
        .partition(|term| term.selected || weight(term) >= MIN_LINE_SHARE * total.abs());
    selected.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let point: Vec<String> = asked
        .variables
        .iter()
        .zip(&asked.values[0])
        .map(|(name, value)| format!("{name} {}", number(*value)))
        .collect();
    let _ = writeln!(text, "\nCOLUMNS  shares of the time at {}", point.join(", "));
    let rows = || selected.iter();
    let mut table = Table::default();
    if findings.model.parts.len() > 1 {
        table.add(
            "part",
            "part",
            rows().map(|term| Cell::or_nothing(term.part.clone(), Cell::Text)),
        );
    }
    table.add("expr", "column", rows().map(|term| Cell::Text(term.text.clone())));
    table.add("coefficient", "coefficient", rows().map(|term| Cell::Ratio(term.coefficient)));
    let share = |seconds| Cell::Share(seconds / total);
    table.add("share", "share", rows().map(|term| Cell::or_nothing(term.seconds, share)));
    if findings.model.method == Method::Robust {
        table.add("support", "support", rows().map(|term| Cell::Factor(term.support)));
    }
    if terms.iter().any(|term| term.replica_share.is_some()) {
        let shares = rows().map(|term| Cell::or_nothing(term.replica_share, Cell::Factor));
        table.add("replica_share", "in replicas", shares);
    }
    add_table(text, &table);
    if !small.is_empty() {
        let share = small.iter().filter_map(|term| term.seconds).sum::<f64>() / total;
        let _ = writeln!(
            text,
            "  and {} found in few candidates, {} in total",
            plural(small.len(), "column"),
            percent(share)
        );
    }
    let left_out: Vec<&str> =
        terms.iter().filter(|t| t.coefficient == 0.0).map(|t| t.text.as_str()).collect();
    if !left_out.is_empty() {
        let _ = writeln!(text, "  not selected: {}", list(&left_out));
    }
}

fn indistinguishable(text: &mut String, findings: &Findings) {
    for group in findings.indistinguishable() {
        let texts: Vec<&str> = group.iter().map(String::as_str).collect();
        // A column that depends on no other one is 0 everywhere.
        if let [alone] = texts.as_slice() {
            let _ = writeln!(text, "CANNOT BE IDENTIFIED  {alone} is 0 at every fitted point");
            continue;
        }
        let _ = writeln!(
            text,
            "CANNOT BE IDENTIFIED  on these points, {} are linearly dependent: {}",
            plural(group.len(), "column"),
            list(&texts)
        );
    }
}

fn list(texts: &[&str]) -> String {
    match texts.len() {
        many if many > MAX_LISTED => {
            format!("{} and {} more", texts[..MAX_LISTED].join(", "), many - MAX_LISTED)
        }
        _ => texts.join(", "),
    }
}

fn choice(text: &mut String, chosen: usize, comparison: &Comparison) {
    let name = &comparison.scores[chosen].name;
    let why = match chosen {
        0 => "the first choice, and no alternative extrapolates better by a third",
        _ => "it extrapolates better than the first choice by more than a third",
    };
    let _ = writeln!(text, "\nCHOSEN  {name}: {why} ({})", held_back(comparison.what));
    scores(text, comparison, Some(chosen));
}

fn scores(text: &mut String, comparison: &Comparison, chosen: Option<usize>) {
    let all = &comparison.scores;
    let rows = || all.iter();
    let error = |value| Cell::or_nothing(value, Cell::Share);
    let mut table = Table::default();
    if let Some(chosen) = chosen {
        let mark = |i| Cell::Text(if i == chosen { "*" } else { "" }.to_owned());
        table.add("chosen", "", (0..all.len()).map(mark));
    }
    table.add("name", "", rows().map(|score| Cell::Text(score.name.clone())));
    table.add("median", "median", rows().map(|score| error(score.median)));
    table.add("p95", "95 %", rows().map(|score| error(score.p95)));
    table.add("max", "largest", rows().map(|score| error(score.largest)));
    let failures =
        rows().map(|score| score.failure.as_deref().map_or(String::new(), error_sentence));
    table.add("failure", "", failures.map(Cell::Text));
    add_table(text, &table);
}

fn predictions(
    text: &mut String,
    points: &Points,
    predictions: &[Prediction],
    measured: Option<&[f64]>,
) {
    let rows = || predictions.iter();
    let time = |value| Cell::or_nothing(value, Cell::Seconds);
    let mut table = Table::default();
    for (at, name) in points.variables.iter().enumerate() {
        table.add("variable", name, rows().map(|of| Cell::Given(of.values[at])));
    }
    if let Some(measured) = measured {
        table.add("measured", "measured", measured.iter().copied().map(Cell::Seconds));
    }
    table.add("value", "model", rows().map(|of| time(of.value)));
    if rows().any(|of| of.hi.is_some()) {
        table.add("lo", "from", rows().map(|of| time(of.lo)));
        table.add("hi", "to", rows().map(|of| time(of.hi)));
    }
    if let Some(measured) = measured {
        let error = |(of, time): (&Prediction, &f64)| of.value.map(|value| value / time - 1.0);
        let errors = rows().zip(measured).map(error);
        table.add("error", "error", errors.map(|error| Cell::or_nothing(error, Cell::Excess)));
    }
    table.add("warning", "", rows().map(|of| Cell::Text(warnings(of))));
    add_table(text, &table);
}

fn add_table(text: &mut String, table: &Table) {
    for line in table::lines(table) {
        let _ = writeln!(text, "  {line}");
    }
}

/// A variable's value in its shortest form.
fn number(value: f64) -> String {
    format!("{value}")
}
