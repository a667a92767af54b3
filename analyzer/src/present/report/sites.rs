//! Calls by call site and call path ([`SiteMetrics`]), for the screen and the document.

use serde::Serialize;

use super::tables::NEGLIGIBLE_SHARE;
use crate::metrics::{Frame, Metrics, PathRow, SiteMetrics, SiteRow};
use crate::present::table;
use crate::tables::calls::{self, time_of_threads};
use crate::trace::symbols::SourceLocation;

/// Maximum number of rows shown.
const MAX_ROWS: usize = 6;

/// The call sites that took most time.
pub(super) fn lines(metrics: &Metrics, sites: &SiteMetrics) -> Vec<String> {
    let (total_s, _) = time_of_threads(metrics);
    let is_notable = |row: &&SiteRow| row.time_s >= NEGLIGIBLE_SHARE * total_s;
    // Rows are ordered by time.
    let notable = sites.rows.iter().take_while(is_notable).count().max(1);
    let shown = &sites.rows[..sites.rows.len().min(MAX_ROWS).min(notable)];
    let mut lines = table::lines(&calls::sites(metrics, shown));
    lines.extend(table::more(sites.rows.len() - shown.len(), "site"));
    lines
}

/// The call paths that took most time.
pub(super) fn path_lines(metrics: &Metrics, sites: &SiteMetrics) -> Vec<String> {
    let shown = &sites.paths[..sites.paths.len().min(MAX_ROWS)];
    let mut lines = table::lines(&calls::paths(metrics, shown));
    lines.extend(table::more(sites.paths.len() - shown.len(), "path"));
    lines
}

/// Calls of a function from a call site.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SiteDocument<'a> {
    #[serde(flatten)]
    row: &'a SiteRow,
    /// The calling function, by the module's symbols.
    caller: Option<&'a str>,
    /// Source file, with debug information.
    file: Option<&'a str>,
    /// Line in it.
    line: Option<u32>,
}

impl<'a> SiteDocument<'a> {
    pub fn new(row: &'a SiteRow) -> Self {
        let SourceLocation { function, file, line } = &row.place;
        Self { row, caller: function.as_deref(), file: file.as_deref(), line: *line }
    }
}

/// Calls of a function along a call path.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PathDocument<'a> {
    #[serde(flatten)]
    row: &'a PathRow,
    /// Innermost first, at most 64.
    frames: Vec<FrameDocument<'a>>,
}

/// A function on a call path.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FrameDocument<'a> {
    /// Program or library; null: unknown code.
    module: Option<&'a str>,
    /// Return address in it.
    address: u64,
    #[serde(flatten)]
    place: &'a SourceLocation,
}

impl<'a> PathDocument<'a> {
    pub fn new(row: &'a PathRow) -> Self {
        let frame = |Frame { module, address, place }: &'a Frame| FrameDocument {
            module: (!module.is_empty()).then_some(module),
            address: *address,
            place,
        };
        Self { row, frames: row.frames.iter().map(frame).collect() }
    }
}
