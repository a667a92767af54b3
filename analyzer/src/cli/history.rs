//! `gammachi history`: writes a page that shows a baseline's runs over time.

use std::path::PathBuf;

use clap::Args;

use super::error::{CommandError, notify};
use super::output_file;
use super::output_rights::OutputRights;
use super::records::RunFilter;
use crate::comparison::RunRecord;
use crate::comparison::history::Series;
use crate::present::comparison::history::page;

/// Draws time and efficiency of runs over time and marks changes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi history perf --html perf.html\n  \
                  gammachi run --param commit=$(git rev-parse --short HEAD) -- mpirun -n 4 ./app\n\nA run's \
                  parameter `commit` is shown beside its point. How changes are found: docs/guide/compare.md.")]
pub struct HistoryArguments {
    /// A baseline's folder, runs, or studies
    #[arg(value_name = "DIR|RUN", required = true)]
    sources: Vec<PathBuf>,

    /// Page to write
    #[arg(long, value_name = "FILE.html")]
    html: PathBuf,

    #[command(flatten)]
    only: RunFilter,

    /// Who may read what is written
    #[command(flatten)]
    rights: OutputRights,
}

/// Writes the page.
///
/// # Errors
/// Runs that cannot be read, or a page that cannot be written.
pub fn history(arguments: &HistoryArguments) -> Result<(), CommandError> {
    arguments.rights.apply();
    let mut runs: Vec<RunRecord> = arguments.only.read(&arguments.sources)?;
    runs.sort_by(|a, b| (a.begun_ns, &a.run).cmp(&(b.begun_ns, &b.run)));
    let series = Series::all(&runs);
    let text = page(&series).map_err(|error| CommandError::failed(error.to_string()))?;
    output_file::write(&arguments.html, &text)?;
    notify(&format!("wrote {}", arguments.html.display()));
    Ok(())
}
