//! Renders the ledger of predictions for the terminal.

use crate::ledger::{Predictor, Standing, Summary};
use crate::present::blocks::Blocks;
use crate::present::context::plural;
use crate::present::paragraph::wrapped;
use crate::present::quantity::percent;
use crate::present::table;
use crate::tables;

use super::contents::LedgerContents;

/// Smallest number of intervals for which a percentage means anything.
const MIN_FOR_PERCENTAGE: usize = 10;

/// The screen. With `colour`, labels are emphasised; colour alone never carries information.
pub fn screen(contents: &LedgerContents, colour: bool) -> String {
    let path = contents.path.display().to_string();
    let mut blocks = Blocks::headed(&path, &verdict(&contents.score.summary()), colour);
    blocks.block("PREDICTIONS", predictions(&contents.score.standings));
    let open = |standing: &&Standing| standing.measured_s.is_none();
    let mut waiting = contents.score.standings.iter().filter(open);
    if let Some(prediction) = waiting.find(|standing| !standing.recognised) {
        blocks.note(&format!(
            "Name the run that tests {}: gammachi whatif --answer {} RUN",
            prediction.prediction.id, prediction.prediction.id
        ));
    }
    for note in contents.notes {
        blocks.note(note);
    }
    blocks.finish()
}

fn verdict(summary: &Summary) -> String {
    let predictions = plural(summary.predictions, "prediction");
    let Some(error) = summary.median_error else {
        return format!("{predictions}, none tested yet.");
    };
    let intervals = match (summary.within_interval, summary.intervals) {
        (_, 0) => "none of them had an interval".to_owned(),
        (within_interval, all) if all < MIN_FOR_PERCENTAGE => {
            format!("{within_interval} of {all} intervals contain the measured time")
        }
        (within_interval, all) => format!(
            "{within_interval} of {all} intervals contain the measured time, {}",
            percent(within_interval as f64 / all as f64)
        ),
    };
    let answered = summary.answered;
    let error = match answered {
        1 => format!("error {}", percent(error)),
        _ => format!("median error {}", percent(error)),
    };
    format!("{predictions}, {answered} tested: {error}; {intervals}.")
}

/// Two lines for each prediction: its figures, and the question.
fn predictions(standings: &[Standing]) -> Vec<String> {
    if standings.is_empty() {
        return vec!["none".to_owned()];
    }
    let mut rows = table::lines(&tables::ledger::predictions(standings)).into_iter();
    let mut lines: Vec<String> = rows.next().into_iter().collect();
    for (row, standing) in rows.zip(standings) {
        lines.push(row);
        lines.extend(wrapped("  ", &question(standing)));
    }
    lines
}

/// The question, the runs that it is about, and the runs that answer it.
fn question(standing: &Standing) -> String {
    let prediction = standing.prediction;
    let of = match prediction.subject.region.as_deref() {
        Some(region) => format!("{} in region {region}", prediction.source),
        None => prediction.source.clone(),
    };
    let asked = match prediction.by {
        Predictor::WhatIf => format!("{of}, if {}", prediction.question),
        Predictor::Scaling | Predictor::Model => {
            format!("{of} at {} ({})", prediction.question, prediction.by.name())
        }
    };
    match standing.runs[..] {
        [] => asked,
        [run] => format!("{asked}: {run}"),
        [run, ..] => format!("{asked}: {run} and {} more", standing.runs.len() - 1),
    }
}
