//! `--add`, `--show`, `--trim` and `--history` of `gammachi check`: the runs that a baseline keeps.

use std::path::{Path, PathBuf};

use crate::cli::error::{CommandError, eprint_message, print_result};
use crate::cli::output_file;
use crate::cli::records::RunFilter;
use crate::comparison::baseline::{self, Added};
use crate::comparison::history::Series;
use crate::present::comparison::{baseline_json, baseline_screen, history};
use crate::present::quantity::count;

/// Adds runs to a baseline.
pub(super) fn add(folder: &Path, runs: &[PathBuf], only: &RunFilter) -> Result<(), CommandError> {
    let records = only.read(runs)?;
    if let Some(simulated) = records.iter().find(|record| record.simulated) {
        return Err(CommandError::usage(format!(
            "{}: was written by `gammachi whatif`; only measured runs belong in a baseline",
            simulated.run
        )));
    }
    let added = records.iter().map(|record| baseline::add(folder, record));
    let added = added.collect::<Result<Vec<Added>, _>>()?;
    let new = added.iter().filter(|added| matches!(added, Added::New(_))).count();
    let known = match added.len() - new {
        0 => String::new(),
        known => format!("; {} had been added before", count(known as u64)),
    };
    eprint_message(&format!("{}: {} added{known}", folder.display(), count(new as u64)));
    Ok(())
}

/// Prints the runs of a baseline.
pub(super) fn show(folder: &Path, as_json: bool) -> Result<(), CommandError> {
    let all = baseline::read(folder)?;
    print_result(as_json, || baseline_json(&all), |_| baseline_screen(&all, folder))
}

/// Removes all but the newest runs of each program, parameters and machine.
pub(super) fn trim(folder: &Path, keep: u32) -> Result<(), CommandError> {
    let all = baseline::read(folder)?;
    let surplus = baseline::surplus(&all, keep as usize);
    baseline::remove(&surplus)?;
    let (removed, left) = (surplus.len() as u64, (all.len() - surplus.len()) as u64);
    let (removed, left) = (count(removed), count(left));
    eprint_message(&format!("{}: {removed} removed, {left} left", folder.display()));
    Ok(())
}

/// Writes a page that draws runs over time.
pub(super) fn draw(sources: &[PathBuf], only: &RunFilter, page: &Path) -> Result<(), CommandError> {
    let mut runs = only.read(sources)?;
    runs.sort_by(|a, b| (a.begun_ns, &a.run).cmp(&(b.begun_ns, &b.run)));
    let text = history::page(&Series::all(&runs))?;
    output_file::write(page, &text)?;
    eprint_message(&format!("wrote {}", page.display()));
    Ok(())
}
