//! Explains where the time of a recorded MPI program went.
//!
//! A run directory goes through stages. Each stage hands on one plain data type, and none calls a
//! later one:
//!
//! | stage | in | out |
//! |---|---|---|
//! | [`trace`] | a run directory | [`trace::Run`]: rank files, opened and validated, and what is wrong with them |
//! | [`timeline`] | a run | [`timeline::GlobalTimeline`]: every rank's counter on one clock, with an error bound |
//! | [`timeline::matching`] | a run, its timeline, its communicators | messages and collective instances, one by one |
//! | [`analysis`] | a run, its timeline | every call, message and collective operation, once, to all observers |
//! | [`metrics`] | a run, its timeline, a selection | [`metrics::Metrics`]: γ, χ, efficiency, calls, messages |
//! | [`causes`] | what `analysis` reads | [`causes::Causes`]: who waited for whom, what made them late |
//! | [`replay`] | what `analysis` reads | the run's time on another machine |
//! | [`imagined`] | a run, its replay with a change | a run directory with the replay's times |
//! | [`calibration`] | stamps of a clock calibration run | [`calibration::Calibration`]: offsets, errors, drift |
//! | [`ledger`] | predictions, and runs made since | what was promised beside what was measured |
//! | [`comparison`] | runs, reduced to small documents | what differs between two sets of them, and why |
//! | [`models`] | tables of runs | models of their times, and what they predict |
//! | [`present`] | all of these | the terminal's screen, the JSON document, the dump's lines |
//! | [`export`] | a run, its timeline, its communicators | what all writers of other tools' formats share |
//! | [`import`] | calls as another tool tells them | rank files of a run |
//! | [`formats`] | what those two share | files of other tools, written and read |
//!
//! [`cli`] calls them in that order. Words and symbols: τ elapsed time, γ computation time, χ
//! overhead time, ε_p parallel efficiency Σγ/(p·τ).
//!
//! Times across ranks are only as good as the clock bound that every report states, and a trace
//! that was damaged is reported as far as it is valid: look at the diagnoses before trusting a
//! figure.

// All output goes through `cli::error`, which keeps control characters from terminals.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod analysis;
pub mod calibration;
pub mod causes;
pub mod cli;
pub mod comparison;
mod did_you_mean;
pub mod export;
pub mod formats;
pub mod imagined;
pub mod import;
pub mod ledger;
pub mod metrics;
pub mod models;
pub mod plain_text;
pub mod present;
pub mod replay;
pub mod shell_word;
pub mod spill;
pub mod timeline;
pub mod trace;

#[cfg(test)]
mod synthetic_messages;
#[cfg(test)]
mod synthetic_trace;
