//! Drawing primitives of an SVG document. Lengths are in points.

use std::fmt::{Arguments, Write as _};

use super::style::{Colour, HAIR, MARKER, Marker};
use crate::plain_text::printable;
use crate::present::svg::escaped;

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

/// Horizontal alignment of text relative to its position.
#[derive(Debug, Clone, Copy)]
pub(super) enum Across {
    Left,
    Middle,
    Right,
}

/// Vertical alignment of text relative to its position.
#[derive(Debug, Clone, Copy)]
pub(super) enum Up {
    Top,
    Middle,
    Bottom,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor(pub Across, pub Up);

impl Anchor {
    pub const START: Self = Self(Across::Left, Up::Middle);
    pub const END: Self = Self(Across::Right, Up::Middle);
    pub const MIDDLE: Self = Self(Across::Middle, Up::Middle);
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Font {
    pub size: f64,
    pub colour: Colour,
    pub bold: bool,
    /// Rotated by 90°, reading upwards.
    pub upwards: bool,
}

/// The elements of a document that is being drawn.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    elements: String,
}

impl Canvas {
    pub fn into_elements(self) -> String {
        self.elements
    }

    fn element(&mut self, element: Arguments) {
        // Writing to a String does not fail.
        let _ = writeln!(self.elements, "{element}");
    }

    pub fn line(&mut self, points: &[Point], colour: Colour, width: f64, dash: &[f64]) {
        let dash = match dash {
            [] => String::new(),
            _ => {
                let lengths: Vec<String> = dash.iter().map(f64::to_string).collect();
                format!(" stroke-dasharray=\"{}\"", lengths.join(" "))
            }
        };
        self.element(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.2}\"{dash}/>",
            positions(points)
        ));
    }

    pub fn surface(&mut self, points: &[Point], colour: Colour, opacity: f64) {
        self.element(format_args!(
            "<polygon points=\"{}\" fill=\"{colour}\" fill-opacity=\"{opacity}\"/>",
            positions(points)
        ));
    }

    pub fn marker(&mut self, (x, y): Point, marker: Marker, colour: Colour) {
        let m = MARKER;
        let at = |points: &[(f64, f64)]| -> Vec<Point> {
            points.iter().map(|(dx, dy)| (x + dx * m, y + dy * m)).collect()
        };
        let strokes = |this: &mut Self, lines: [[(f64, f64); 2]; 2]| {
            lines.iter().for_each(|line| this.line(&at(line), colour, 2.0 * HAIR, &[]));
        };
        match marker {
            Marker::Circle => {
                self.element(format_args!(
                    "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{m}\" fill=\"{colour}\"/>"
                ));
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

    pub fn text(&mut self, text: &str, (x, y): Point, font: Font, anchor: Anchor) {
        let text = printable(text);
        if text.is_empty() {
            return;
        }
        let across = match anchor.0 {
            Across::Left => "start",
            Across::Middle => "middle",
            Across::Right => "end",
        };
        let down = match anchor.1 {
            Up::Top => "0.76em",
            Up::Middle => "0.5ex",
            Up::Bottom => "-0.5ex",
        };
        let weight = if font.bold { " font-weight=\"bold\"" } else { "" };
        let turn = match font.upwards {
            true => format!(" transform=\"rotate(-90 {x:.2} {y:.2})\""),
            false => String::new(),
        };
        self.element(format_args!(
            "<text x=\"{x:.2}\" y=\"{y:.2}\" dy=\"{down}\" text-anchor=\"{across}\" font-family=\"{FAMILY}\" \
             font-size=\"{}\"{weight} fill=\"{}\"{turn}>{}</text>",
            font.size,
            font.colour,
            escaped(&text)
        ));
    }
}

fn positions(points: &[Point]) -> String {
    let position = |(x, y): &Point| format!("{x:.2},{y:.2}");
    points.iter().map(position).collect::<Vec<_>>().join(" ")
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
}
