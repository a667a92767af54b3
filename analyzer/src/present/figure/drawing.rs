//! Draws a figure: first reserves room for every part, then draws the parts in order.

use crate::plain_text::printable;
use crate::present::svg::{BACKGROUND, INK, begin, escaped};

use super::axes::Axes;
use super::canvas::{Across, Anchor, Area, Canvas, Font, Point, Up, clipped, text_width};
use super::legend::{Legend, looks};
use super::plot::{Figure, Marks, Panel, Reference, ReferenceLine};
use super::style::{
    Colour, GAP, HAIR, LEADING, LINE, Look, REFERENCE, REFERENCE_DASH, SMALL, TEXT, TITLE,
};

const NOTE: Font = Font { size: SMALL, colour: INK, bold: false, upwards: false };
const HEADING: Font = Font { size: TITLE, colour: INK, bold: true, upwards: false };
const PANEL_HEADING: Font = Font { size: TEXT, colour: INK, bold: true, upwards: false };
const REFERENCE_NOTE: Font = Font { size: SMALL, colour: REFERENCE, bold: false, upwards: false };

/// Room around the plots, the same for all panels of a figure.
struct Room {
    width: f64,
    left: f64,
    right: f64,
    above: f64,
    below: f64,
    plot_height: f64,
}

/// The figure's SVG document.
pub(super) fn document(figure: &Figure) -> String {
    let width = figure.width.points();
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let axes: Vec<Axes> = figure.panels.iter().map(Axes::new).collect();
    let legends: Vec<Legend> = figure.panels.iter().map(Legend::new).collect();
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    // Panels with equal legends share one.
    let shared =
        legends.first().filter(|first| legends.len() > 1 && legends.iter().all(|l| l == *first));
    let panel_width = (width - 2.0 * GAP) / columns as f64;
    let left = largest(&mut axes.iter().map(Axes::left));
    let right = 3.0 * GAP;
    let plot_width = (panel_width - left - right).max(10.0);
    let own_legends = match shared {
        Some(_) => 0.0,
        None => largest(&mut legends.iter().map(|legend| legend.height(plot_width))),
    };
    let titled = figure.panels.iter().any(|panel| !panel.title.is_empty());
    let heading = if titled { TEXT * LEADING + GAP } else { 0.0 };
    let noted = axes.iter().zip(&figure.panels).any(|(axes, panel)| omitted(panel, axes) > 0);
    let room = Room {
        width: panel_width,
        left,
        right,
        above: heading + own_legends + GAP * 1.5,
        below: largest(&mut axes.iter().map(Axes::below))
            + if noted { SMALL * LEADING } else { 0.0 }
            + GAP,
        plot_height: plot_width * figure.aspect.clamp(0.1, 3.0),
    };
    let rows = figure.panels.len().div_ceil(columns);
    let figure_heading = if figure.title.is_empty() { 0.0 } else { TITLE * LEADING + GAP };
    let shared_height = shared.map_or(0.0, |legend| legend.height(width - 4.0 * GAP));
    let top = GAP + figure_heading + shared_height;
    let panel_height = room.above + room.plot_height + room.below;
    let height = top + rows as f64 * panel_height + GAP;
    let mut canvas = Canvas::default();
    canvas.text(&figure.title, (2.0 * GAP, GAP), HEADING, Anchor(Across::Left, Up::Top));
    if let Some(legend) = shared {
        legend.draw(&mut canvas, (2.0 * GAP, GAP + figure_heading), width - 4.0 * GAP);
    }
    for (number, (panel, axes)) in figure.panels.iter().zip(&axes).enumerate() {
        let corner = (
            GAP + (number % columns) as f64 * panel_width,
            top + (number / columns) as f64 * panel_height,
        );
        let legend = shared.is_none().then(|| &legends[number]);
        draw_panel(&mut canvas, panel, axes, legend, corner, &room);
    }
    with_header(&canvas.into_elements(), figure, (width, height))
}

/// Adds the printed size, a title and description for screen readers, and the background.
fn with_header(elements: &str, figure: &Figure, (width, height): (f64, f64)) -> String {
    let name = printable(&figure.title);
    let begin = begin(&format!("{width:.1}"), &format!("{height:.1}"), "", &name);
    let description = escaped(&printable(&description(figure)));
    format!("{begin}<desc>{description}</desc>\n{BACKGROUND}{elements}</svg>\n")
}

fn description(figure: &Figure) -> String {
    let panel = |panel: &Panel| {
        let names: Vec<&str> =
            panel.series.iter().map(|s| s.name.as_str()).filter(|name| !name.is_empty()).collect();
        let title = if panel.title.is_empty() { "" } else { ": " };
        format!(
            "{}{title}{} across, {} up; {}",
            panel.title,
            panel.x.label,
            panel.y.label,
            if names.is_empty() { "one series".into() } else { names.join(", ") }
        )
    };
    figure.panels.iter().map(panel).collect::<Vec<_>>().join(". ")
}

fn draw_panel(
    canvas: &mut Canvas,
    panel: &Panel,
    axes: &Axes,
    legend: Option<&Legend>,
    (left, top): Point,
    room: &Room,
) {
    let plot = Area {
        left: left + room.left,
        top: top + room.above,
        right: left + room.width - room.right,
        bottom: top + room.above + room.plot_height,
    };
    canvas.text(&panel.title, (plot.left, top), PANEL_HEADING, Anchor(Across::Left, Up::Top));
    if let Some(legend) = legend {
        let height = legend.height(plot.width());
        legend.draw(canvas, (plot.left, plot.top - GAP - height), plot.width());
    }
    axes.draw(canvas, &plot, room.left);
    let pen = Pen { axes, plot };
    pen.references(canvas, panel);
    let looks = looks(panel);
    let layers: [fn(&Marks) -> bool; 2] = [
        |m| matches!(m, Marks::Band(_) | Marks::Bars(_)),
        |m| !matches!(m, Marks::Band(_) | Marks::Bars(_)),
    ];
    for layer in layers {
        for (series, look) in panel.series.iter().zip(&looks).filter(|(s, _)| layer(&s.marks)) {
            pen.marks(canvas, &series.marks, *look);
        }
    }
    for annotation in &panel.annotations {
        pen.annotation(canvas, annotation.at, &annotation.text);
    }
    if panel.series.is_empty() {
        let middle = ((plot.left + plot.right) / 2.0, (plot.top + plot.bottom) / 2.0);
        canvas.text("no data", middle, NOTE, Anchor::MIDDLE);
    }
    let omitted = omitted(panel, axes);
    if omitted > 0 {
        let text = match omitted {
            1 => "1 value lies outside the axes".to_owned(),
            count => format!("{count} values lie outside the axes"),
        };
        let position = (plot.right, plot.bottom + room.below - GAP);
        canvas.text(&text, position, REFERENCE_NOTE, Anchor(Across::Right, Up::Bottom));
    }
}

/// The number of values that lie outside the axes. NaN is an intended gap and does not count.
fn omitted(panel: &Panel, axes: &Axes) -> usize {
    let within =
        |position: Option<f64>| position.is_some_and(|at| (-1e-6..=1.0 + 1e-6).contains(&at));
    let inside = |x: f64, y: f64| within(axes.x.position(x)) && within(axes.y.position(y));
    let is_value = |x: f64, y: f64| !x.is_nan() && !y.is_nan();
    let of_series = |marks: &Marks| match marks {
        Marks::Points(points) | Marks::LineAndPoints(points) => {
            points.iter().filter(|&&(x, y)| is_value(x, y) && !inside(x, y)).count()
        }
        Marks::Line(points) => {
            let is_outside =
                |x: f64, y: f64| axes.x.position(x).is_none() || axes.y.position(y).is_none();
            points.iter().filter(|&&(x, y)| is_value(x, y) && is_outside(x, y)).count()
        }
        Marks::Ranges(points) | Marks::Band(points) => {
            let is_outside = |x: f64, lo: f64, hi: f64| {
                !within(axes.x.position(x))
                    || axes.y.position(lo).is_none()
                    || axes.y.position(hi).is_none()
            };
            points
                .iter()
                .filter(|&&(x, lo, hi)| is_value(x, lo + hi) && is_outside(x, lo, hi))
                .count()
        }
        Marks::Bars(bars) => {
            let is_outside = |from: f64, to: f64, y: f64| {
                !y.is_finite() || !within(axes.x.position(from)) || !within(axes.x.position(to))
            };
            bars.iter()
                .filter(|&&(from, to, y)| is_value(from + to, y) && is_outside(from, to, y))
                .count()
        }
    };
    panel.series.iter().map(|series| of_series(&series.marks)).sum()
}

/// Draws data into a plot.
struct Pen<'a> {
    axes: &'a Axes<'a>,
    plot: Area,
}

impl Pen<'_> {
    fn position(&self, x: f64, y: f64) -> Option<Point> {
        let (across, up) = (self.axes.x.position(x)?, self.axes.y.position(y)?);
        let plot = &self.plot;
        Some((plot.left + across * plot.width(), plot.bottom - up * plot.height()))
    }

    fn inside(&self, (x, y): Point) -> bool {
        let plot = &self.plot;
        let tolerance = 0.01;
        (plot.left - tolerance..=plot.right + tolerance).contains(&x)
            && (plot.top - tolerance..=plot.bottom + tolerance).contains(&y)
    }

    /// The pieces of a line that the axes can show, clipped to the plot.
    fn stretches(&self, points: &[(f64, f64)]) -> Vec<Vec<Point>> {
        let positions: Vec<Option<Point>> =
            points.iter().map(|(x, y)| self.position(*x, *y)).collect();
        let whole = positions.split(Option::is_none);
        whole
            .map(|stretch| stretch.iter().flatten().copied().collect::<Vec<_>>())
            .flat_map(|stretch| clipped(&stretch, &self.plot))
            .collect()
    }

    fn line(&self, canvas: &mut Canvas, points: &[(f64, f64)], look: Look) {
        for stretch in self.stretches(points) {
            canvas.line(&stretch, look.colour, LINE, look.dash);
        }
    }

    fn points(&self, canvas: &mut Canvas, points: &[(f64, f64)], look: Look) {
        let positions = points.iter().filter_map(|(x, y)| self.position(*x, *y));
        for position in positions.filter(|position| self.inside(*position)) {
            canvas.marker(position, look.marker, look.colour);
        }
    }

    fn clamped(&self, (x, y): Point) -> Point {
        let plot = &self.plot;
        (x.clamp(plot.left, plot.right), y.clamp(plot.top, plot.bottom))
    }

    fn marks(&self, canvas: &mut Canvas, marks: &Marks, look: Look) {
        match marks {
            Marks::Line(points) => self.line(canvas, points, look),
            Marks::Points(points) => self.points(canvas, points, look),
            Marks::LineAndPoints(points) => {
                self.line(canvas, points, look);
                self.points(canvas, points, look);
            }
            Marks::Band(points) => self.band(canvas, points, look.colour),
            Marks::Ranges(points) => {
                for &(x, lo, hi) in points {
                    let Some((from, to)) = self.position(x, lo).zip(self.position(x, hi)) else {
                        continue;
                    };
                    for piece in clipped(&[from, to], &self.plot) {
                        canvas.line(&piece, look.colour, LINE, &[]);
                    }
                    for end in [from, to].into_iter().filter(|end| self.inside(*end)) {
                        let cap = [(end.0 - 2.0, end.1), (end.0 + 2.0, end.1)];
                        canvas.line(&cap, look.colour, LINE, &[]);
                    }
                }
            }
            Marks::Bars(bars) => self.bars(canvas, bars, look),
        }
    }

    fn band(&self, canvas: &mut Canvas, points: &[(f64, f64, f64)], colour: Colour) {
        let positions: Vec<_> = points
            .iter()
            .map(|&(x, lo, hi)| self.position(x, lo).zip(self.position(x, hi)))
            .collect();
        for stretch in positions.split(Option::is_none).filter(|stretch| stretch.len() > 1) {
            let within =
                |position: &Point| (self.plot.left..=self.plot.right).contains(&position.0);
            let ends = stretch.iter().flatten().filter(|(low, _)| within(low));
            let (low, high): (Vec<Point>, Vec<Point>) = ends.copied().unzip();
            let outline: Vec<Point> =
                low.into_iter().chain(high.into_iter().rev()).map(|p| self.clamped(p)).collect();
            canvas.surface(&outline, colour, 0.25);
        }
    }

    fn bars(&self, canvas: &mut Canvas, bars: &[(f64, f64, f64)], look: Look) {
        let baseline = self.axes.y.baseline();
        for &(from, to, y) in bars {
            // A logarithmic axis cannot show a bar without height.
            let Some((a, b)) = self.position(from, baseline).zip(self.position(to, y)) else {
                continue;
            };
            let (a, b) = (self.clamped(a), self.clamped(b));
            if a.0 == b.0 || a.1 == b.1 {
                continue;
            }
            canvas.surface(&[a, (a.0, b.1), b, (b.0, a.1)], look.colour, 0.45);
            let outline = [a, (a.0, b.1), b, (b.0, a.1)];
            canvas.line(&outline, look.colour, HAIR * 1.2, look.dash);
        }
    }

    fn references(&self, canvas: &mut Canvas, panel: &Panel) {
        // Labels avoid horizontal lines.
        let mut taken: Vec<Area> =
            panel.references.iter().filter_map(|r| self.horizontal_line_area(r)).collect();
        for reference in &panel.references {
            let (x, y) = (&self.axes.x, &self.axes.y);
            let points: Vec<(f64, f64)> = match &reference.line {
                ReferenceLine::Horizontal(at) => vec![(x.value(0.0), *at), (x.value(1.0), *at)],
                ReferenceLine::Vertical(at) => vec![(*at, y.value(0.0)), (*at, y.value(1.0))],
                // Many points, because a straight line is a curve if one axis is logarithmic.
                ReferenceLine::Proportional(slope) => (0..=64)
                    .map(|step| x.value(f64::from(step) / 64.0))
                    .map(|x| (x, slope * x))
                    .collect(),
            };
            let stretches = self.stretches(&points);
            for stretch in &stretches {
                canvas.line(stretch, REFERENCE, HAIR * 1.4, REFERENCE_DASH);
            }
            if let Some(stretch) = stretches.last().filter(|_| !reference.label.is_empty()) {
                let area = self.label_area(stretch, &reference.label, &taken);
                let position = (area.left, (area.top + area.bottom) / 2.0);
                canvas.text(&reference.label, position, REFERENCE_NOTE, Anchor::START);
                taken.push(area);
            }
        }
    }

    fn horizontal_line_area(&self, reference: &Reference) -> Option<Area> {
        let ReferenceLine::Horizontal(at) = reference.line else { return None };
        let (_, y) = self.position(self.axes.x.value(0.0), at)?;
        Some(Area { top: y - 0.5, bottom: y + 0.5, ..self.plot })
    }

    /// The area of a label near the end of a line and inside the plot. Moves back along the line to avoid other labels
    /// and data.
    fn label_area(&self, stretch: &[Point], label: &str, taken: &[Area]) -> Area {
        let (width, height) = (text_width(label, SMALL), SMALL * LEADING);
        let beside = |(x, y): Point| {
            let plot = &self.plot;
            let (first, last) = (stretch[0], stretch[stretch.len() - 1]);
            // A rising line that leaves through the top has free room on its right, like a steep one.
            let through_top = last.0 > first.0 && (last.1 - plot.top).abs() < 1.0;
            let steep = through_top || (last.1 - first.1).abs() > 2.0 * (last.0 - first.0).abs();
            // Left of a line that rises through the top, the label's lower edge is nearest to the line.
            let slope = (last.0 - first.0) / (first.1 - last.1).max(1.0);
            let lean = if through_top { height * slope } else { 0.0 };
            let left = match steep && x + GAP + width <= plot.right {
                true => x + GAP,
                false => x - width - GAP - lean,
            };
            let left = left.clamp(plot.left + 1.0, (plot.right - width).max(plot.left + 1.0));
            let above = y - height;
            let top = match steep || above < plot.top {
                true => y + 1.0,
                false => above,
            };
            let top = top.clamp(plot.top, plot.bottom - height);
            Area { left, top, right: left + width, bottom: top + height }
        };
        let length: f64 =
            stretch.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum();
        // Avoiding other labels matters more than avoiding data.
        let data = self.data_places();
        let overlap = |area: &Area| {
            let labels = taken.iter().filter(|other| other.overlaps(area)).count();
            let covered = data.iter().filter(|(x, y)| {
                (area.left..=area.right).contains(x) && (area.top..=area.bottom).contains(y)
            });
            1000 * labels + covered.count()
        };
        let back = |step: u32| along(stretch, length * (1.0 - 0.065 * f64::from(step)));
        let candidates = (0..14).map(|step| beside(back(step)));
        // Of equally good candidates, takes the first: the one nearest to the end.
        candidates.min_by_key(overlap).unwrap_or_else(|| beside((self.plot.right, self.plot.top)))
    }

    fn data_places(&self) -> Vec<Point> {
        let corners = self.axes.panel.series.iter().flat_map(|series| series.marks.corners());
        corners.filter_map(|(x, y)| self.position(x, y)).collect()
    }

    fn annotation(&self, canvas: &mut Canvas, (x, y): (f64, f64), text: &str) {
        let Some(position) = self.position(x, y).filter(|position| self.inside(*position)) else {
            return;
        };
        let to_left = position.0 + GAP + text_width(text, SMALL) > self.plot.right;
        let anchor = if to_left { Across::Right } else { Across::Left };
        let shift = if to_left { -GAP } else { GAP };
        let at = (position.0 + shift, (position.1 - GAP).max(self.plot.top + SMALL));
        canvas.text(text, at, NOTE, Anchor(anchor, Up::Bottom));
    }
}

/// The point of a line at a distance from its begin, measured along the line.
fn along(line: &[Point], length: f64) -> Point {
    let mut left = length;
    for pair in line.windows(2) {
        let step = (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1);
        if step >= left && step > 0.0 {
            let t = left / step;
            return (
                pair[0].0 + t * (pair[1].0 - pair[0].0),
                pair[0].1 + t * (pair[1].1 - pair[0].1),
            );
        }
        left -= step;
    }
    line.last().copied().unwrap_or_default()
}
