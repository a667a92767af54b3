//! `gammachi view --text` and `--svg`: draws a run once, in the terminal or as a picture.

use std::ops::Range;
use std::path::Path;

use super::ViewArguments;
use super::picture;
use crate::analysis::Analysis;
use crate::causes::{Causes, MAX_CALLS_FOR_SUMMARY};
use crate::cli::error::{CommandError, print};
use crate::cli::newest_run::named_or_newest;
use crate::cli::{output_file, selection_arguments, terminal};
use crate::diagnosis::{Diagnosis, Evidence};
use crate::metrics::activity::{Activity, bins_for};
use crate::metrics::{Metrics, Selection};
use crate::present::text_timeline::{self, TextTimeline};
use crate::replay::NoIdeal;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Draws the timeline in the terminal.
///
/// # Errors
/// Wrong usage for an invalid window or invalid ranks; failure if nothing can be read.
pub(super) fn text(arguments: &ViewArguments) -> Result<(), CommandError> {
    let run = Run::open(&named_or_newest(arguments.run.as_deref())?)?;
    let timeline = GlobalTimeline::new(&run);
    let part = Part::new(arguments, &run, &timeline)?;
    let of_terminal = || terminal::columns().filter(|columns| *columns >= 20).unwrap_or(100);
    let columns = usize::from(arguments.width.unwrap_or_else(of_terminal));
    let activity = part.activity(&run, &timeline, columns, 64);
    let rows = part.rows(&activity);
    if rows.is_empty() {
        let directory = run.directory.display();
        return Err(CommandError::failed(format!(
            "{directory}: none of these ranks left a readable file"
        )));
    }
    let colour = terminal::has_colours();
    let drawn = TextTimeline { seconds: part.seconds, rows, columns, colour };
    let analysis = Analysis::of(&run, &timeline);
    let metrics = Metrics::of_analysis(&analysis, &Selection::Whole, true)?;
    let causes = causes_for_summary(&analysis, &metrics);
    let diagnosis = Diagnosis::new(Evidence {
        run: &run,
        timeline: &timeline,
        metrics: &metrics,
        causes: causes.as_ref(),
        // What an ideal network would save makes nothing invalid.
        ideal: Err(NoIdeal::NotAsked),
        replay: None,
    });
    run.check_readable()?;
    print(
        &(text_timeline::heading(&diagnosis, &activity, &drawn)
            + &text_timeline::text(&run, &activity, &drawn)),
    )
}

/// The causes of waiting by which a report judges a run, too.
fn causes_for_summary<'a>(analysis: &Analysis<'a>, metrics: &Metrics) -> Option<Causes<'a>> {
    let calls: u64 = metrics.ranks.iter().map(|rank| rank.events).sum();
    (calls <= MAX_CALLS_FOR_SUMMARY).then(|| Causes::new(analysis))
}

/// Writes a picture, or prints it if the file is `-`.
///
/// # Errors
/// Wrong usage for something the run does not have; failure if nothing can be read or written.
pub(super) fn svg(arguments: &ViewArguments, file: &Path) -> Result<(), CommandError> {
    arguments.rights.apply();
    picture::refuse_other_formats(file)?;
    let run = Run::open(&named_or_newest(arguments.run.as_deref())?)?;
    let svg = picture::svg(arguments, &run, &GlobalTimeline::new(&run))?;
    run.check_readable()?;
    match file.as_os_str() == "-" {
        true => print(&svg),
        false => output_file::write(file, &svg),
    }
}

/// The part of a timeline to draw.
pub(super) struct Part {
    pub seconds: Range<f64>,
    ranks: Option<Vec<Range<u32>>>,
    length_s: f64,
}

impl Part {
    pub fn new(
        arguments: &ViewArguments,
        run: &Run,
        timeline: &GlobalTimeline,
    ) -> Result<Self, CommandError> {
        let window = arguments.window.as_deref();
        let window = window.map(|text| selection_arguments::seconds("--window", text));
        let ranks = arguments.ranks.as_deref();
        let ranks = ranks.map(|text| selection_arguments::ranks("--ranks", text, run.world_size));
        let length_s = timeline.ranks.iter().map(|rank| rank.end_s()).fold(0.0, f64::max);
        let seconds = clamped(window.transpose()?, length_s)?;
        Ok(Self { seconds, ranks: ranks.transpose()?, length_s })
    }

    /// Activity in bins no wider than a cell of the drawing, as far as memory permits: `most` times
    /// the bins of a page.
    pub fn activity(
        &self,
        run: &Run,
        timeline: &GlobalTimeline,
        cells: usize,
        most: usize,
    ) -> Activity {
        let shown_s = (self.seconds.end - self.seconds.start).max(f64::MIN_POSITIVE);
        let wanted = (cells as f64 * self.length_s / shown_s).ceil() as usize;
        let most = most * bins_for(run.ranks.len());
        Activity::new(run, timeline, wanted.clamp(cells, most.max(cells)))
    }

    /// Positions of the rows of its ranks.
    pub fn rows(&self, activity: &Activity) -> Vec<usize> {
        let ranks = self.ranks.as_deref();
        let wanted = |rank| ranks.is_none_or(|ranges| ranges.iter().any(|r| r.contains(&rank)));
        let rows = activity.rows.iter().enumerate().filter(|(_, row)| wanted(row.rank));
        rows.map(|(index, _)| index).collect()
    }
}

/// The part of a window that lies in the run; the whole run if no window is given.
fn clamped(window: Option<Range<f64>>, length_s: f64) -> Result<Range<f64>, CommandError> {
    let whole = 0.0..length_s.max(1e-9);
    let Some(Range { start, end }) = window else { return Ok(whole) };
    if start >= length_s || end <= 0.0 {
        return Err(CommandError::usage(format!(
            "--window {start},{end}: lies outside the run, which lasts from 0 to {length_s} s"
        )));
    }
    Ok(start.max(0.0)..end.min(whole.end))
}
