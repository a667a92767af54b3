//! Calls by call site and call path ([`SiteMetrics`]), for the screen and the document.

use serde::Serialize;

use super::tables::NEGLIGIBLE_SHARE;
use crate::metrics::{Frame, PathRow, SiteMetrics, SiteRow};
use crate::plain_text::printable;
use crate::present::code_place::{code_place, offset};
use crate::present::context::plural;
use crate::present::quantity::{count, percent, seconds};
use crate::present::table::Table;

/// Maximum number of rows shown.
const MAX_ROWS: usize = 6;

/// A table of the call sites that took most time. `total_s` is the time of all threads, with its title.
pub(super) fn lines(sites: &SiteMetrics, (total_s, title): (f64, &str)) -> Vec<String> {
    let is_notable = |row: &&SiteRow| row.time_s >= NEGLIGIBLE_SHARE * total_s;
    // Rows are ordered by time.
    let notable = sites.rows.iter().take_while(is_notable).count().max(1);
    let shown = &sites.rows[..sites.rows.len().min(MAX_ROWS).min(notable)];
    let share = |row: &SiteRow| match total_s > 0.0 {
        true => percent(row.time_s / total_s),
        false => "-".to_owned(),
    };
    let mut table = Table::default();
    table.left("function", shown.iter().map(|row| row.function.clone()));
    table.right("count", shown.iter().map(|row| count(row.count)));
    table.right("time", shown.iter().map(|row| seconds(row.time_s)));
    table.right(title, shown.iter().map(share));
    table.right("max", shown.iter().map(|row| seconds(row.max_s)));
    table.right("ranks", shown.iter().map(|row| row.ranks.to_string()));
    table.left("called from", shown.iter().map(|row| printable(&place(row))));
    let mut lines = table.lines();
    if sites.rows.len() > shown.len() {
        let more = plural(sites.rows.len() - shown.len(), "more site");
        lines.push(format!("{more} (--json lists all)"));
    }
    lines
}

/// A table of the call paths that took most time. `total_s` is the time of all threads, with its title.
pub(super) fn path_lines(sites: &SiteMetrics, (total_s, title): (f64, &str)) -> Vec<String> {
    let shown = &sites.paths[..sites.paths.len().min(MAX_ROWS)];
    if shown.is_empty() {
        return Vec::new();
    }
    let share = |row: &PathRow| match total_s > 0.0 {
        true => percent(row.time_s / total_s),
        false => "-".to_owned(),
    };
    let mut table = Table::default();
    table.left("function", shown.iter().map(|row| row.function.clone()));
    table.right("count", shown.iter().map(|row| count(row.count)));
    table.right("time", shown.iter().map(|row| seconds(row.time_s)));
    table.right(title, shown.iter().map(share));
    table.right("ranks", shown.iter().map(|row| row.ranks.to_string()));
    table.left("long calls came through", shown.iter().map(|row| printable(&path(&row.frames))));
    let mut lines = table.lines();
    if sites.paths.len() > shown.len() {
        lines.push(format!("{} more paths (--json lists all)", sites.paths.len() - shown.len()));
    }
    lines
}

/// Maximum number of functions of a path shown; the outermost and the innermost ones are kept.
const MAX_FUNCTIONS: usize = 6;

/// `main > solve > exchange`.
fn path(frames: &[Frame]) -> String {
    let name = |frame: &Frame| match &frame.place.function {
        Some(function) => function.clone(),
        None => offset(&frame.module, frame.address),
    };
    let mut names: Vec<String> = frames.iter().rev().map(name).collect();
    if names.len() > MAX_FUNCTIONS {
        names.splice(1..names.len() + 2 - MAX_FUNCTIONS, ["...".to_owned()]);
    }
    names.join(" > ")
}

/// The place of a call site in the source, as far as known.
pub(in crate::present) fn place(row: &SiteRow) -> String {
    code_place(&row.module, row.address, &row.place)
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
