//! Reads the table to model from what the user names: a file, a study or runs.

use std::fs;
use std::path::Path;

use crate::cli::error::CommandError;
use crate::cli::observed::{Observed, observe};
use crate::formats::extra_p;
use crate::models::Observations;
use crate::models::observations::{CHI_S, ObservationsError, P, SUM_GAMMA_S};

use super::arguments::ModelArguments;

/// Parts of τ that a table of recorded runs has, named as in Orii et al.
const COMPUTE: &str = "compute";
const MPI: &str = "mpi";

/// Reads the table.
///
/// # Errors
/// Wrong usage: several files, or a region for a file. Failure: a source cannot be read.
pub(super) fn read(arguments: &ModelArguments) -> Result<Observed, CommandError> {
    let extension = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.unwrap_or("").to_ascii_lowercase()
    };
    let observed = match arguments.inputs.as_slice() {
        [file] if !file.is_dir() => {
            if let Some(region) = &arguments.region {
                return Err(CommandError::usage(format!(
                    "--region {region}: {} is a table, which knows no regions; name runs or a study",
                    file.display()
                )));
            }
            let table = match extension(file).as_str() {
                "txt" => read_extra_p(file, extra_p::read::from_text),
                "jsonl" => read_extra_p(file, extra_p::read::from_json_lines),
                _ => Observations::read(file),
            };
            let (notes, subjects, directories, counted) = Default::default();
            Observed { table: table?, notes, subjects, directories, counted }
        }
        sources => observe(sources, arguments.region.as_deref())?,
    };
    let mut wanted = arguments.parts.iter().chain(&arguments.response);
    let Observed { table, notes, subjects, directories, counted } = observed;
    let table = wanted.try_fold(table, |table, name| with_part(table, name));
    Ok(Observed { table: table?, notes, subjects, directories, counted })
}

fn read_extra_p(
    path: &Path,
    parse: impl Fn(String, &str) -> Result<Observations, ObservationsError>,
) -> Result<Observations, ObservationsError> {
    let source_name = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => parse(source_name, &text),
        Err(source) => Err(ObservationsError::Read { source_name, source }),
    }
}

/// Adds the part of this name (γ or χ, means over the ranks, which add up to τ) if the table has
/// the figures for it and no column of this name.
pub(in crate::cli) fn with_part(
    table: Observations,
    name: &str,
) -> Result<Observations, ObservationsError> {
    let known = [P, SUM_GAMMA_S, CHI_S].iter().all(|figure| table.has(figure));
    if table.has(name) || !known {
        return Ok(table);
    }
    match name {
        COMPUTE => {
            let (sums, ranks) = (table.numbers(SUM_GAMMA_S)?, table.counts(P)?);
            let means = sums.iter().zip(ranks).map(|(sum, p)| sum / f64::from(p));
            table.with_column(COMPUTE, &means.collect::<Vec<_>>())
        }
        MPI => {
            let overheads = table.numbers(CHI_S)?;
            table.with_column(MPI, &overheads)
        }
        _ => Ok(table),
    }
}
