//! Settings of a recording: the contract between command and recorder.
//!
//! The command sets environment variables, the recorder reads them in every rank. [`VARIABLES`] lists
//! them all, each with its values, default and meaning; the help of the command's options, the table in
//! `docs/reference/settings.md` and what launchers forward come from that list. [`RecordingOptions::from_env`]
//! reads the variables on either side. What it cannot use it returns as [`SettingError`]s: the command
//! refuses to start, the recorder says the same sentence and goes on with the default.
//!
//! A new setting is a row in `variables.rs`, a parser in [`values`], a field of [`RecordingOptions`] and, if
//! `gammachi run` has an option for it, an argument in `analyzer/src/cli/recording_options.rs`.

mod errors;
mod options;
pub mod values;
mod variables;

pub use errors::{ParameterError, SettingError, ValueError};
pub use options::{ClockOptions, FromEnv, RecordingOptions};
pub use values::{Computation, TestClock};
pub use variables::*;
