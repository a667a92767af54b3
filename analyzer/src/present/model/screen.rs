//! Renders a model for the terminal.

use std::fmt::Write as _;

use crate::models::regression::{Comparison, Findings, Residual, Score, Term};
use crate::models::scaling::AtProblemSize;
use crate::present::context::plural;
use crate::present::paragraph::wrapped;
use crate::present::quantity::{percent, significant};
use crate::present::scaling::structure;
use crate::present::table;
use crate::tables::{Table, model as tables};

use super::words::{contradictions, error_sentence, held_back, warnings};

/// Smallest share of the time for which a column that most candidates lack gets a line of its own.
const MIN_LINE_SHARE: f64 = 0.005;
/// Maximum number of columns listed in a group of indistinguishable ones.
const MAX_LISTED: usize = 12;

/// The screen; with what the structure of the runs predicts, where that was asked.
pub fn screen(findings: &Findings, structure: &[AtProblemSize]) -> String {
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
        let table = tables::predictions(&held.points, &held.predictions, measured, warnings);
        add_table(&mut text, &table);
    }
    if !findings.predictions.is_empty() {
        text.push_str(
            "\nPREDICTED  (90 % interval of the model's time; a single run's noise comes on top)\n",
        );
        let points = &findings.model.parts[0].points;
        let table = tables::predictions(points, &findings.predictions, None, warnings);
        add_table(&mut text, &table);
    }
    for of in structure {
        text.push('\n');
        for line in structure::lines(&of.structure, of.size.as_ref(), &str::to_owned) {
            let _ = writeln!(text, "{line}");
        }
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
    add_table(text, &tables::columns(&findings.model, &selected, total));
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
    let failure = |score: &Score| score.failure.as_deref().map_or(String::new(), error_sentence);
    add_table(text, &tables::scores(comparison, chosen, failure));
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
