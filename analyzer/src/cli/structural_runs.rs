//! Predictions from what the runs of a study do, beside the curves of `gammachi scaling` and `gammachi model`.

use std::path::{Path, PathBuf};

use super::error::CommandError;
use super::labelled_run::labels_of;
use super::observed::CountedRun;
use crate::models::observations::{ObservationsError, P, TAU_S};
use crate::models::scaling::{Fit, Scaling};
use crate::models::structure::{Abstains, MachineTimes, RunLabels};
use crate::models::{Machine, Observations};

/// Times of messages on the machine that was named; none are known without.
///
/// # Errors
/// `machine` is no document of a machine.
pub(super) fn message_times(machine: Option<&Path>) -> Result<MachineTimes, CommandError> {
    let machine = machine.map(Machine::read).transpose()?;
    Ok(machine.map(|machine| machine.network.message_times()).unwrap_or_default())
}

/// Predicts the times asked for from what the runs do, too, where the runs can be read for that.
///
/// # Errors
/// `machine` is no document of a machine, or the table lacks rank counts or times.
pub(super) fn add_structure(
    scaling: &mut Scaling,
    table: &Observations,
    (directories, counted): (&[PathBuf], &[CountedRun]),
    machine: Option<&Path>,
) -> Result<(), CommandError> {
    let machine = message_times(machine)?;
    if directories.is_empty() {
        return Ok(());
    }
    for fit in scaling.fits.iter_mut().filter(|fit| !fit.predictions.is_empty()) {
        let timed = rows_of(fit, table)?.into_iter().map(|row| labels_of(&directories[row]));
        let params = &fit.series.params;
        let is_alike = |run: &&CountedRun| params.iter().all(|param| run.params.contains(param));
        let of_counts = counted.iter().filter(is_alike).map(|run| {
            let labels = labels_of(&run.directory)?;
            Ok(RunLabels { counts_only: true, ..labels })
        });
        let runs: Result<Vec<RunLabels>, Abstains> = timed.chain(of_counts).collect();
        fit.add_structure(runs, &machine);
    }
    Ok(())
}

/// The rows of the table that structure is read from: the fastest run at each of a fit's rank counts.
///
/// # Errors
/// The table lacks rank counts or times.
pub(super) fn rows_of(fit: &Fit, table: &Observations) -> Result<Vec<usize>, CommandError> {
    let input = |error: &ObservationsError| CommandError::Input(error.to_string());
    let p = table.counts(P).map_err(|error| input(&error))?;
    let tau_s = table.positive_numbers(TAU_S).map_err(|error| input(&error))?;
    let row_of = |point| (0..p.len()).find(|row| (p[*row], tau_s[*row]) == point);
    Ok(fit.structural_points().filter_map(row_of).collect())
}
