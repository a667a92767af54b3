//! Parses stretches of time and lists of ranks from the command line.

use std::ops::Range;

use clap::Args;

use super::error::CommandError;
use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::metrics::{Selection, SelectionError};

/// Selects a part of a run. Several options together select what all of them do.
#[derive(Debug, Default, Clone, Args)]
pub struct SelectionArguments {
    /// Restrict every figure to a region that the program marked with gammachi.h
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,

    /// Restrict every figure to a time window: seconds since the first rank left MPI_Init
    /// (`1.5,20`), or on each rank from the end of one call to the start of another
    /// (`MPI_Barrier#3,MPI_Barrier#4`)
    #[arg(long, value_name = "FROM,TO")]
    pub window: Option<String>,

    /// Restrict every figure to an iteration of the main loop, counted from 0
    #[arg(long, value_name = "NUMBER")]
    pub iteration: Option<usize>,
}

impl SelectionArguments {
    /// The selected part of a run. If the analysis is divided, all processes call this.
    pub fn selection(&self, analysis: &Analysis) -> Result<Selection, CommandError> {
        let mut parts = Vec::new();
        parts.extend(self.region.clone().map(Selection::Region));
        parts.extend(self.window.as_deref().map(window).transpose()?);
        if let Some(number) = self.iteration {
            let found = Causes::iteration(analysis, number);
            let run = analysis.run.directory.display();
            parts.push(Selection::Iteration(found.map_err(|count| {
                CommandError::usage(match count {
                    0 => format!("--iteration {number}: no iterations were found in {run}"),
                    _ => {
                        format!("--iteration {number}: {run} has the iterations 0 to {}", count - 1)
                    }
                })
            })?));
        }
        Ok(Selection::of_all(parts))
    }
}

/// Parses the value of `--window`.
pub fn window(text: &str) -> Result<Selection, CommandError> {
    Selection::parse_window(text).map_err(|what| {
        CommandError::usage(format!(
            "--window {text}: {what}; give two bounds, in seconds or as the n-th call of a function on each \
             rank: --window 1.5,20 or --window MPI_Barrier#3,MPI_Barrier#4"
        ))
    })
}

/// Explains why a selection is empty, with the option and what to do.
pub fn selection_sentence(error: &SelectionError) -> String {
    match error {
        SelectionError::UnknownFunction { .. } => format!("--window: {error}"),
        SelectionError::EmptyWindow { from, to, why } => format!("--window {from},{to}: {why}"),
        SelectionError::OnlyTotals { .. } => format!(
            "{error}: leave out --window, --region and --iteration, select other seconds, or record with more \
             --max-bytes"
        ),
        SelectionError::UnknownRegion { .. }
        | SelectionError::EmptyRegion(_)
        | SelectionError::NothingInCommon(_) => error.to_string(),
    }
}

impl From<SelectionError> for CommandError {
    fn from(error: SelectionError) -> Self {
        Self::Input(selection_sentence(&error))
    }
}

/// Parses `1.5,2` as seconds of the global timeline.
pub fn seconds(option: &str, text: &str) -> Result<Range<f64>, CommandError> {
    let parsed = text.split_once(',').and_then(|(from, to)| {
        let (from, to) = (from.trim().parse::<f64>().ok()?, to.trim().parse::<f64>().ok()?);
        (from.is_finite() && to.is_finite() && from < to).then_some(from..to)
    });
    parsed.ok_or_else(|| {
        CommandError::usage(format!(
            "{option} {text}: give two times in seconds since the first rank left MPI_Init, the \
             earlier first, such as 1.5,2"
        ))
    })
}

/// Parses `0-3,8` as ranges of ranks, both ends included.
pub fn ranks(option: &str, text: &str, world_size: u32) -> Result<Vec<Range<u32>>, CommandError> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        (first <= last).then_some((first, last))
    };
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let Some((first, last)) = range(part) else {
            return Err(CommandError::usage(format!(
                "{option} {text}: {part:?} is neither a rank nor a range of ranks such as 0-3"
            )));
        };
        if last >= world_size {
            return Err(CommandError::usage(format!(
                "{option} {text}: rank {last} does not exist: the run has {world_size} {}",
                if world_size == 1 { "rank" } else { "ranks" }
            )));
        }
        ranges.push(first..last + 1);
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_stretches_and_lists() {
        assert_eq!(seconds("--window", "1.5,2").unwrap(), 1.5..2.0);
        for wrong in ["", "1", "2,1", "1,1", "a,b", "0,inf", "nan,1"] {
            assert_eq!(seconds("--window", wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
        let wrong = window("1.5").unwrap_err();
        assert_eq!(wrong.exit_code(), 2);
        assert!(wrong.to_string().contains("--window MPI_Barrier#3,MPI_Barrier#4"), "{wrong}");
        assert_eq!(ranks("--ranks", "0-3,8", 9).unwrap(), [0..4, 8..9]);
        for wrong in ["", "x", "3-1", "9", "0-", "1,,2"] {
            assert_eq!(ranks("--ranks", wrong, 9).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }
}
