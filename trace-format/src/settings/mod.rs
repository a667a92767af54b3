//! Settings of a recording: the contract between command and recorder.
//!
//! The command sets environment variables, which the recorder reads in every rank. [`VARIABLES`]
//! lists them all with values, default and meaning. The help of the command's options, the table in
//! `docs/reference/settings.md` and the variables forwarded by launchers come from this list.
//! [`RecordingOptions::from_env`] reads the variables on either side and returns unusable values as
//! [`SettingError`]s: the command then refuses to start, while the recorder prints the same
//! sentence and continues with the default.
//!
//! A new setting needs a row in `variables.rs`, a parser in [`values`], a field of
//! [`RecordingOptions`] and, if `gammachi run` has an option for it, an argument in
//! `analyzer/src/cli/recording_options.rs`.

pub mod byte_size;
pub mod environment;
mod errors;
mod options;
pub mod run_id;
pub mod values;
mod variables;

pub use errors::{ParameterError, SettingError, ValueError};
pub use options::{ClockOptions, FromEnv, RecordingOptions};
pub use values::{Computation, TestClock};
pub use variables::*;
