//! Renders the ledger of predictions for the terminal.

use crate::ledger::{Predictor, Standing, Summary};
use crate::present::blocks::Blocks;
use crate::present::context::plural;
use crate::present::paragraph::wrapped;
use crate::present::quantity::{percent, seconds};
use crate::present::table::Table;

use super::LedgerContents;

/// Smallest number of intervals for which a percentage means anything.
const MIN_FOR_PERCENTAGE: usize = 10;

/// The screen. With `colour`, labels are emphasised; colour alone never carries information.
pub fn screen(contents: &LedgerContents, colour: bool) -> String {
    let path = contents.path.display().to_string();
    let mut blocks = Blocks::headed(&path, &verdict(&contents.score.summary()), colour);
    blocks.block("PROMISES", promises(&contents.score.standings));
    let open = |standing: &&Standing| standing.measured_s.is_none();
    let mut waiting = contents.score.standings.iter().filter(open);
    if let Some(promise) = waiting.find(|standing| !standing.promise.is_recognised()) {
        blocks.note(&format!(
            "Only you can say which run answers {}: gammachi whatif --answer {} RUN",
            promise.promise.id, promise.promise.id
        ));
    }
    for note in contents.notes {
        blocks.note(note);
    }
    blocks.finish()
}

fn verdict(summary: &Summary) -> String {
    let promises = plural(summary.promises, "promise");
    let Some(error) = summary.median_error else {
        return format!("{promises}, none answered yet.");
    };
    let intervals = match (summary.held, summary.intervals) {
        (_, 0) => "none of them had an interval".to_owned(),
        (held, all) if all < MIN_FOR_PERCENTAGE => {
            format!("{held} of {all} intervals held the measured time")
        }
        (held, all) => format!(
            "{held} of {all} intervals held the measured time, {}",
            percent(held as f64 / all as f64)
        ),
    };
    let answered = summary.answered;
    let error = match answered {
        1 => format!("error {}", percent(error)),
        _ => format!("error {} in the median", percent(error)),
    };
    format!("{promises}, {answered} answered: {error}; {intervals}.")
}

/// Two lines for each promise: its figures, and the question.
fn promises(standings: &[Standing]) -> Vec<String> {
    if standings.is_empty() {
        return vec!["none".to_owned()];
    }
    let mut table = Table::default();
    let date = |standing: &Standing| standing.promise.at.utc.chars().take(10).collect();
    let interval = |standing: &Standing| match (standing.promise.lo_s, standing.promise.hi_s) {
        (Some(lo), Some(hi)) => format!("{} to {}", seconds(lo), seconds(hi)),
        _ => "-".to_owned(),
    };
    let measured = |standing: &Standing| match standing.measured_s {
        Some(measured) => seconds(measured),
        None => "not answered yet".to_owned(),
    };
    let error = |standing: &Standing| match standing.error() {
        Some(error) if error < 0.0 => format!("-{}", percent(-error)),
        Some(error) => format!("+{}", percent(error)),
        None => String::new(),
    };
    let held = |standing: &Standing| match standing.held() {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => String::new(),
    };
    table.left("id", standings.iter().map(|standing| standing.promise.id.clone()));
    table.left("when", standings.iter().map(date));
    table.right("promised", standings.iter().map(|standing| seconds(standing.promise.seconds)));
    table.left("90 %", standings.iter().map(interval));
    table.left("measured", standings.iter().map(measured));
    table.right("error", standings.iter().map(error));
    table.left("held", standings.iter().map(held));
    let mut rows = table.lines().into_iter();
    let mut lines: Vec<String> = rows.next().into_iter().collect();
    for (row, standing) in rows.zip(standings) {
        lines.push(row);
        lines.extend(wrapped("  ", &question(standing)));
    }
    lines
}

/// The question, the runs that it is about, and the runs that answer it.
fn question(standing: &Standing) -> String {
    let promise = standing.promise;
    let of = match promise.subject.region.as_deref() {
        Some(region) => format!("{} in region {region}", promise.source),
        None => promise.source.clone(),
    };
    let asked = match promise.by {
        Predictor::WhatIf => format!("{of}, if {}", promise.question),
        Predictor::Scaling | Predictor::Model => {
            format!("{of} at {} ({})", promise.question, promise.by.name())
        }
    };
    match standing.runs[..] {
        [] => asked,
        [run] => format!("{asked}: {run}"),
        [run, ..] => format!("{asked}: {run} and {} more", standing.runs.len() - 1),
    }
}
