//! Lists the runs of a baseline, as a table and as a JSON document.

use std::path::Path;

use serde::Serialize;

use crate::comparison::RunRecord;
use crate::comparison::baseline::Entry;
use crate::comparison::record::Iterations;
use crate::present::context::plural;
use crate::present::document::{Head, text};
use crate::present::quantity::seconds;
use crate::present::table::Table;
use crate::trace::run_json::Instant;

use super::words;

/// The time at which a run began, to the minute.
pub(super) fn begun(record: &RunRecord) -> String {
    let utc = record.begun_ns.map(|ns| Instant::from_unix_ns(ns).utc);
    utc.map_or("-".to_owned(), |utc| utc.chars().take(16).collect::<String>().replace('T', " "))
}

/// Labels of a run: `commit=1f3c`.
pub(super) fn labels(record: &RunRecord) -> String {
    let labels = record.labels().map(|(name, value)| match name.as_str() {
        "commit" => value.clone(),
        _ => format!("{name}={value}"),
    });
    labels.collect::<Vec<_>>().join(" ")
}

/// Median time of an iteration, nanoseconds.
pub(super) fn iteration_ns(record: &RunRecord) -> Option<f64> {
    record.iterations.as_ref().map(Iterations::median_ns)
}

/// The table, in the given order.
pub fn baseline_screen(all: &[Entry], folder: &Path) -> String {
    let records: Vec<&RunRecord> = all.iter().map(|kept| &kept.record).collect();
    let s = |ns: f64| seconds(ns * 1e-9);
    let mut table = Table::with_rows(&records);
    table.left("started (UTC)", |record| begun(record));
    table.left("program", |record| words::program(record));
    table.right("ranks", |record| record.ranks.to_string());
    table.right("elapsed", |record| s(record.elapsed_ns as f64));
    let iteration = |record: &&RunRecord| iteration_ns(record).map_or("-".to_owned(), s);
    table.right("per iteration", iteration);
    let efficiency = |record: &&RunRecord| match &record.tree {
        Some(tree) => format!("{:.2}", tree.parallel),
        None => "-".to_owned(),
    };
    table.right("efficiency", efficiency);
    table.left("version", |record| labels(record));
    table.left("machine", |record| words::machine(record));
    let mut text = format!("{} | {}\n\n", folder.display(), plural(all.len(), "run"));
    for line in table.lines() {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The runs of a baseline.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    head: Head,
    /// The runs of the baseline.
    runs: Vec<Row<'a>>,
}

/// A run of a baseline.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Row<'a> {
    file: String,
    #[serde(flatten)]
    record: &'a RunRecord,
}

/// The document: each run's record with its file.
pub fn baseline_json(all: &[Entry]) -> Result<String, serde_json::Error> {
    let runs =
        all.iter().map(|kept| Row { file: kept.path.display().to_string(), record: &kept.record });
    let document = Document { head: Head::default(), runs: runs.collect() };
    text(&document)
}
