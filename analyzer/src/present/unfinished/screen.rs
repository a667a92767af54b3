//! Ranks that did not finish, on the screen: their positions and their last calls.

use std::collections::BTreeMap;

use super::words::{call_text, location_text, process_word, waits_text};
use crate::metrics::{ThreadPosition, Unfinished};

use crate::present::context::number_list;
use crate::present::quantity::seconds;
use crate::present::table;
use crate::tables::{Cell, Table};

/// Maximum number of rows of the table.
const MAX_ROWS: usize = 20;
/// Maximum number of ranks whose last calls are shown.
const MAX_LAST_CALL_RANKS: usize = 4;

/// What all ranks in a row of the table have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    location: String,
    waits: String,
    process: &'static str,
}

/// Ranks with the same position.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::present) struct Position {
    /// The ranks, `0-3,8`.
    pub ranks: String,
    /// The call that they are in, with its arguments, or that they are outside MPI.
    pub location: String,
    /// When the earliest of them came there, global seconds.
    pub since_s: f64,
    /// For how long, as text.
    pub lasted: String,
    /// The ranks that they wait for.
    pub waits_for: String,
    /// State of their processes; empty if unknown.
    pub process: &'static str,
}

/// At most `most` positions, ordered by their first ranks, and how many more there are.
pub(in crate::present) fn positions(
    unfinished: &Unfinished,
    most: usize,
) -> (Vec<Position>, usize) {
    let mut rows: BTreeMap<Row, (Vec<u32>, f64)> = BTreeMap::new();
    for rank in &unfinished.ranks {
        let position = rank.position();
        let inside = position.and_then(ThreadPosition::inside);
        let since_s = match (inside, position.and_then(|position| position.last_calls.last())) {
            (Some(call), _) => call.begin_s,
            (None, Some(last)) => last.end_s.unwrap_or(last.begin_s),
            (None, None) => rank.last_stamp_s,
        };
        let row = Row {
            location: location_text(rank),
            waits: position
                .and_then(|p| p.waits_for.as_ref())
                .map_or("-".into(), |waits| waits_text(waits, unfinished)),
            process: process_word(rank.process),
        };
        let (ranks, earliest) = rows.entry(row).or_insert((Vec::new(), f64::INFINITY));
        ranks.push(rank.rank);
        *earliest = earliest.min(since_s);
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, (ranks, _))| ranks[0]);
    let left_out = rows.len().saturating_sub(most);
    rows.truncate(most);
    let positions = rows.into_iter().map(|(row, (ranks, since_s))| Position {
        ranks: number_list(ranks),
        location: row.location,
        since_s,
        lasted: lasted(unfinished, since_s),
        waits_for: row.waits,
        process: row.process,
    });
    (positions.collect(), left_out)
}

/// Positions, a row each.
pub(in crate::present) fn position_table(positions: &[Position]) -> Table {
    let rows = || positions.iter();
    let text = |text: &str| Cell::Text(text.to_owned());
    let mut table = Table::default();
    table.add("ranks", "rank", rows().map(|row| text(&row.ranks)));
    table.add("position", "position", rows().map(|row| text(&row.location)));
    table.add("since_s", "since", rows().map(|row| Cell::Seconds(row.since_s)));
    table.add("lasted", "for", rows().map(|row| text(&row.lasted)));
    table.add("waits_for", "waits for", rows().map(|row| text(&row.waits_for)));
    if rows().any(|row| !row.process.is_empty()) {
        table.add("process", "process", rows().map(|row| text(row.process)));
    }
    table.mark("ranks", rows().map(|row| text(&row.ranks)));
    table
}

/// The table of positions; ranks with the same position share a row.
pub(in crate::present) fn position_lines(unfinished: &Unfinished) -> Vec<String> {
    let (rows, left_out) = positions(unfinished, MAX_ROWS);
    let mut lines = table::lines(&position_table(&rows));
    lines.extend(table::more(left_out, "position"));
    lines
}

/// The time from a moment to the end, or to now while the program runs.
pub(in crate::present) fn lasted(unfinished: &Unfinished, since_s: f64) -> String {
    let lasted = seconds((unfinished.until_s - since_s).max(0.0));
    if unfinished.at_least { format!("at least {lasted}") } else { lasted }
}

/// Last calls of the ranks that matter most: those that others wait for, those in circular waits, then the lowest.
pub(in crate::present) fn last_call_lines(unfinished: &Unfinished) -> Vec<String> {
    let causes = unfinished.causes.iter().map(|cause| cause.rank);
    let circles = unfinished.deadlocks.iter().flat_map(|deadlock| deadlock.ranks.iter().copied());
    let all = unfinished.ranks.iter().map(|rank| rank.rank);
    let mut shown: Vec<u32> = Vec::new();
    for rank in causes.chain(circles).chain(all) {
        if shown.len() < MAX_LAST_CALL_RANKS && !shown.contains(&rank) {
            shown.push(rank);
        }
    }
    shown.sort_unstable();
    let ranks = shown.into_iter().filter_map(|rank| unfinished.rank(rank));
    let lines = ranks.filter_map(|rank| {
        let calls = &rank.position()?.last_calls;
        // Merges equal calls in a row; shows the time of the last.
        let mut merged: Vec<(String, usize, f64)> = Vec::new();
        for call in calls {
            let text = call_text(call);
            match merged.last_mut().filter(|(other, ..)| *other == text) {
                Some((_, times, at_s)) => (*times, *at_s) = (*times + 1, call.begin_s),
                None => merged.push((text, 1, call.begin_s)),
            }
        }
        let calls: Vec<String> = merged
            .into_iter()
            .map(|(text, times, at_s)| match times {
                1 => format!("{text} at {}", seconds(at_s)),
                _ => format!("{text} x{times}, last at {}", seconds(at_s)),
            })
            .collect();
        Some(format!("rank {}: {}", rank.rank, calls.join("; ")))
    });
    lines.filter(|line| !line.ends_with(": ")).collect()
}
