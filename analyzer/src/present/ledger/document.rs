//! The JSON document of `gammachi whatif --ledger`; `docs/reference/predictions-json.md` explains its keys.

use serde::Serialize;

use crate::ledger::{Standing, Summary};
use crate::present::document::{Head, text};

use super::contents::LedgerContents;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    head: Head,
    ledger: String,
    /// The oldest first.
    predictions: &'a [Standing<'a>],
    /// All of them together.
    summary: Summary,
    /// Other sentences, such as on lines that cannot be read.
    notes: &'a [String],
}

/// The document.
pub fn json(contents: &LedgerContents) -> serde_json::Result<String> {
    let document = Document {
        head: Head::default(),
        ledger: contents.path.display().to_string(),
        predictions: &contents.score.standings,
        summary: contents.score.summary(),
        notes: contents.notes,
    };
    text(&document)
}
