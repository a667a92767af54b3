//! Draws the axes of a panel with ticks, labels and grid, and tells how much room they need.

use crate::plain_text::printable;
use crate::present::svg::INK;

use super::canvas::{Across, Anchor, Area, Canvas, Font, Up, text_width};
use super::plot::{Axis, Panel, ReferenceLine};
use super::scale::{Scale, Tick};
use super::style::{GAP, GRID, HAIR, LEADING, SMALL, TEXT, TICK};

#[derive(Debug)]
pub(super) struct Axes<'a> {
    pub panel: &'a Panel,
    pub x: Scale,
    pub y: Scale,
}

const LABEL: Font = Font { size: TEXT, colour: INK, bold: false, upwards: false };
const NUMBER: Font = Font { size: SMALL, colour: INK, bold: false, upwards: false };

impl<'a> Axes<'a> {
    /// The axes of a panel, with limits from the data unless they are given.
    pub fn new(panel: &'a Panel) -> Self {
        let corners = panel.series.iter().flat_map(|series| series.marks.corners());
        let known = corners.filter(|(x, y)| !x.is_nan() && !y.is_nan());
        let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = known.unzip();
        for reference in &panel.references {
            match &reference.line {
                ReferenceLine::Horizontal(y) => ys.push(*y),
                ReferenceLine::Vertical(x) => xs.push(*x),
                // It only guides the eye and must not widen the axes.
                ReferenceLine::Proportional(_) => {}
            }
        }
        xs.extend(panel.x.names.iter().map(|(at, _)| *at));
        ys.extend(panel.y.names.iter().map(|(at, _)| *at));
        Self {
            panel,
            x: Scale::new(&panel.x, xs.into_iter()),
            y: Scale::new(&panel.y, ys.into_iter()),
        }
    }

    /// Room left of the plot.
    pub fn left(&self) -> f64 {
        let ticks = ticks(&self.panel.y, &self.y, 6);
        let widest = ticks.iter().map(|t| text_width(&t.label, SMALL)).fold(0.0, f64::max);
        let title = if title(&self.panel.y).is_empty() { 0.0 } else { TEXT * LEADING + GAP };
        title + widest + TICK + GAP
    }

    /// Room below the plot.
    pub fn below(&self) -> f64 {
        let title = if title(&self.panel.x).is_empty() { 0.0 } else { TEXT * LEADING + GAP * 0.5 };
        TICK + GAP * 0.5 + SMALL * LEADING + title
    }

    /// Draws grid, ticks, labels and frame around the plot.
    pub fn draw(&self, canvas: &mut Canvas, plot: &Area, left_room: f64) {
        let fits = (plot.width() / (SMALL * 5.0)).floor().max(2.0) as usize;
        for (is_labelled, tick) in
            spaced(ticks(&self.panel.x, &self.x, fits.min(8)), &self.x, plot.width())
        {
            let Some(position) = self.x.position(tick.value) else { continue };
            let x = plot.left + position * plot.width();
            if self.panel.x.names.is_empty() {
                canvas.line(&[(x, plot.top), (x, plot.bottom)], GRID, HAIR * 0.6, &[]);
            }
            canvas.line(&[(x, plot.bottom), (x, plot.bottom + TICK)], INK, HAIR, &[]);
            if is_labelled {
                let position = (x, plot.bottom + TICK + GAP * 0.5);
                canvas.text(&tick.label, position, NUMBER, Anchor(Across::Middle, Up::Top));
            }
        }
        let fits = (plot.height() / (SMALL * 2.2)).floor().clamp(2.0, 6.0) as usize;
        for tick in ticks(&self.panel.y, &self.y, fits) {
            let Some(position) = self.y.position(tick.value) else { continue };
            let y = plot.bottom - position * plot.height();
            if self.panel.y.names.is_empty() {
                canvas.line(&[(plot.left, y), (plot.right, y)], GRID, HAIR * 0.6, &[]);
            }
            canvas.line(&[(plot.left - TICK, y), (plot.left, y)], INK, HAIR, &[]);
            canvas.text(&tick.label, (plot.left - TICK - GAP * 0.5, y), NUMBER, Anchor::END);
        }
        for position in self.x.small_ticks().iter().filter_map(|value| self.x.position(*value)) {
            let x = plot.left + position * plot.width();
            canvas.line(&[(x, plot.bottom), (x, plot.bottom + TICK * 0.6)], INK, HAIR * 0.7, &[]);
        }
        for position in self.y.small_ticks().iter().filter_map(|value| self.y.position(*value)) {
            let y = plot.bottom - position * plot.height();
            canvas.line(&[(plot.left - TICK * 0.6, y), (plot.left, y)], INK, HAIR * 0.7, &[]);
        }
        let frame = [(plot.left, plot.top), (plot.left, plot.bottom), (plot.right, plot.bottom)];
        canvas.line(&frame, INK, HAIR, &[]);
        let middle = (plot.left + plot.right) / 2.0;
        let below = plot.bottom + TICK + GAP + SMALL * LEADING;
        let anchor = Anchor(Across::Middle, Up::Top);
        canvas.text(&title(&self.panel.x), (middle, below), LABEL, anchor);
        let upwards = Font { upwards: true, ..LABEL };
        let position = (plot.left - left_room + TEXT * 0.5, (plot.top + plot.bottom) / 2.0);
        canvas.text(&title(&self.panel.y), position, upwards, Anchor::MIDDLE);
    }
}

fn title(axis: &Axis) -> String {
    match (axis.label.is_empty(), axis.unit.is_empty()) {
        (_, true) => axis.label.clone(),
        (true, false) => axis.unit.clone(),
        (false, false) => format!("{} ({})", axis.label, axis.unit),
    }
}

fn ticks(axis: &Axis, scale: &Scale, most: usize) -> Vec<Tick> {
    if axis.names.is_empty() {
        return scale.ticks(most);
    }
    let within =
        |at: f64| scale.position(at).is_some_and(|position| (0.0..=1.0).contains(&position));
    let named = axis.names.iter().filter(|(at, _)| within(*at));
    named.map(|(at, name)| Tick { value: *at, label: printable(name) }).collect()
}

/// The ticks, each with whether its label is drawn: labels that would touch the previous one are not.
fn spaced(ticks: Vec<Tick>, scale: &Scale, width: f64) -> Vec<(bool, Tick)> {
    let mut free_from = f64::NEG_INFINITY;
    let spaced = ticks.into_iter().map(|tick| {
        let half = text_width(&tick.label, SMALL) / 2.0;
        let at = scale.position(tick.value).unwrap_or(0.0) * width;
        let fits = at - half >= free_from;
        if fits {
            free_from = at + half + GAP * 0.7;
        }
        (fits, tick)
    });
    spaced.collect()
}
