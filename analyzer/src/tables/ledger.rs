//! Remembered predictions, and what was measured since.

use crate::ledger::Standing;

use super::table::{Cell, Table};

/// Predictions, a row each.
pub fn predictions(standings: &[Standing]) -> Table {
    let rows = || standings.iter();
    let text = |text: &str| Cell::Text(text.to_owned());
    let date = |of: &Standing| Cell::Text(of.prediction.at.utc.chars().take(10).collect());
    let interval = |of: &Standing| of.prediction.lo_s.zip(of.prediction.hi_s);
    let between = |of: &Standing| Cell::or_nothing(interval(of), |(lo, hi)| Cell::Between(lo, hi));
    let measured = |of: &Standing| of.measured_s.map_or(text("not tested yet"), Cell::Seconds);
    let yes_or_no = |yes: bool| text(if yes { "yes" } else { "no" });
    let mut table = Table::default();
    table.add("id", "id", rows().map(|of| text(&of.prediction.id)));
    table.add("at", "when", rows().map(date));
    table.add("seconds", "predicted", rows().map(|of| Cell::Seconds(of.prediction.seconds)));
    table.add("interval", "90 %", rows().map(between));
    table.add("measured_s", "measured", rows().map(measured));
    table.add("error", "error", rows().map(|of| Cell::or_nothing(of.error, Cell::Excess)));
    let within = rows().map(|of| Cell::or_nothing(of.within_interval, yes_or_no));
    table.add("within_interval", "within interval", within);
    table
}
