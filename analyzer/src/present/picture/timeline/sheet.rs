//! The sheet on which a timeline is drawn.

use std::ops::Range;

pub(super) struct Sheet<'a> {
    pub(super) view: &'a View,
    pub(super) row_height: f64,
}

impl Sheet<'_> {
    pub(super) fn x(&self, time_s: f64) -> f64 {
        let Range { start, end } = self.view.seconds;
        let share = ((time_s - start) / (end - start)).clamp(0.0, 1.0);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    pub(super) fn top(&self, position: usize) -> f64 {
        TOP + position as f64 * self.row_height
    }

    pub(super) fn position_of(&self, row: usize) -> Option<usize> {
        self.view.rows.iter().position(|other| *other == row)
    }

    pub(super) fn shows(&self, time_s: f64) -> bool {
        (self.view.seconds.start..=self.view.seconds.end).contains(&time_s)
    }
}

/// What a picture of a timeline shows.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Global seconds.
    pub seconds: Range<f64>,
    /// Whether the axis counts from the left edge, so that pictures of several runs can be compared.
    pub from_left: bool,
    /// Positions of the rows in [`Activity::rows`](crate::metrics::activity::Activity::rows), top to bottom.
    pub rows: Vec<usize>,
}

pub(super) const LEFT: f64 = 44.0;

pub(super) const RIGHT: f64 = 10.0;

pub(super) const WIDTH: f64 = 510.0;

pub(super) const TOP: f64 = 26.0;
