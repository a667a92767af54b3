//! Calls that are kept only as totals ([`TotalsMetrics`]), on the screen.

use trace_format::totals::PeerClass;

use crate::metrics::{Bin, TotalsMetrics, TotalsRow};

use crate::present::quantity::{count, seconds, with_prefix};
use crate::present::table::{self, Table};

/// Maximum number of rows shown.
const MAX_ROWS: usize = 16;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A table of the rows that took most time, with the distribution of durations as bars.
pub(super) fn lines(totals: &TotalsMetrics) -> Vec<String> {
    let shown = &totals.rows[..totals.rows.len().min(MAX_ROWS)];
    let mut table = Table::default();
    table.left("function", shown.iter().map(|row| row.function.clone()));
    table.left("peer", shown.iter().map(|row| peer(row).to_owned()));
    table.right("up to", shown.iter().map(size));
    table.right("count", shown.iter().map(|row| count(row.count)));
    table.right("time", shown.iter().map(|row| seconds(row.time_s)));
    table.right("min", shown.iter().map(|row| seconds(row.min_s)));
    table.right("mean", shown.iter().map(|row| seconds(row.time_s / row.count.max(1) as f64)));
    table.right("max", shown.iter().map(|row| seconds(row.max_s)));
    table.left("calls by duration, min to max (bars: factors of 2)", shown.iter().map(bars));
    let mut lines = table.lines();
    lines.extend(table::more(totals.rows.len() - shown.len(), "row"));
    lines
}

fn peer(row: &TotalsRow) -> &'static str {
    match row.peer {
        None => "any",
        Some(PeerClass::None) => "-",
        Some(class) => class.name(),
    }
}

fn size(row: &TotalsRow) -> String {
    match (row.most_bytes, row.sent.max(row.received)) {
        (Some(0), _) => "-".to_owned(),
        (Some(most), _) => with_prefix(most as f64) + "B",
        (None, _) => "any".to_owned(),
    }
}

/// A bar for each bin, from the shortest duration to the longest; its height is the logarithm of the number of calls.
fn bars(row: &TotalsRow) -> String {
    let most = row.histogram.iter().map(|bin| bin.count).max().unwrap_or(1);
    let height = |count: u64| {
        let share = (count as f64 + 1.0).log2() / (most as f64 + 1.0).log2();
        BARS[((share * 8.0).ceil() as usize).clamp(1, BARS.len()) - 1]
    };
    let mut text = String::new();
    let mut previous_s: Option<f64> = None;
    for &Bin { from_s, count } in &row.histogram {
        let skipped = previous_s
            .map_or(0, |previous| ((from_s / previous).log2().round() as usize).max(1) - 1);
        // A cell may be broken at a blank, but not at this one.
        text.extend(std::iter::repeat_n('\u{a0}', skipped));
        text.push(height(count));
        previous_s = Some(from_s);
    }
    text
}
