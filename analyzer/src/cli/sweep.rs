//! `gammachi sweep`: runs a command with placeholders under the recorder, once for every
//! combination of values, and writes a study directory.

mod lock;
mod plan;
mod progress;
mod runner;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use trace_format::private_directory;
use trace_format::settings::{Computation, LEVEL, RecordingOptions, values};

use super::child_signals::SignalGuard;
use super::error::{CommandError, eprint_message, print};
use super::observed::{Observed, observe};
use crate::present::lines;
use crate::shell_word::shell_word;
use crate::tables::study;
use crate::trace::study_json::{StudyJson, StudyRun, StudyRunState};
use lock::StudyLock;
use plan::{Plan, Values};
use progress::Progress;
use runner::Outcome;

/// Runs a study: every combination of rank counts and parameters, repeated.
///
/// In the command, {np} is replaced by the rank count, {NAME} by the value of a parameter and {rep}
/// by the number of the repetition. The order is shuffled within each repetition, so that a drift
/// of the machine does not look like scaling. If interrupted, the same command continues where it
/// stopped; more rank counts, values or repetitions extend the study. A run that fails is marked,
/// and the others continue. The output of the programs is kept in STUDY/output.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi sweep --np 1,2,4 --param N=1000,2000 --repeat 5 --out \
                  study -- mpirun -n {np} ./app {N}\n  gammachi sweep --np 1,2 --repeat 3 --compute \
                  blas --region solve --out hpl -- ./run-hpl {np}\n\nThen: gammachi scaling study; \
                  gammachi export study --to table > study.csv"
)]
pub struct SweepArguments {
    /// Rank counts
    #[arg(long, value_name = "P,…", value_delimiter = ',', required = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    np: Vec<u32>,

    /// Rank counts at which the program runs once for its counts alone, on any number of cores: times of
    /// these runs are not used, `gammachi scaling --predict` uses how often and how much they communicate
    #[arg(long, value_name = "P,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..))]
    counts_at: Vec<u32>,

    /// A parameter and its values; may be given several times, every combination is run
    #[arg(long = "param", value_name = "NAME=VALUE,…", value_parser = Values::parse)]
    params: Vec<Values>,

    /// How often each combination is run
    #[arg(long, value_name = "K", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// Study directory to write or to continue
    #[arg(long, value_name = "STUDY")]
    out: PathBuf,

    /// Detail.
    #[arg(long, value_name = "0|1|2", default_value_t = RecordingOptions::default().level,
          value_parser = values::level, help = LEVEL.meaning)]
    level: u8,

    /// What counts as computation
    #[arg(long, value_name = "KIND", value_parser = Computation::KINDS,
          default_value = Computation::KINDS[0])]
    compute: String,

    /// Region that the study is about; its tables and models cover this region only
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Seed of the order of the runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Repeat failed runs
    #[arg(long)]
    retry: bool,

    /// Print the plan without running anything
    #[arg(long)]
    dry_run: bool,

    /// Launcher and its arguments, with placeholders
    #[arg(required = true, trailing_var_arg = true, value_name = "LAUNCHER ARGS")]
    command: Vec<OsString>,
}

/// Runs the study and prints its table.
///
/// # Errors
/// Wrong usage: a placeholder is missing, the directory holds another study, or another sweep is
/// running in it. Failure: runs failed (exit code 1, after all others are done), or the directory
/// cannot be written.
pub fn sweep(arguments: &SweepArguments) -> Result<(), CommandError> {
    let plan = Plan {
        argv: arguments.command.clone(),
        np: arguments.np.clone(),
        counts_at: arguments.counts_at.clone(),
        params: arguments.params.clone(),
        repeat: arguments.repeat,
        seed: arguments.seed,
    };
    plan.check()?;
    let mut study = merge_with_existing(arguments, &plan)?;
    if arguments.dry_run {
        return print(&plan.describe(&study));
    }
    private_directory::make(&arguments.out)
        .map_err(|error| cannot_write(&arguments.out, &error))?;
    let _lock = StudyLock::take(&arguments.out)?;
    // Another sweep may have been running until now.
    study = merge_with_existing(arguments, &plan)?;
    save(&study, &arguments.out)?;
    let pending: Vec<usize> = (0..study.runs.len())
        .filter(|at| study.runs[*at].state == StudyRunState::Pending)
        .collect();
    let done = study.runs.len() - pending.len();
    // Before the progress bar starts: otherwise a signal could be delivered to its thread and end
    // the process.
    let signals = SignalGuard::new();
    let mut progress = Progress::new(done, &study);
    for at in pending {
        progress.begin(&study, at);
        let outcome = runner::execute(&plan, &study, at, &arguments.out, &signals)?;
        let run = &mut study.runs[at];
        run.duration_s = Some(outcome.duration_s());
        match outcome {
            Outcome::Recorded { .. } => {
                (run.state, run.exit_code, run.reason) = (StudyRunState::Finished, Some(0), None);
            }
            Outcome::Failed { exit_code, reason, .. } => {
                (run.state, run.exit_code) = (StudyRunState::Failed, exit_code);
                run.reason = Some(reason);
            }
            Outcome::Interrupted { signal } => {
                progress.finish();
                eprint_message(&format!(
                    "interrupted; {} of {} runs are done, the same command continues",
                    study.runs.iter().filter(|r| r.state != StudyRunState::Pending).count(),
                    study.runs.len()
                ));
                return Err(CommandError::Exit(u8::try_from(128 + signal).unwrap_or(u8::MAX)));
            }
        }
        save(&study, &arguments.out)?;
        progress.end(&study, at);
    }
    progress.finish();
    signals.release();
    conclude(&study, &arguments.out)
}

/// Merges the plan with the results of an earlier sweep.
fn merge_with_existing(arguments: &SweepArguments, plan: &Plan) -> Result<StudyJson, CommandError> {
    let out = &arguments.out;
    let fresh = |runs| plan.study(arguments.level, &arguments.compute, &arguments.region, runs);
    if !StudyJson::is_in(out) {
        let foreign = |entry: std::io::Result<fs::DirEntry>| {
            entry.is_ok_and(|entry| entry.file_name() != lock::LOCK_FILE)
        };
        if fs::read_dir(out).is_ok_and(|mut entries| entries.any(foreign)) || out.is_file() {
            return Err(CommandError::usage(format!(
                "--out {}: exists and is not a study; name a new directory",
                out.display()
            )));
        }
        return Ok(fresh(Vec::new()));
    }
    let mut there = StudyJson::read(out)?;
    let now = fresh(std::mem::take(&mut there.runs));
    let differs = [
        (there.argv != now.argv, "command"),
        (there.level != now.level, "--level"),
        (there.compute != now.compute, "--compute"),
        (there.region != now.region, "--region"),
    ];
    if let Some((_, what)) = differs.iter().find(|(differs, _)| *differs) {
        return Err(CommandError::usage(format!(
            "--out {}: holds a study with another {what}; its runs cannot be compared with these. \
             Name a new directory, or give the {what} as before ({})",
            out.display(),
            there.argv.join(" ")
        )));
    }
    let mut study = now;
    for run in &mut study.runs {
        if arguments.retry && run.state == StudyRunState::Failed {
            run.state = StudyRunState::Pending;
        }
    }
    Ok(study)
}

fn save(study: &StudyJson, out: &Path) -> Result<(), CommandError> {
    study.write(out).map_err(|error| cannot_write(out, &error))
}

fn cannot_write(out: &Path, error: &std::io::Error) -> CommandError {
    CommandError::Output(format!("--out {}: cannot be written: {error}", out.display()))
}

fn conclude(study: &StudyJson, out: &Path) -> Result<(), CommandError> {
    let failed: Vec<&StudyRun> =
        study.runs.iter().filter(|run| run.state == StudyRunState::Failed).collect();
    let is_timed = |run: &StudyRun| run.state == StudyRunState::Finished && !run.counts_only;
    if study.runs.iter().any(is_timed) {
        let Observed { table, notes, .. } = observe(&[out.to_owned()], None)?;
        notes.iter().for_each(|note| eprint_message(note));
        print(&(lines(&study::configurations(&table)?).join("\n") + "\n"))?;
        let word = shell_word(&out.to_string_lossy());
        eprint_message(&format!("study in {}; see: gammachi scaling {word}", out.display()));
    }
    match failed.first() {
        None => Ok(()),
        Some(first) => Err(CommandError::Program(format!(
            "{} of {} runs failed; the first: {}: {} (output in {}). --retry repeats them",
            failed.len(),
            study.runs.len(),
            first.directory,
            first.reason.as_deref().unwrap_or("failed"),
            runner::output_file(out, first).display()
        ))),
    }
}
