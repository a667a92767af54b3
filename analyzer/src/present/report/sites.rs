//! Calls by call site and call path ([`SiteMetrics`]), for the screen and the document.

use serde::Serialize;

use super::tables::NEGLIGIBLE_SHARE;
use crate::metrics::{Frame, Metrics, PathRow, SiteMetrics, SiteRow};
use crate::present::context::plural;
use crate::present::table;
use crate::tables::calls::{self, time_of_threads};

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
    if sites.rows.len() > shown.len() {
        let more = plural(sites.rows.len() - shown.len(), "more site");
        lines.push(format!("{more} (--json lists all)"));
    }
    lines
}

/// The call paths that took most time.
pub(super) fn path_lines(metrics: &Metrics, sites: &SiteMetrics) -> Vec<String> {
    let shown = &sites.paths[..sites.paths.len().min(MAX_ROWS)];
    let mut lines = table::lines(&calls::paths(metrics, shown));
    if sites.paths.len() > shown.len() {
        lines.push(format!("{} more paths (--json lists all)", sites.paths.len() - shown.len()));
    }
    lines
}

/// An item of the key `sites`.
#[derive(Debug, Serialize)]
pub(super) struct SiteDocument<'a> {
    function: &'a str,
    count: u64,
    time_s: f64,
    max_s: f64,
    ranks: usize,
    module: Option<&'a str>,
    address: u64,
    through_binding: bool,
    caller: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
}

impl<'a> SiteDocument<'a> {
    pub fn new(row: &'a SiteRow) -> Self {
        Self {
            function: &row.function,
            count: row.count,
            time_s: row.time_s,
            max_s: row.max_s,
            ranks: row.ranks,
            module: (!row.module.is_empty()).then_some(&row.module),
            address: row.address,
            through_binding: row.through_binding,
            caller: row.place.function.as_deref(),
            file: row.place.file.as_deref(),
            line: row.place.line,
        }
    }
}

/// An item of the key `paths`.
#[derive(Debug, Serialize)]
pub(super) struct PathDocument<'a> {
    function: &'a str,
    count: u64,
    time_s: f64,
    max_s: f64,
    ranks: usize,
    frames: Vec<FrameDocument<'a>>,
}

/// A function on a call path.
#[derive(Debug, Serialize)]
struct FrameDocument<'a> {
    module: Option<&'a str>,
    address: u64,
    function: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
}

impl<'a> PathDocument<'a> {
    pub fn new(row: &'a PathRow) -> Self {
        let frame = |frame: &'a Frame| FrameDocument {
            module: (!frame.module.is_empty()).then_some(&frame.module),
            address: frame.address,
            function: frame.place.function.as_deref(),
            file: frame.place.file.as_deref(),
            line: frame.place.line,
        };
        Self {
            function: &row.function,
            count: row.count,
            time_s: row.time_s,
            max_s: row.max_s,
            ranks: row.ranks,
            frames: row.frames.iter().map(frame).collect(),
        }
    }
}
