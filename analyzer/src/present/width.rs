//! How wide the terminal is that screens are made for.
//!
//! The command says so once, at its begin. Where it does not (output into a file or a pipe), sentences are broken at
//! a width that is good to read, and tables are as wide as they need.

use std::sync::OnceLock;

/// Narrower terminals get screens of this width.
const LEAST: usize = 60;
/// Sentences are not wider, on any terminal.
const WIDEST_SENTENCE: usize = 96;

static COLUMNS: OnceLock<usize> = OnceLock::new();

/// Notes the columns of the terminal, for all screens of the process.
pub fn set_columns(columns: usize) {
    let _ = COLUMNS.set(columns.max(LEAST));
}

/// Columns that sentences are broken at.
pub(super) fn of_sentences() -> usize {
    COLUMNS.get().map_or(WIDEST_SENTENCE, |columns| (*columns).min(WIDEST_SENTENCE))
}

/// Whether a line of so many columns is not wider than the terminal.
pub(super) fn fits(columns: usize) -> bool {
    COLUMNS.get().is_none_or(|width| columns <= *width)
}

/// Columns that a table behind an indentation may have; `None`: as many as it needs.
pub(super) fn of_tables(indent: usize) -> Option<usize> {
    COLUMNS.get().map(|columns| columns - indent)
}
