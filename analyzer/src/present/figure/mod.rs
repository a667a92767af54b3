//! Plots that can be printed in a paper: a [`Figure`] is plain data, which is drawn as an SVG document.
//!
//! All figures have one style: 8-point type at column width, thin axes, no decoration. Series can be told apart
//! without colour: colours suit colour-blind readers, and each series also has a marker shape or dash pattern of its
//! own. The same data give the same bytes, so that snapshot tests are possible. Text is escaped. Values that an axis
//! cannot show (not finite, or not positive on a logarithmic axis) are counted below the panel, never dropped silently.
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
mod plot;
mod scale;
mod style;

use super::svg;

pub use plot::{Axis, Figure, Marks, Panel, Reference, Series};
pub use style::Width;

impl Figure {
    /// One panel at column width.
    pub fn new(title: impl Into<String>, panel: Panel) -> Self {
        Self::grid(title, vec![panel], 1)
    }

    /// Small multiples in a grid, at column width for one column of panels, else at page width.
    pub fn grid(title: impl Into<String>, panels: Vec<Panel>, columns: usize) -> Self {
        let columns = columns.max(1);
        let width = if columns == 1 { Width::Column } else { Width::Page };
        Self { title: title.into(), panels, columns, width, aspect: 0.68 }
    }

    pub fn with_width(mut self, width: Width) -> Self {
        self.width = width;
        self
    }

    /// Sets the height of a panel's plot over its width, between 0.1 and 3.
    pub fn with_aspect(mut self, aspect: f64) -> Self {
        self.aspect = aspect;
        self
    }

    /// The figure as an SVG document with a white background.
    pub fn svg(&self) -> String {
        drawing::document(self)
    }

    /// The figure for an HTML page: without a background, and with type and axes in the page's text colour
    /// (`currentColor`).
    pub fn svg_for_page(&self) -> String {
        let ink = svg::INK;
        self.svg()
            .replacen(svg::BACKGROUND, "", 1)
            .replace(&format!("fill=\"{ink}\""), "fill=\"currentColor\"")
            .replace(&format!("stroke=\"{ink}\""), "stroke=\"currentColor\"")
    }
}

#[cfg(test)]
mod tests;
