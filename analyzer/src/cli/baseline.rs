//! `gammachi baseline`: keeps what is known of runs in a folder, for `gammachi check` and `gammachi history`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::error::{CommandError, print, say};
use super::records::Only;
use crate::comparison::baseline::{self, Added, Kept};
use crate::present::comparison::{baseline_json, baseline_screen};
use crate::present::quantity::count;

/// Keeps summaries of runs in a folder of small files, to check against.
///
/// One file of some kilobytes a run: times, iterations, counts, no events. The folder can be kept in git.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi baseline add app-*.gammachi --baseline perf\n  \
                  gammachi baseline show --baseline perf\n  \
                  gammachi baseline trim --baseline perf --keep 20\n\nWhat the files say: \
                  docs/reference/compare-json.md.")]
pub struct BaselineArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Adds runs, or the runs of a study
    Add {
        /// Runs or studies
        #[arg(value_name = "RUN|STUDY", required = true)]
        runs: Vec<PathBuf>,

        /// Folder, which is made where it is missing
        #[arg(long, value_name = "DIR")]
        baseline: PathBuf,

        #[command(flatten)]
        only: Only,
    },
    /// Shows what is in it
    Show {
        /// Folder
        #[arg(long, value_name = "DIR")]
        baseline: PathBuf,

        /// Print a JSON document
        #[arg(long)]
        json: bool,
    },
    /// Removes old runs
    Trim {
        /// Folder
        #[arg(long, value_name = "DIR")]
        baseline: PathBuf,

        /// How many runs of each program, parameters and machine stay: the newest
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        keep: u32,
    },
}

/// Does what is asked.
///
/// # Errors
/// Runs or a folder that cannot be read or written.
pub fn baseline(arguments: &BaselineArguments) -> Result<(), CommandError> {
    let failed = |error: baseline::BaselineError| CommandError::failed(error.to_string());
    match &arguments.what {
        What::Add { runs, baseline, only } => {
            let records = only.read(runs)?;
            if let Some(imagined) = records.iter().find(|record| record.imagined) {
                return Err(CommandError::usage(format!(
                    "{}: was replayed by `gammachi whatif`; only runs that were measured belong in a baseline",
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
            say(&format!("{}: {} added{known}", baseline.display(), count(new as u64)));
            Ok(())
        }
        What::Show { baseline, json } => {
            let all = baseline::read(baseline).map_err(failed)?;
            match json {
                true => {
                    let text = baseline_json(&all);
                    print(&text.map_err(|error| CommandError::failed(error.to_string()))?)
                }
                false => print(&baseline_screen(&all, baseline)),
            }
        }
        What::Trim { baseline, keep } => {
            let all = baseline::read(baseline).map_err(failed)?;
            let surplus: Vec<&Kept> = baseline::surplus(&all, *keep as usize);
            baseline::remove(&surplus).map_err(failed)?;
            let left = all.len() - surplus.len();
            say(&format!(
                "{}: {} removed, {} left",
                baseline.display(),
                count(surplus.len() as u64),
                count(left as u64)
            ));
            Ok(())
        }
    }
}
