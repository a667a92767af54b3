//! The legend: rows of samples with names, above the panels that they explain.

use super::canvas::{Anchor, Canvas, Font, Point, text_width};
use super::plot::{Marks, Panel};
use super::style::{GAP, HAIR, LEADING, LINE, Look, SMALL};
use crate::present::svg::INK;

/// Width of a sample.
const SAMPLE: f64 = 16.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sample {
    Line,
    Points,
    Both,
    Surface,
    Bars,
    Ranges,
}

/// A series in the legend.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    name: String,
    look: Look,
    sample: Sample,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Legend {
    entries: Vec<Entry>,
}

pub(super) fn looks(panel: &Panel) -> Vec<Look> {
    let mut next = 0;
    let mut number = |given: Option<usize>| {
        given.unwrap_or_else(|| {
            next += 1;
            next - 1
        })
    };
    panel.series.iter().map(|series| Look::from_palette(number(series.look))).collect()
}

impl Legend {
    pub fn new(panel: &Panel) -> Self {
        let named = panel.series.iter().zip(looks(panel)).filter(|(s, _)| !s.name.is_empty());
        let entries = named.map(|(series, look)| Entry {
            name: series.name.clone(),
            look,
            sample: match series.marks {
                Marks::Line(_) => Sample::Line,
                Marks::Points(_) => Sample::Points,
                Marks::LineAndPoints(_) => Sample::Both,
                Marks::Band(_) => Sample::Surface,
                Marks::Bars(_) => Sample::Bars,
                Marks::Ranges(_) => Sample::Ranges,
            },
        });
        Self { entries: entries.collect() }
    }

    /// The entries of each row.
    fn rows(&self, width: f64) -> Vec<Vec<(&Entry, f64)>> {
        let mut rows: Vec<Vec<(&Entry, f64)>> = Vec::new();
        let mut at = 0.0;
        for entry in &self.entries {
            let wide = SAMPLE + GAP + text_width(&entry.name, SMALL) + 3.0 * GAP;
            match rows.last_mut() {
                Some(row) if at + wide <= width => row.push((entry, at)),
                _ => {
                    rows.push(vec![(entry, 0.0)]);
                    at = 0.0;
                }
            }
            at += wide;
        }
        rows
    }

    /// Height at a given width, points.
    pub fn height(&self, width: f64) -> f64 {
        match self.rows(width).len() {
            0 => 0.0,
            rows => rows as f64 * SMALL * LEADING + GAP,
        }
    }

    /// Draws it with its upper left corner at the given position.
    pub fn draw(&self, canvas: &mut Canvas, (left, top): Point, width: f64) {
        let font = Font { size: SMALL, colour: INK, bold: false, upwards: false };
        for (number, row) in self.rows(width).into_iter().enumerate() {
            let y = top + (number as f64 + 0.5) * SMALL * LEADING;
            for (entry, at) in row {
                entry.draw_sample(canvas, (left + at, y));
                let position = (left + at + SAMPLE + GAP, y);
                canvas.text(&entry.name, position, font, Anchor::START);
            }
        }
    }
}

impl Entry {
    fn draw_sample(&self, canvas: &mut Canvas, (left, y): Point) {
        let Look { colour, marker, dash } = self.look;
        let (right, middle) = (left + SAMPLE, left + SAMPLE / 2.0);
        let half = SMALL * 0.36;
        let corners = [(left, y - half), (right, y - half), (right, y + half), (left, y + half)];
        match self.sample {
            Sample::Line => canvas.line(&[(left, y), (right, y)], colour, LINE, dash),
            Sample::Points => canvas.marker((middle, y), marker, colour),
            Sample::Both => {
                canvas.line(&[(left, y), (right, y)], colour, LINE, dash);
                canvas.marker((middle, y), marker, colour);
            }
            Sample::Surface => canvas.surface(&corners, colour, 0.25),
            Sample::Bars => {
                canvas.surface(&corners, colour, 0.45);
                let closed: Vec<_> = corners.into_iter().chain([corners[0]]).collect();
                canvas.line(&closed, colour, HAIR * 1.5, dash);
            }
            Sample::Ranges => {
                canvas.line(&[(middle, y - half), (middle, y + half)], colour, LINE, &[]);
                for end in [y - half, y + half] {
                    canvas.line(&[(middle - 2.0, end), (middle + 2.0, end)], colour, LINE, &[]);
                }
            }
        }
    }
}
