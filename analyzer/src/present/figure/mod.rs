//! Figures that a paper can print: plain data come in ([`Figure`]), one SVG document goes out.
//!
//! One style for all: 8-point type at column width, thin axes, no decoration. What a series is must
//! be readable without colour, too: every series has a colour that colour-blind readers can tell
//! apart and, as second carrier, a marker shape or a dash pattern of its own. The same data give the
//! same bytes, so a figure can stand in a snapshot test. Text is escaped; what cannot be shown on an
//! axis (not finite, not positive on a logarithmic axis) is counted below the panel, never dropped
//! silently.
//!
//! ```
//! use gammachi_analyzer::present::figure::{Axis, Figure, Panel, Reference, Series};
//! let panel = Panel::new(Axis::log2("message size", "B"), Axis::log10("bandwidth", "GB/s"))
//!     .with(Series::line_and_points("same host", vec![(1.0, 0.01), (1024.0, 3.0)]))
//!     .with_reference(Reference::horizontal(6.4, "memory"));
//! let svg = Figure::new("Bandwidth", panel).svg();
//! assert!(svg.starts_with("<svg"));
//! ```

mod axes;
mod canvas;
mod drawing;
mod legend;
mod scale;
mod style;

pub use style::Width;

/// A figure: one panel, or small multiples in a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Above all panels; empty for none.
    pub title: String,
    /// Left to right, then top to bottom; all are drawn to one size.
    pub panels: Vec<Panel>,
    /// Panels beside one another; at least 1.
    pub columns: usize,
    /// How wide it is printed.
    pub width: Width,
    /// Height of a panel's plot over its width.
    pub aspect: f64,
}

/// Two axes and what is drawn between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Above the panel; empty for none.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// In drawing order; the legend has their order, too.
    pub series: Vec<Series>,
    /// Behind the series.
    pub references: Vec<Reference>,
    /// On top of all.
    pub annotations: Vec<Annotation>,
}

/// How values become lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleKind {
    /// In proportion.
    Linear,
    /// Powers of ten at equal distances.
    Log10,
    /// Powers of two at equal distances: sizes in bytes (`Ki`, `Mi`), ranks.
    Log2,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it shows, such as `elapsed time τ`.
    pub label: String,
    /// Unit, such as `s`; empty for a bare number.
    pub unit: String,
    /// How values become lengths.
    pub scale: ScaleKind,
    /// Fixed limits; `None` takes them from the data.
    pub range: Option<(f64, f64)>,
    /// Whether 0 must lie on a linear axis whose limits come from the data.
    pub from_zero: bool,
    /// Names at given values in place of numbers (bars, ranks); empty for numbers.
    pub names: Vec<(f64, String)>,
}

/// One set of data with a name in the legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// In the legend; empty leaves it out of it.
    pub name: String,
    /// What is drawn.
    pub marks: Marks,
    /// Which colour, marker and dash of the palette; `None` takes the next by order among the
    /// panel's series that have `None`. Series that belong together (points and their fit) share
    /// one.
    pub look: Option<usize>,
}

/// What a series draws; all coordinates are data.
#[derive(Debug, Clone, PartialEq)]
pub enum Marks {
    /// A line through (x, y); a value that is not finite breaks it.
    Line(Vec<(f64, f64)>),
    /// A marker at each (x, y).
    Points(Vec<(f64, f64)>),
    /// Both.
    LineAndPoints(Vec<(f64, f64)>),
    /// A surface between (x, lo) and (x, hi).
    Band(Vec<(f64, f64, f64)>),
    /// A vertical bar with caps from lo to hi at each (x, lo, hi): uncertainty, spread.
    Ranges(Vec<(f64, f64, f64)>),
    /// A surface from the axis (0, or the lower end of a logarithmic axis) up to y over
    /// (from, to, y): histograms and bar charts.
    Bars(Vec<(f64, f64, f64)>),
}

/// A line that is not data: a limit, an iso-efficiency line, a fit's asymptote.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Which line.
    pub line: ReferenceLine,
    /// Where it ends inside the panel; empty for none.
    pub label: String,
}

/// The ways a reference line runs.
#[derive(Debug, Clone, PartialEq)]
pub enum ReferenceLine {
    /// y is this.
    Horizontal(f64),
    /// x is this.
    Vertical(f64),
    /// y is so many times x: through the origin.
    Proportional(f64),
    /// Through these points.
    Curve(Vec<(f64, f64)>),
}

/// A few words at a point of the plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Where, data.
    pub at: (f64, f64),
    /// What it says.
    pub text: String,
}

impl Figure {
    /// One panel at column width.
    pub fn new(title: impl Into<String>, panel: Panel) -> Self {
        Self::grid(title, vec![panel], 1)
    }

    /// Small multiples, so many beside one another, at column width for one column of panels and at
    /// page width for more.
    pub fn grid(title: impl Into<String>, panels: Vec<Panel>, columns: usize) -> Self {
        let columns = columns.max(1);
        let width = if columns == 1 { Width::Column } else { Width::Page };
        Self { title: title.into(), panels, columns, width, aspect: 0.68 }
    }

    /// How wide it is printed.
    #[must_use]
    pub fn with_width(mut self, width: Width) -> Self {
        self.width = width;
        self
    }

    /// Height of a panel's plot over its width, between 0.1 and 3.
    #[must_use]
    pub fn with_aspect(mut self, aspect: f64) -> Self {
        self.aspect = aspect;
        self
    }

    /// The figure as an SVG document on white, black type.
    pub fn svg(&self) -> String {
        drawing::document(self)
    }

    /// The figure for a page that has its own background: no ground, and type and axes in the
    /// page's text colour (`currentColor`).
    pub fn svg_for_page(&self) -> String {
        let ink = style::INK_HEX;
        self.svg()
            .replacen(&drawing::ground(), "", 1)
            .replace(&format!("fill=\"{ink}\""), "fill=\"currentColor\"")
            .replace(&format!("stroke=\"{ink}\""), "stroke=\"currentColor\"")
    }
}

impl Panel {
    /// Without anything in it.
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

    /// Its title.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Adds a series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a reference line.
    #[must_use]
    pub fn with_reference(mut self, reference: Reference) -> Self {
        self.references.push(reference);
        self
    }

    /// Adds words at a point.
    #[must_use]
    pub fn with_annotation(mut self, x: f64, y: f64, text: impl Into<String>) -> Self {
        self.annotations.push(Annotation { at: (x, y), text: text.into() });
        self
    }
}

impl Axis {
    /// In proportion; limits from the data.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            unit: unit.into(),
            scale: ScaleKind::Linear,
            range: None,
            from_zero: false,
            names: Vec::new(),
        }
    }

    /// Powers of ten.
    pub fn log10(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: ScaleKind::Log10, ..Self::linear(label, unit) }
    }

    /// Powers of two.
    pub fn log2(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: ScaleKind::Log2, ..Self::linear(label, unit) }
    }

    /// With these limits; what lies outside is cut off.
    #[must_use]
    pub fn within(mut self, from: f64, to: f64) -> Self {
        self.range = Some((from, to));
        self
    }

    /// With 0 on it.
    #[must_use]
    pub fn from_zero(mut self) -> Self {
        self.from_zero = true;
        self
    }

    /// With names in place of numbers.
    #[must_use]
    pub fn named(mut self, names: Vec<(f64, String)>) -> Self {
        self.names = names;
        self
    }
}

impl Series {
    /// Of these marks, with the next look of the palette.
    pub fn new(name: impl Into<String>, marks: Marks) -> Self {
        Self { name: name.into(), marks, look: None }
    }

    /// A line.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(name, Marks::Line(points))
    }

    /// Markers.
    pub fn points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(name, Marks::Points(points))
    }

    /// A line with markers.
    pub fn line_and_points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(name, Marks::LineAndPoints(points))
    }

    /// With this look of the palette, counted from 0.
    #[must_use]
    pub fn looking(mut self, look: usize) -> Self {
        self.look = Some(look);
        self
    }
}

impl Reference {
    /// y is this.
    pub fn horizontal(y: f64, label: impl Into<String>) -> Self {
        Self { line: ReferenceLine::Horizontal(y), label: label.into() }
    }

    /// x is this.
    pub fn vertical(x: f64, label: impl Into<String>) -> Self {
        Self { line: ReferenceLine::Vertical(x), label: label.into() }
    }

    /// y is so many times x.
    pub fn proportional(slope: f64, label: impl Into<String>) -> Self {
        Self { line: ReferenceLine::Proportional(slope), label: label.into() }
    }

    /// Through these points.
    pub fn curve(points: Vec<(f64, f64)>, label: impl Into<String>) -> Self {
        Self { line: ReferenceLine::Curve(points), label: label.into() }
    }
}

#[cfg(test)]
mod tests;
