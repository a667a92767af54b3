//! The JSON document of `gammachi whatif --ledger`; `docs/reference/predictions-json.md` explains its keys.

use serde::Serialize;

use crate::ledger::{Standing, Summary};

use super::contents::LedgerContents;

/// Version of the document's keys: a key never changes its meaning within one version.
const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
struct Document<'a> {
    version: u32,
    gammachi: &'static str,
    ledger: String,
    predictions: &'a [Standing<'a>],
    summary: Summary,
    notes: &'a [String],
}

/// The document.
///
/// # Errors
/// When a value cannot be written.
pub fn json(contents: &LedgerContents) -> serde_json::Result<String> {
    let document = Document {
        version: VERSION,
        gammachi: env!("CARGO_PKG_VERSION"),
        ledger: contents.path.display().to_string(),
        predictions: &contents.score.standings,
        summary: contents.score.summary(),
        notes: contents.notes,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}
