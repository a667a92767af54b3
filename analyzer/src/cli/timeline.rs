//! `gammachi timeline`: draws the timeline of a run in the terminal.

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;

use super::error::{CommandError, print};
use super::newest_run::named_or_newest;
use super::{selection_arguments, terminal};
use crate::metrics::activity::{Activity, bins_for};
use crate::present::text_timeline::{self, TextTimeline};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Draws the timeline of a run in the terminal.
///
/// Each line is a rank, each cell a stretch of time. Its colour, or its letter on terminals without
/// colours, shows what took most of the time; a mark below means that it contains shorter calls,
/// too.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi timeline hpl-20260131-120000.gammachi\n  gammachi timeline \
                  hpl-20260131-120000.gammachi --window 1.5,1.6 --ranks 0-3,8"
)]
pub struct TimelineArguments {
    /// Run directory printed by `gammachi run` (default: the newest one here)
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,

    /// Only this stretch, in seconds since the first rank left MPI_Init (`1.5,1.6`)
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true)]
    pub window: Option<String>,

    /// Only these ranks (`0-3,8`)
    #[arg(long, value_name = "LIST")]
    pub ranks: Option<String>,

    /// Columns (default: those of the terminal, or 100 if there is none)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(20..=1000))]
    pub width: Option<u16>,
}

/// Prints a run's timeline.
///
/// # Errors
/// Wrong usage for an invalid window or invalid ranks; failure if nothing can be read.
pub fn timeline(arguments: &TimelineArguments) -> Result<(), CommandError> {
    let directory = named_or_newest(arguments.run.as_deref())?;
    let run = Run::open(&directory).map_err(|error| CommandError::failed(error.to_string()))?;
    let timeline = GlobalTimeline::new(&run);
    let window = window(arguments.window.as_deref())?;
    let ranks = arguments.ranks.as_deref();
    let ranks = ranks.map(|text| selection_arguments::ranks("--ranks", text, run.world_size));
    let ranks = ranks.transpose()?;
    let length_s = timeline.ranks.iter().map(|rank| rank.end_s()).fold(0.0, f64::max);
    let seconds = clamped("--window", window, length_s)?;
    let columns = usize::from(
        arguments
            .width
            .unwrap_or_else(|| terminal::columns().filter(|it| *it >= 20).unwrap_or(100)),
    );
    // Bins no wider than a cell, as far as memory permits.
    let wanted = columns as f64 * length_s / (seconds.end - seconds.start).max(f64::MIN_POSITIVE);
    let most = 64 * bins_for(run.ranks.len());
    let bins = (wanted.ceil() as usize).clamp(columns, most.max(columns));
    let activity = Activity::new(&run, &timeline, bins);
    let rows = rows(&activity, ranks.as_deref());
    if rows.is_empty() {
        return Err(CommandError::failed(format!(
            "{}: none of these ranks left a readable file",
            run.directory.display()
        )));
    }
    let colour = terminal::has_colours();
    let timeline = TextTimeline { seconds, rows, columns, colour };
    run.check_readable().map_err(CommandError::unreadable_run)?;
    print(
        &(text_timeline::heading(&run, &activity, &timeline)
            + &text_timeline::text(&run, &activity, &timeline)),
    )
}

pub(super) fn window(text: Option<&str>) -> Result<Option<Range<f64>>, CommandError> {
    text.map(|text| selection_arguments::seconds("--window", text)).transpose()
}

/// The part of a window that lies in the run; the whole run if no window is given.
pub(super) fn clamped(
    option: &str,
    window: Option<Range<f64>>,
    length_s: f64,
) -> Result<Range<f64>, CommandError> {
    let whole = 0.0..length_s.max(1e-9);
    let Some(window) = window else { return Ok(whole) };
    if window.start >= length_s || window.end <= 0.0 {
        return Err(CommandError::usage(format!(
            "{option} {},{}: lies outside the run, which lasts from 0 to {length_s} s",
            window.start, window.end
        )));
    }
    Ok(window.start.max(0.0)..window.end.min(whole.end))
}

/// Positions of the rows of these ranks.
pub(super) fn rows(activity: &Activity, ranks: Option<&[Range<u32>]>) -> Vec<usize> {
    let wanted = |rank: u32| ranks.is_none_or(|ranges| ranges.iter().any(|r| r.contains(&rank)));
    let rows = activity.rows.iter().enumerate().filter(|(_, row)| wanted(row.rank));
    rows.map(|(index, _)| index).collect()
}
