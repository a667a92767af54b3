//! `gammachi baseline`: keeps summaries of runs in a folder, for `gammachi check` and `gammachi
//! history`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::error::{CommandError, notify, print};
use super::records::RunFilter;
use crate::comparison::baseline::{self, Added, Entry};
use crate::present::comparison::{baseline_json, baseline_screen};
use crate::present::quantity::count;

/// Keeps summaries of runs in a folder of small files, to check against.
///
/// One file of a few kilobytes per run: times, iterations, counts, no events. The folder can be
/// kept in git.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi baseline add app-*.gammachi --baseline perf\n  \
                  gammachi baseline show --baseline perf\n  \
                  gammachi baseline trim --baseline perf --keep 20\n\nThe files are \
                  described in docs/reference/compare-json.md.")]
pub struct BaselineArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Adds runs, or the runs of a study
    Add {
        /// Runs or studies
        #[arg(value_name = "RUN|STUDY", required = true)]
        runs: Vec<PathBuf>,

        /// Folder; created if missing
        #[arg(long, value_name = "DIR")]
        baseline: PathBuf,

        #[command(flatten)]
        only: RunFilter,
    },
    /// Shows the runs of a baseline
    Show {
        /// Folder of the baseline
        #[arg(long, value_name = "DIR")]
        baseline: PathBuf,

        /// Print a JSON document
        #[arg(long)]
        json: bool,
    },
    /// Removes old runs from a baseline
    Trim {
        /// Folder of the baseline
        #[arg(long, value_name = "DIR")]
        baseline: PathBuf,

        /// How many of the newest runs of each program, parameters and machine to keep
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        keep: u32,
    },
}

/// Adds, shows or removes runs.
///
/// # Errors
/// Runs or a folder that cannot be read or written.
pub fn baseline(arguments: &BaselineArguments) -> Result<(), CommandError> {
    let failed = |error: baseline::BaselineError| CommandError::failed(error.to_string());
    match &arguments.action {
        Action::Add { runs, baseline, only } => {
            let records = only.read(runs)?;
            if let Some(imagined) = records.iter().find(|record| record.imagined) {
                return Err(CommandError::usage(format!(
                    "{}: was written by `gammachi whatif`; only measured runs belong in a baseline",
                    imagined.run
                )));
            }
            let added: Result<Vec<Added>, _> =
                records.iter().map(|record| baseline::add(baseline, record)).collect();
            let added = added.map_err(failed)?;
            let new = added.iter().filter(|added| matches!(added, Added::New(_))).count();
            let known = match added.len() - new {
                0 => String::new(),
                known => format!("; {} had been added before", count(known as u64)),
            };
            notify(&format!("{}: {} added{known}", baseline.display(), count(new as u64)));
            Ok(())
        }
        Action::Show { baseline, json } => {
            let all = baseline::read(baseline).map_err(failed)?;
            match json {
                true => {
                    let text = baseline_json(&all);
                    print(&text.map_err(|error| CommandError::failed(error.to_string()))?)
                }
                false => print(&baseline_screen(&all, baseline)),
            }
        }
        Action::Trim { baseline, keep } => {
            let all = baseline::read(baseline).map_err(failed)?;
            let surplus: Vec<&Entry> = baseline::surplus(&all, *keep as usize);
            baseline::remove(&surplus).map_err(failed)?;
            let left = all.len() - surplus.len();
            notify(&format!(
                "{}: {} removed, {} left",
                baseline.display(),
                count(surplus.len() as u64),
                count(left as u64)
            ));
            Ok(())
        }
    }
}
