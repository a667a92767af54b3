//! `gammachi table`: prints runs or a study as the table that models read.

use std::path::PathBuf;

use clap::Args;

use super::error::{CommandError, notify, print};
use super::observed::{Observed, observe};

/// Prints a study as the CSV table that scaling and model read.
///
/// One row per run: p, tau_s (elapsed time), sum_gamma_s (computing time, summed over the ranks),
/// chi_s (lost time, mean over the ranks) with the minimum and maximum over the ranks, flops if
/// BLAS calls were counted, one column for each --param, rep (repetition) and run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi table STUDY > study.csv\n  \
                  gammachi table --region solve p1.gammachi p2.gammachi p4.gammachi\n\nRuns that \
                  failed or did not finish are left out and named on standard error.")]
pub struct TableArguments {
    /// Run directories, or a study made by `gammachi sweep`
    #[arg(value_name = "RUN|STUDY", required = true)]
    pub sources: Vec<PathBuf>,

    /// Restrict every figure to a region that the program marked with gammachi.h
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

/// Prints the table.
///
/// # Errors
/// Nothing can be read; see [`observe`].
pub fn table(arguments: &TableArguments) -> Result<(), CommandError> {
    let Observed { table, notes, .. } = observe(&arguments.sources, arguments.region.as_deref())?;
    notes.iter().for_each(|note| notify(note));
    let mut text = Vec::new();
    table.write_csv(&mut text).map_err(CommandError::failed)?;
    print(&String::from_utf8_lossy(&text))
}
