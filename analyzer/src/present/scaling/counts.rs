//! Calls of all ranks at other rank counts: on the screen, and in the JSON document.

use serde::Serialize;

use crate::models::scaling::Fit;
use crate::models::structure::{Counts, Place, Quantity};
use crate::tables::scaling as tables;

use super::super::paragraph::wrapped;
use super::super::table;

/// Places that are shown.
const MAX_PLACES: usize = 12;

/// Calls of all ranks, continued by laws of p ([how](../guide/predict.md#how-often-it-calls)).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CountsDocument {
    /// Rank counts of the runs, those for counts only included.
    rank_counts: Vec<u32>,
    checked: CheckedDocument,
    /// Those that the largest run has, most calls first.
    places: Vec<PlaceDocument>,
}

/// What the other runs say of the largest.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CheckedDocument {
    p: u32,
    /// Laws of calls and bytes that the others give.
    laws: usize,
    /// How many of them the largest run meets.
    met: usize,
}

/// A place in the program.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlaceDocument {
    /// As in `critical_path.labels` of `gammachi why --json`.
    context: String,
    /// As a formula of p that every run meets; null: there is none.
    calls_law: Option<String>,
    /// As `calls_law`; null as well where no bytes are named.
    bytes_law: Option<String>,
    /// At the rank counts of `predictions`.
    at: Vec<CountDocument>,
}

/// Calls of all ranks at a place.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CountDocument {
    p: u32,
    /// Null without a law, and where laws that are as simple disagree.
    calls: Option<f64>,
    /// Bytes that they name, completions none; null as `calls`, and where none are named.
    bytes: Option<f64>,
}

pub(super) fn document(fit: &Fit) -> Option<CountsDocument> {
    let Counts { rank_counts, checked, places } = fit.counts.as_ref()?;
    let place = |Place { name, calls, bytes }: &Place| PlaceDocument {
        context: name.clone(),
        calls_law: calls.law.clone(),
        bytes_law: bytes.as_ref().and_then(|bytes| bytes.law.clone()),
        at: fit
            .predictions
            .iter()
            .enumerate()
            .map(|(at, of)| CountDocument {
                p: of.p,
                calls: calls.at[at].map(f64::round),
                bytes: bytes.as_ref().and_then(|bytes| bytes.at[at]).map(f64::round),
            })
            .collect(),
    };
    Some(CountsDocument {
        rank_counts: rank_counts.clone(),
        checked: CheckedDocument { p: checked.p, laws: checked.laws, met: checked.met },
        places: places.iter().map(place).collect(),
    })
}

/// The lines of a screen, for the largest rank count that was asked for; none where nothing was asked.
pub(super) fn lines(fit: &Fit, bold: &dyn Fn(&str) -> String) -> Vec<String> {
    let largest = fit.predictions.iter().enumerate().max_by_key(|(_, of)| of.p);
    let (Some(Counts { rank_counts, checked, places }), Some((at, asked))) = (&fit.counts, largest)
    else {
        return Vec::new();
    };
    let mut lines = vec![bold("HOW OFTEN IT CALLS  all ranks, continued by laws of p")];
    let ends = (rank_counts.first().unwrap_or(&1), rank_counts.last().unwrap_or(&1));
    let of_runs = format!("{} rank counts, {} to {}.", rank_counts.len(), ends.0, ends.1);
    let held = match checked.laws {
        0 => "Without the largest, the runs give no law.".to_owned(),
        laws => format!(
            "Without the largest, the runs give {laws} {}; at p = {} {} met.",
            if laws == 1 { "law" } else { "laws" },
            checked.p,
            match laws - checked.met {
                0 => "all are".to_owned(),
                _ => format!("{} of them are", checked.met),
            }
        ),
    };
    lines.extend(wrapped("  ", &format!("{of_runs} {held}")));
    lines.push(String::new());
    lines.push(format!("  At p = {}:", asked.p));
    let shown = &places[..places.len().min(MAX_PLACES)];
    let rows = table::lines(&tables::counts(shown, at));
    lines.extend(rows.into_iter().map(|line| format!("    {line}")));
    let lawless = |of: &Quantity| of.law.is_none();
    let (more, without) =
        (places.len() - shown.len(), places.iter().filter(|place| lawless(&place.calls)).count());
    let more = (more > 0).then(|| format!("{more} more places: --json."));
    let without = (without > 0).then(|| {
        format!("Calls of {without} places meet no law, such as those that are repeated until something has come.")
    });
    let notes: Vec<String> = more.into_iter().chain(without).collect();
    if !notes.is_empty() {
        lines.extend(wrapped("  ", &notes.join(" ")));
    }
    lines.push(String::new());
    lines
}
