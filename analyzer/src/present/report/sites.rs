//! Calls by where the program made them: [`SiteMetrics`] comes in, lines for the terminal and a part of
//! the JSON document go out.

use serde::Serialize;

use crate::metrics::{SiteMetrics, SiteRow};
use crate::plain_text::printable;

use crate::present::quantity::{count, percent, seconds};
use crate::present::table::Table;

/// Rows shown.
const MOST_ROWS: usize = 6;

/// A table of the sites of most time. `total_s` is p·τ.
pub(super) fn lines(sites: &SiteMetrics, total_s: f64) -> Vec<String> {
    let shown = &sites.rows[..sites.rows.len().min(MOST_ROWS)];
    let share = |row: &SiteRow| match total_s > 0.0 {
        true => percent(row.time_s / total_s),
        false => "-".to_owned(),
    };
    let mut table = Table::default();
    table.left("function", shown.iter().map(|row| row.function.clone()));
    table.right("count", shown.iter().map(|row| count(row.count)));
    table.right("time", shown.iter().map(|row| seconds(row.time_s)));
    table.right("of p*tau", shown.iter().map(share));
    table.right("max", shown.iter().map(|row| seconds(row.max_s)));
    table.right("ranks", shown.iter().map(|row| row.ranks.to_string()));
    table.left("called from", shown.iter().map(|row| printable(&place(row))));
    let mut lines = table.lines();
    if sites.rows.len() > shown.len() {
        lines.push(format!("{} more sites (--json lists all)", sites.rows.len() - shown.len()));
    }
    lines
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `solve (heat.c:42)`, or as much of it as is known.
pub(in crate::present) fn place(row: &SiteRow) -> String {
    let module = match row.module.as_str() {
        "" => "unknown code",
        path => file_name(path),
    };
    let offset = format!("{module}+{:#x}", row.address);
    let line = match (&row.place.file, row.place.line) {
        (Some(file), Some(line)) => Some(format!("{}:{line}", file_name(file))),
        (Some(file), None) => Some(file_name(file).to_owned()),
        (None, _) => None,
    };
    match (&row.place.function, line) {
        (Some(function), Some(line)) => format!("{function} ({line})"),
        (Some(function), None) => format!("{function} ({offset})"),
        (None, Some(line)) => line,
        (None, None) => offset,
    }
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
