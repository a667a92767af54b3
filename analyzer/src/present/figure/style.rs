//! The style of all figures: sizes, colours, markers and dashes. Lengths are in points (1/72 inch).

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Width {
    /// One column of a two-column paper, 88 mm.
    Column,
    /// The whole page, 180 mm.
    Page,
}

impl Width {
    pub(super) fn points(self) -> f64 {
        let millimetres = match self {
            Self::Column => 88.0,
            Self::Page => 180.0,
        };
        millimetres * 72.0 / 25.4
    }
}

/// Type size of labels, points.
pub(super) const TEXT: f64 = 7.5;
/// Type size of tick labels and of labels at the end of lines.
pub(super) const SMALL: f64 = 6.5;
/// Type size of titles.
pub(super) const TITLE: f64 = 8.5;
/// Line height over type size.
pub(super) const LEADING: f64 = 1.3;
/// Width of axis lines.
pub(super) const HAIR: f64 = 0.5;
/// Width of data lines.
pub(super) const LINE: f64 = 1.1;
/// Half a marker's size.
pub(super) const MARKER: f64 = 2.1;
/// Length of a tick.
pub(super) const TICK: f64 = 2.5;
/// Space between neighbours.
pub(super) const GAP: f64 = 3.0;

/// A colour as SVG writes it.
pub(super) type Colour = &'static str;

pub(super) const GRID: Colour = "#c8c8c8";
/// Colour of reference lines and their labels: a grey that is readable on white and on black.
pub(super) const REFERENCE: Colour = "#777777";

/// The palette of Okabe and Ito without its yellow (too light on white) and its black (the ink).
const COLOURS: [Colour; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Down,
    Plus,
}

const MARKERS: [Marker; 7] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Cross,
    Marker::Down,
    Marker::Plus,
];

/// Lengths of dashes and gaps in turn, points; empty for a solid line.
const DASHES: [&[f64]; 5] = [&[], &[5.0, 2.0], &[1.2, 1.6], &[6.0, 1.6, 1.2, 1.6], &[9.0, 2.5]];

/// Dash pattern of reference lines.
pub(super) const REFERENCE_DASH: &[f64] = &[2.5, 1.8];

/// The look of a series. The lengths of the lists have no common divisor, so that combinations repeat only after 210
/// series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    pub colour: Colour,
    pub marker: Marker,
    pub dash: &'static [f64],
}

impl Look {
    /// The look at an index into the palette.
    pub fn from_palette(number: usize) -> Self {
        Self {
            colour: COLOURS[number % COLOURS.len()],
            marker: MARKERS[number % MARKERS.len()],
            dash: DASHES[number % DASHES.len()],
        }
    }
}
