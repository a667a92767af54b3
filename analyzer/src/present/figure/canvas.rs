//! Drawing primitives over plotters' SVG back end. Lengths are in points; because the back end takes whole numbers, a
//! point consists of several units.

use crate::plain_text::printable;
use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle,
};

use super::style::{HAIR, MARKER, Marker};

/// Units of the document per point.
pub(super) const UNITS: f64 = 20.0;

const FAMILY: &str = "Helvetica, Arial, Liberation Sans, sans-serif";

/// A position in points from the upper left corner.
pub(super) type Point = (f64, f64);

/// A rectangle: left, top, right, bottom, in points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Alignment of text relative to its position.
#[derive(Clone, Copy)]
pub(super) struct Anchor(pub HPos, pub VPos);

impl Anchor {
    pub const START: Self = Self(HPos::Left, VPos::Center);
    pub const END: Self = Self(HPos::Right, VPos::Center);
    pub const MIDDLE: Self = Self(HPos::Center, VPos::Center);
}

/// The look of text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Font {
    pub size: f64,
    pub colour: RGBColor,
    pub bold: bool,
    /// Rotated by 90°, reading upwards.
    pub upwards: bool,
}

/// A document that is being drawn.
pub(super) struct Canvas<'a> {
    backend: SVGBackend<'a>,
}

fn unit(point: f64) -> i32 {
    (point * UNITS).round() as i32
}

fn units((x, y): Point) -> (i32, i32) {
    (unit(x), unit(y))
}

impl<'a> Canvas<'a> {
    /// A canvas of this size in points that writes to an empty text.
    pub fn new(text: &'a mut String, (width, height): (f64, f64)) -> Self {
        let size = (unit(width).max(1) as u32, unit(height).max(1) as u32);
        Self { backend: SVGBackend::with_string(text, size) }
    }

    /// Ends the document. Results are ignored here and in all methods, because writing to a text does not fail.
    pub fn finish(mut self) {
        let _ = self.backend.present();
    }

    pub fn line(&mut self, points: &[Point], colour: RGBColor, width: f64, dash: &[f64]) {
        let style = ShapeStyle::from(colour).stroke_width(unit(width).max(1) as u32);
        for piece in dashed(points, dash) {
            let _ = match piece[..] {
                [from, to] => self.backend.draw_line(units(from), units(to), &style),
                _ => self.backend.draw_path(piece.into_iter().map(units), &style),
            };
        }
    }

    pub fn surface(&mut self, points: &[Point], colour: RGBColor, opacity: f64) {
        let style = ShapeStyle::from(colour.mix(opacity)).filled();
        let _ = self.backend.fill_polygon(points.iter().copied().map(units), &style);
    }

    pub fn marker(&mut self, (x, y): Point, marker: Marker, colour: RGBColor) {
        let m = MARKER;
        let at = |points: &[(f64, f64)]| -> Vec<Point> {
            points.iter().map(|(dx, dy)| (x + dx * m, y + dy * m)).collect()
        };
        let strokes = |this: &mut Self, lines: [[(f64, f64); 2]; 2]| {
            lines.iter().for_each(|line| this.line(&at(line), colour, 2.0 * HAIR, &[]));
        };
        match marker {
            Marker::Circle => {
                let style = ShapeStyle::from(colour).filled();
                let _ = self.backend.draw_circle(units((x, y)), unit(m) as u32, &style, true);
            }
            Marker::Square => {
                let corners = at(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]);
                self.surface(&corners, colour, 1.0);
            }
            Marker::Triangle => {
                self.surface(&at(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]), colour, 1.0);
            }
            Marker::Down => {
                self.surface(&at(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]), colour, 1.0);
            }
            Marker::Diamond => {
                let corners = at(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]);
                self.surface(&corners, colour, 1.0);
            }
            Marker::Cross => {
                strokes(self, [[(-1.0, -1.0), (1.0, 1.0)], [(-1.0, 1.0), (1.0, -1.0)]]);
            }
            Marker::Plus => {
                strokes(self, [[(-1.2, 0.0), (1.2, 0.0)], [(0.0, -1.2), (0.0, 1.2)]]);
            }
        }
    }

    pub fn text(&mut self, text: &str, position: Point, kind: Font, anchor: Anchor) {
        let text = printable(text);
        if text.is_empty() {
            return;
        }
        // The back end takes a line height as the size of type.
        let size = kind.size * UNITS * 1.24;
        let style = if kind.bold { FontStyle::Bold } else { FontStyle::Normal };
        let font = (FontFamily::Name(FAMILY), size, style);
        let font = plotters::style::IntoFont::into_font(font);
        let font = if kind.upwards { font.transform(FontTransform::Rotate270) } else { font };
        let style = TextStyle::from(font).color(&kind.colour).pos(Pos::new(anchor.0, anchor.1));
        let _ = self.backend.draw_text(&text, &style, units(position));
    }
}

/// Estimated width of a text in points; the viewer's font is not known.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' => 0.26,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '-' | '/' => 0.33,
        'm' | 'w' | 'M' | 'W' | '%' => 0.87,
        '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.36,
        c if c.is_uppercase() => 0.68,
        c if (c as u32) >= 0x2e80 => 1.0,
        _ => 0.55,
    };
    text.chars().map(width).sum::<f64>() * size
}

/// The pieces of a line that lie inside an area.
pub(super) fn clipped(points: &[Point], area: &Area) -> Vec<Vec<Point>> {
    let mut pieces: Vec<Vec<Point>> = Vec::new();
    for pair in points.windows(2) {
        let Some((from, to)) = clipped_segment(pair[0], pair[1], area) else { continue };
        match pieces.last_mut() {
            Some(piece) if piece.last() == Some(&from) => piece.push(to),
            _ => pieces.push(vec![from, to]),
        }
    }
    pieces
}

/// The part of a segment inside an area (Liang and Barsky 1984).
fn clipped_segment(a: Point, b: Point, area: &Area) -> Option<(Point, Point)> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut from, mut to) = (0.0f64, 1.0f64);
    for (step, room) in [
        (-dx, a.0 - area.left),
        (dx, area.right - a.0),
        (-dy, a.1 - area.top),
        (dy, area.bottom - a.1),
    ] {
        if step == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if step < 0.0 {
            from = from.max(room / step);
        } else {
            to = to.min(room / step);
        }
    }
    let at = |t: f64| match t {
        0.0 => a,
        1.0 => b,
        t => (a.0 + t * dx, a.1 + t * dy),
    };
    (from <= to).then(|| (at(from), at(to)))
}

/// Cuts a line into dashes; `dash` alternates the lengths of dashes and gaps.
fn dashed(points: &[Point], dash: &[f64]) -> Vec<Vec<Point>> {
    if dash.is_empty() || points.len() < 2 {
        return vec![points.to_vec()];
    }
    let mut pieces = Vec::new();
    let (mut index, mut left) = (0, dash[0]);
    let mut piece = vec![points[0]];
    for pair in points.windows(2) {
        let (mut a, b) = (pair[0], pair[1]);
        loop {
            let length = (b.0 - a.0).hypot(b.1 - a.1);
            // The loop must also end if a length is NaN.
            if length.is_nan() || length <= left {
                left -= length;
                if index % 2 == 0 {
                    piece.push(b);
                }
                break;
            }
            let t = left / length;
            a = (a.0 + t * (b.0 - a.0), a.1 + t * (b.1 - a.1));
            if index % 2 == 0 {
                piece.push(a);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![a];
            }
            index += 1;
            left = dash[index % dash.len()];
        }
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };

    #[test]
    fn lines_are_cut_at_the_area() {
        let pieces =
            clipped(&[(-5.0, 5.0), (5.0, 5.0), (5.0, 20.0), (8.0, 20.0), (8.0, 5.0)], &AREA);
        assert_eq!(
            pieces,
            [vec![(0.0, 5.0), (5.0, 5.0), (5.0, 10.0)], vec![(8.0, 10.0), (8.0, 5.0)]]
        );
        assert!(clipped(&[(-1.0, 0.0), (-1.0, 9.0)], &AREA).is_empty());
    }

    #[test]
    fn dashes_continue_around_corners() {
        let pieces = dashed(&[(0.0, 0.0), (3.0, 0.0), (3.0, 5.0)], &[4.0, 2.0]);
        assert_eq!(
            pieces,
            [vec![(0.0, 0.0), (3.0, 0.0), (3.0, 1.0)], vec![(3.0, 3.0), (3.0, 5.0)]]
        );
    }
}
