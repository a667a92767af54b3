//! The part of a run that is drawn.

use std::ops::Range;

use crate::cli::error::CommandError;
use crate::cli::selection_arguments;
use crate::metrics::activity::{Activity, bins_for};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::arguments::ViewArguments;

/// The part of a timeline to draw.
pub(super) struct Part {
    pub seconds: Range<f64>,
    pub(super) ranks: Option<Vec<Range<u32>>>,
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
pub(super) fn clamped(
    window: Option<Range<f64>>,
    length_s: f64,
) -> Result<Range<f64>, CommandError> {
    let whole = 0.0..length_s.max(1e-9);
    let Some(Range { start, end }) = window else { return Ok(whole) };
    if start >= length_s || end <= 0.0 {
        return Err(CommandError::usage(format!(
            "--window {start},{end}: lies outside the run, which lasts from 0 to {length_s} s"
        )));
    }
    Ok(start.max(0.0)..end.min(whole.end))
}
