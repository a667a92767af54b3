//! Ranks that did not finish, on the screen: their positions and their last calls.

use std::collections::{BTreeMap, HashMap};

use super::words::{call_text, location_text, process_word, waits_text};
use crate::metrics::{ThreadPosition, Unfinished, UnfinishedRank};

use crate::present::context::number_list;
use crate::present::quantity::seconds;
use crate::present::table;
use crate::tables::{Cell, Table};

const MAX_ROWS: usize = 20;
/// Maximum number of ranks whose last calls are shown.
const MAX_LAST_CALL_RANKS: usize = 4;

/// What all ranks in a row of the table have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    /// The call that they are in, with its arguments, or that they are outside MPI.
    location: String,
    waits_for: String,
    /// State of their processes; empty if unknown.
    process: &'static str,
}

/// Ranks with the same position.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::present) struct Position {
    /// The ranks, `0-3,8`.
    ranks: String,
    row: Row,
    /// When the earliest of them came there, global seconds.
    since_s: f64,
    lasted: String,
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
            waits_for: awaited(rank, unfinished).unwrap_or_else(|| "-".to_owned()),
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
        row,
        since_s,
        lasted: lasted(unfinished, since_s),
    });
    (positions.collect(), left_out)
}

/// Whom a rank waits for.
fn awaited(rank: &UnfinishedRank, unfinished: &Unfinished) -> Option<String> {
    Some(waits_text(rank.position()?.waits_for.as_ref()?, unfinished))
}

/// Whom each rank that did not finish waits for, where it waits for some.
pub(in crate::present) fn open_waits(unfinished: &Unfinished) -> HashMap<u32, String> {
    let each = unfinished.ranks.iter().filter_map(|rank| {
        let awaited =
            awaited(rank, unfinished).filter(|awaited| !awaited.is_empty() && awaited != "-")?;
        let one = awaited.parse::<u32>().map(|rank| format!("rank {rank}"));
        Some((rank.rank, one.unwrap_or(awaited)))
    });
    each.collect()
}

pub(in crate::present) fn position_table(positions: &[Position]) -> Table {
    let rows = || positions.iter();
    let text = |text: &str| Cell::Text(text.to_owned());
    let mut table = Table::default();
    table.add("ranks", "rank", rows().map(|row| text(&row.ranks)));
    table.add("position", "position", rows().map(|at| text(&at.row.location)));
    table.add("since_s", "since", rows().map(|row| Cell::Seconds(row.since_s)));
    table.add("lasted", "for", rows().map(|row| text(&row.lasted)));
    table.add("waits_for", "waits for", rows().map(|at| text(&at.row.waits_for)));
    if rows().any(|at| !at.row.process.is_empty()) {
        table.add("process", "process", rows().map(|at| text(at.row.process)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Metrics, Selection};
    use crate::synthetic_messages::on_world;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank};
    use crate::timeline::GlobalTimeline;
    use crate::trace::Run;

    #[test]
    fn all_ranks_of_a_list_too_long_for_a_line_wait() {
        // Every other rank waits, so that the list has no ranges.
        let rank = |number: u32| {
            let mut rank = SyntheticRank::level_1(number, 80, 100_000_000);
            if number.is_multiple_of(2) {
                rank.open_call_with("MPI_Recv", 2_500_000, on_world(1, 7, 8));
            }
            rank.killed();
            rank
        };
        let directory = RunDirectory::with_ranks(&(0..80).map(rank).collect::<Vec<_>>());
        let run = Run::open(directory.path()).unwrap();
        let metrics = Metrics::new(&run, &GlobalTimeline::new(&run), &Selection::Whole).unwrap();
        let waits = open_waits(metrics.unfinished.as_ref().unwrap());
        assert_eq!(waits.len(), 40);
        assert!(waits.iter().all(|(rank, whom)| rank % 2 == 0 && whom == "rank 1"), "{waits:?}");
    }
}
