//! The width of the terminal.
//!
//! The command sets it once, at its start. Without it (output to a file or a pipe), sentences are broken at a
//! width that is easy to read, and tables are as wide as they need to be.

use std::sync::OnceLock;

/// Smallest width; narrower terminals get screens of this width.
const MIN_COLUMNS: usize = 60;
/// Largest width of sentences on any terminal.
const MAX_SENTENCE_COLUMNS: usize = 96;

static COLUMNS: OnceLock<usize> = OnceLock::new();

/// Sets the terminal's columns for all screens of the process; later calls have no effect.
pub fn set_columns(columns: usize) {
    let _ = COLUMNS.set(columns.max(MIN_COLUMNS));
}

/// Columns at which sentences are broken.
pub(super) fn for_sentences() -> usize {
    COLUMNS.get().map_or(MAX_SENTENCE_COLUMNS, |columns| (*columns).min(MAX_SENTENCE_COLUMNS))
}

/// Whether a line of `columns` columns fits the terminal.
pub(super) fn fits(columns: usize) -> bool {
    COLUMNS.get().is_none_or(|width| columns <= *width)
}

/// Columns available to a table that is indented by `indent`; `None`: no limit.
pub(super) fn for_tables(indent: usize) -> Option<usize> {
    COLUMNS.get().map(|columns| columns - indent)
}
