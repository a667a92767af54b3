//! Extra-P's text and JSON lines: tables of experiments.
//!
//! (Extra-P 4: docs/file-formats.md of its repository.) A parameter becomes a column, and so does
//! every metric; of several regions or call paths each has columns of its own, `region/metric`.
//! Repetitions become rows with a `rep`.

pub mod names;
pub mod read;
pub mod write;
