//! Explains where the time of a recorded MPI program went.
//!
//! A run directory goes through stages. Each stage produces one plain data type, and none calls a
//! later one:
//!
//! | stage | input | output |
//! |---|---|---|
//! | [`trace`] | a run directory | [`trace::Run`]: rank files, opened and validated, and the problems found in them |
//! | [`timeline`] | a run | [`timeline::GlobalTimeline`]: every rank's counter on one clock, with an error bound |
//! | [`timeline::matching`] | a run, its timeline, its communicators | messages and collective instances, one by one |
//! | [`analysis`] | a run, its timeline | every call, message and collective operation, passed once to every observer |
//! | [`metrics`] | a run, its timeline, a selection | [`metrics::Metrics`]: computing (γ), lost (χ), efficiency, calls, messages |
//! | [`live`] | the windows of a run that is going on | what its ranks do now, and did in the last seconds |
//! | [`causes`] | what `analysis` reads | [`causes::Causes`]: who waited for whom, what made them late |
//! | [`replay`] | what `analysis` reads | the elapsed time of the run on another machine |
//! | [`calibration`] | stamps of a clock calibration run | [`calibration::Calibration`]: offsets, errors, drift |
//! | [`ledger`] | predictions, and later runs | predicted times compared with measured ones |
//! | [`models`] | tables of runs | models of their times, and predictions |
//! | [`diagnosis`] | metrics, causes, the replay's time | [`diagnosis::Diagnosis`]: what the figures mean, what they invalidate, what to do next |
//! | [`comparison`] | runs, reduced to small documents with their diagnoses | what differs between two sets of them, and why |
//! | [`tables`] | metrics, causes, the diagnosis, models, predictions | [`tables::Table`]: what a table shows, as data |
//! | [`present`] | all of these | the screen for the terminal, the JSON document, the lines of a dump |
//! | [`export`] | a run, its timeline, its communicators | what all writers of other formats share |
//! | [`import`] | calls recorded by another tool | rank files of a run |
//! | [`simulated_run`] | a run, its replay with a change | a run directory with the replay's times |
//! | [`formats`] | the data that `export` and `import` share | files of other tools, written and read |
//! | [`cli`] | a command line | the stages, called in order |
//!
//! Words and symbols: elapsed time (τ), computing (γ), lost (χ),
//! parallel efficiency (ε_p) = Σγ/(p·τ).
//!
//! Comparisons of times across ranks are only as good as the clock bound that every report states.
//! Of a damaged trace, the valid part is reported: look at the diagnoses before trusting a figure.

// A library for ourselves: what a name says is not said again.
#![allow(missing_docs)]
// All output goes through `cli::error`, which keeps control characters from terminals.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod analysis;
pub mod calibration;
pub mod causes;
pub mod cli;
pub mod comparison;
pub mod diagnosis;
mod did_you_mean;
pub mod export;
pub mod formats;
pub mod import;
pub mod ledger;
pub mod live;
pub mod metrics;
pub mod models;
pub mod plain_text;
pub mod present;
pub mod processes;
pub mod replay;
pub mod shell_word;
pub mod simulated_run;
pub mod spill;
pub mod statistics;
mod string_table;
pub mod tables;
pub mod timeline;
pub mod trace;
pub mod whole_file;

#[cfg(test)]
mod stages;
#[cfg(test)]
mod synthetic_code;
#[cfg(test)]
mod synthetic_losses;
#[cfg(test)]
mod synthetic_messages;
#[cfg(test)]
mod synthetic_trace;
#[cfg(test)]
mod synthetic_windows;
#[cfg(test)]
mod test_cases;
