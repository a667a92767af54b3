//! `gammachi tables`: a recorded run of `kernels blocking` or `kernels collectives` comes in, the
//! recorder paper's tables go to standard output.

use std::path::PathBuf;

use clap::Args;

use super::error::{CommandError, print};
use crate::metrics::LatePartner;
use crate::present::late_partner::screen;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Prints how long calls take when one side is late, from a recorded run of the kernels.
///
/// `kernels blocking` gives tables 2 and 3 (send, receive, and the time between their ends),
/// `kernels collectives` table 4 (the longest call of each loop and its rank).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    gammachi run --out blocking.gammachi -- mpirun -n 2 kernels blocking\n  \
    gammachi tables blocking.gammachi\n  \
    gammachi run --out late.gammachi -- mpirun -n 4 kernels collectives\n  \
    gammachi tables late.gammachi")]
pub struct TablesArguments {
    /// Run directory that `gammachi run` named when it ended
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
}

/// Prints the tables of a run.
///
/// # Errors
/// Failure when the run cannot be read or was not made by these kernels.
pub fn tables(arguments: &TablesArguments) -> Result<(), CommandError> {
    let run = Run::open(&arguments.run).map_err(|error| CommandError::failed(error.to_string()))?;
    let timeline = GlobalTimeline::new(&run);
    let tables = LatePartner::new(&run, &timeline).map_err(CommandError::failed)?;
    print(&screen(&tables))
}
