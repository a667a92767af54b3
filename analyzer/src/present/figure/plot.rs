//! A figure: panels with axes, series and references.

use super::style::Width;

/// A figure: one panel, or small multiples in a grid.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Figure {
    /// Title above all panels; empty for none.
    pub title: String,
    /// Left to right, then top to bottom, all of one size.
    pub panels: Vec<Panel>,
    /// Number of panels side by side, at least 1.
    pub columns: usize,
    pub width: Width,
    /// Height of a panel's plot over its width.
    pub aspect: f64,
}

/// Two axes and what is drawn between them.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Panel {
    /// Title above the panel; empty for none.
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    /// In the order of drawing and of the legend.
    pub series: Vec<Series>,
    /// Drawn behind the series.
    pub references: Vec<Reference>,
    /// Drawn on top of everything.
    pub annotations: Vec<Annotation>,
}

/// How values map to lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleKind {
    /// Lengths are proportional to values.
    Linear,
    /// Powers of ten at equal distances.
    Log10,
    /// Powers of two at equal distances: sizes in bytes (`Ki`, `Mi`), ranks.
    Log2,
}

#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Axis {
    /// The quantity, such as `elapsed time τ`.
    pub label: String,
    /// Unit, such as `s`; empty for a bare number.
    pub unit: String,
    /// How values map to lengths.
    pub scale: ScaleKind,
    /// Fixed limits; `None` takes them from the data.
    pub range: Option<(f64, f64)>,
    /// Whether a linear axis whose limits come from the data must include 0.
    pub from_zero: bool,
    /// Whether only whole numbers mean something (ranks, runs).
    pub whole: bool,
    /// Names shown at these values instead of numbers (for bars, ranks); empty for numbers.
    pub names: Vec<(f64, String)>,
}

/// One set of data with a name in the legend.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Series {
    /// Name in the legend; empty to leave it out.
    pub name: String,
    pub marks: Marks,
    /// Index of its colour, marker and dash in the palette; `None` takes the next one that no series of the panel with
    /// `None` has taken. Series that belong together (points and their fit) share one.
    pub look: Option<usize>,
}

/// The marks of a series, in data coordinates.
#[derive(Debug, Clone, PartialEq)]
pub enum Marks {
    /// A line through (x, y), broken at values that are not finite.
    Line(Vec<(f64, f64)>),
    /// A marker at each (x, y).
    Points(Vec<(f64, f64)>),
    LineAndPoints(Vec<(f64, f64)>),
    /// A surface between (x, lo) and (x, hi).
    Band(Vec<(f64, f64, f64)>),
    /// A vertical bar with caps from lo to hi at each (x, lo, hi): uncertainty, spread.
    Ranges(Vec<(f64, f64, f64)>),
    /// A surface from the axis (0, or the lower end of a logarithmic axis) up to y over
    /// (from, to, y): histograms and bar charts.
    Bars(Vec<(f64, f64, f64)>),
}

impl Marks {
    /// The positions that they cover: points, both ends of ranges, corners of bars.
    pub(super) fn corners(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Line(points) | Self::Points(points) | Self::LineAndPoints(points) => {
                points.clone()
            }
            Self::Band(points) | Self::Ranges(points) => {
                points.iter().flat_map(|&(x, lo, hi)| [(x, lo), (x, hi)]).collect()
            }
            Self::Bars(bars) => {
                bars.iter().flat_map(|&(from, to, y)| [(from, 0.0), (to, y)]).collect()
            }
        }
    }
}

/// A line that is not data: a limit, an iso-efficiency line.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub line: ReferenceLine,
    /// Label at its end inside the panel; empty for none.
    pub label: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ReferenceLine {
    Horizontal(f64),
    Vertical(f64),
    /// A line through the origin with this slope.
    Proportional(f64),
}

/// A few words at a point of the plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Position in data coordinates.
    pub at: (f64, f64),
    pub text: String,
}

impl Panel {
    pub fn new(x: Axis, y: Axis) -> Self {
        Self {
            title: String::new(),
            x,
            y,
            series: Vec::new(),
            references: Vec::new(),
            annotations: Vec::new(),
        }
    }

    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    pub fn with_reference(mut self, reference: Reference) -> Self {
        self.references.push(reference);
        self
    }

    pub fn with_annotation(mut self, x: f64, y: f64, text: impl Into<String>) -> Self {
        self.annotations.push(Annotation { at: (x, y), text: text.into() });
        self
    }
}

impl Axis {
    /// A linear axis with limits from the data.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            unit: unit.into(),
            scale: ScaleKind::Linear,
            range: None,
            from_zero: false,
            whole: false,
            names: Vec::new(),
        }
    }

    pub fn log10(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: ScaleKind::Log10, ..Self::linear(label, unit) }
    }

    pub fn log2(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: ScaleKind::Log2, ..Self::linear(label, unit) }
    }

    /// Sets the limits; what lies outside is cut off.
    pub fn within(mut self, from: f64, to: f64) -> Self {
        self.range = Some((from, to));
        self
    }

    pub fn from_zero(mut self) -> Self {
        self.from_zero = true;
        self
    }

    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    pub fn named(mut self, names: Vec<(f64, String)>) -> Self {
        self.names = names;
        self
    }
}

impl Series {
    /// A series with the next look of the palette.
    pub fn new(name: impl Into<String>, marks: Marks) -> Self {
        Self { name: name.into(), marks, look: None }
    }

    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(name, Marks::Line(points))
    }

    pub fn points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(name, Marks::Points(points))
    }

    pub fn line_and_points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(name, Marks::LineAndPoints(points))
    }

    /// Sets its look: an index into the palette, from 0.
    pub fn with_look(mut self, look: usize) -> Self {
        self.look = Some(look);
        self
    }
}

impl Reference {
    pub fn horizontal(y: f64, label: impl Into<String>) -> Self {
        Self { line: ReferenceLine::Horizontal(y), label: label.into() }
    }

    pub fn vertical(x: f64, label: impl Into<String>) -> Self {
        Self { line: ReferenceLine::Vertical(x), label: label.into() }
    }

    /// A line through the origin with this slope.
    pub fn proportional(slope: f64, label: impl Into<String>) -> Self {
        Self { line: ReferenceLine::Proportional(slope), label: label.into() }
    }
}
