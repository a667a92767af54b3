//! Predictions, and the times of later runs: a file with one JSON object per line, to which lines
//! are only ever appended.
//!
//! | file | task |
//! |---|---|
//! | `subject` | which runs a prediction is about, and whether another run is one of them |
//! | `file` | reads and appends lines |
//! | `score` | compares predictions with measurements |
//!
//! `docs/reference/predictions-json.md` describes the file for users; decision 88 gives the reasons
//! for its design.

mod file;
mod prediction;
mod score;
mod subject;

#[cfg(test)]
pub(crate) use file::Line;
pub use file::{LEDGER_FILE, Ledger, LineFault, append};
pub use prediction::{Answer, Prediction, Predictor};
pub use score::{Score, Standing, Summary};
pub use subject::{Difference, Subject, is_same_value};
