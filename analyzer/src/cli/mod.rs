//! The command line: parses the arguments, calls the stages in order and returns an exit code.
//!
//! Each subcommand has a file of its own. Exit codes: 0 success; 1 the program or the data failed;
//! 2 wrong usage; of `check`, 3 slower and 4 undecided. `run` and `exec` return the exit code of
//! the program that they start.

use std::env;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub mod error;
pub mod export;
pub mod report;
pub mod view;
pub mod why;

mod batch_limit;
mod calibrate;
mod check;
mod child_signals;
mod collect;
mod command_groups;
mod compare;
mod doctor;
#[cfg(test)]
mod documented;
mod dump;
mod ending_signals;
mod exec;
mod figure_files;
mod flight;
mod import;
mod labelled_run;
mod library_path;
mod model;
mod newest_run;
mod observed;
mod open_mpi_forwarding;
mod output_file;
mod output_rights;
mod program_search;
mod rank_processes;
mod recordability;
mod recorder_environment;
mod recording_options;
mod records;
mod remember;
mod renamed;
mod roofline;
mod run;
mod run_directory;
mod scaling;
#[cfg(test)]
mod schema;
mod selection_arguments;
mod several_processes;
mod shell_files;
mod structural_runs;
mod sweep;
mod terminal;
mod top;
mod unfinished_output;
mod watch;
mod watch_metrics;
mod watch_signals;
mod watch_triggers;
mod whatif;

pub use error::CommandError;

use crate::present::width;

/// Measures MPI programs without recompiling them and explains their parallel performance.
#[derive(Debug, Parser)]
#[command(
    name = "gammachi",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Example:\n  gammachi run -- mpirun -n 4 ./app input.dat\n  \
                  gammachi report app-20260131-120000.gammachi"
)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArguments),
    Exec(exec::ExecArguments),
    Report(report::ReportArguments),
    Why(why::WhyArguments),
    #[command(name = "whatif")]
    WhatIf(whatif::WhatIfArguments),
    Compare(compare::CompareArguments),
    Check(check::CheckArguments),
    View(view::ViewArguments),
    Dump(dump::DumpArguments),
    Top(top::TopArguments),
    Watch(watch::WatchArguments),
    Export(export::ExportArguments),
    Import(import::ImportArguments),
    Model(model::ModelArguments),
    Collect(collect::CollectArguments),
    Sweep(sweep::SweepArguments),
    Scaling(scaling::ScalingArguments),
    Roofline(roofline::RooflineArguments),
    Doctor(doctor::DoctorArguments),
    Calibrate(calibrate::CalibrateArguments),
    Completions(shell_files::CompletionsArguments),
    ManPages(shell_files::ManPagesArguments),
}

/// Parses the command line, runs the subcommand and returns the exit code.
pub fn run_command() -> ExitCode {
    if let Some(columns) = terminal::columns() {
        width::set_columns(columns.into());
    }
    let parsed = command_groups::command(CommandLine::command()).try_get_matches();
    let result = match parsed.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => match &line.command {
            Command::Run(arguments) => run::run(arguments),
            Command::Exec(arguments) => exec::exec(arguments),
            Command::Report(arguments) => report::report(arguments),
            Command::Why(arguments) => why::why(arguments),
            Command::WhatIf(arguments) => whatif::what_if(arguments),
            Command::Compare(arguments) => compare::compare(arguments),
            Command::Check(arguments) => check::check(arguments),
            Command::View(arguments) => view::view(arguments),
            Command::Dump(arguments) => dump::dump(arguments),
            Command::Top(arguments) => top::top(arguments),
            Command::Watch(arguments) => watch::watch(arguments),
            Command::Export(arguments) => export::export(arguments),
            Command::Import(arguments) => import::import(arguments),
            Command::Model(arguments) => model::model(arguments),
            Command::Collect(arguments) => collect::collect(arguments),
            Command::Sweep(arguments) => sweep::sweep(arguments),
            Command::Scaling(arguments) => scaling::scaling(arguments),
            Command::Roofline(arguments) => roofline::roofline(arguments),
            Command::Doctor(arguments) => doctor::doctor(arguments),
            Command::Calibrate(arguments) => calibrate::calibrate(arguments),
            Command::Completions(arguments) => {
                shell_files::completions(arguments, CommandLine::command())
            }
            Command::ManPages(arguments) => {
                shell_files::man_pages(arguments, CommandLine::command())
            }
        },
        Err(error) => explain_usage(&error),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error::report_error(&error),
    }
}

/// Help and version go to standard output; every other parse failure is wrong usage.
fn explain_usage(error: &clap::Error) -> Result<(), CommandError> {
    if let Some(sentence) = renamed::answer(error, env::args_os()) {
        return Err(CommandError::usage(sentence));
    }
    let text = error.render().to_string();
    if !error.use_stderr() {
        return error::print(&text);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Err(CommandError::usage(format!("no command was given\n\n{}", text.trim_end())));
    }
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    Err(CommandError::usage(text.trim_end()))
}
