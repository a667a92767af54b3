//! Extra-P's text and JSON lines: tables of experiments.
//!
//! The formats are those of Extra-P 4 (docs/file-formats.md in its repository). Each parameter and
//! each metric becomes a column; with several regions or call paths, each has its own columns,
//! `region/metric`. Repetitions become rows with a `rep`.

pub mod names;
pub mod read;
pub mod write;
