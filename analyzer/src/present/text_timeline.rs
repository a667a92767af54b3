//! Draws the timeline in a terminal.
//!
//! Each cell covers an interval of time and shows, by letter and colour, the kind of activity that took most of it.
//! Calls that took less are not drawn; a row of marks below the cells shows where they are.

use std::ops::Range;

use super::context::{plural, shortened};
use super::findings;
use super::paragraph::wrapped;
use super::quantity::seconds;
use crate::diagnosis::Diagnosis;
use crate::metrics::activity::{Activity, KINDS, Kind};
use crate::plain_text::printable;
use crate::trace::Run;

/// What the timeline shows, and in which size.
#[derive(Debug, Clone, PartialEq)]
pub struct TextTimeline {
    /// Global seconds.
    pub seconds: Range<f64>,
    /// Positions of rows in [`Activity::rows`].
    pub rows: Vec<usize>,
    pub columns: usize,
    pub colour: bool,
}

/// Maximum number of rows; of more, evenly spaced ones are shown.
pub const MAX_ROWS: usize = 64;

/// A kind's letter, and its number in the terminal's palette of 256 colours.
fn symbol(kind: Kind) -> (char, u8) {
    match kind {
        Kind::Own => ('-', 250),
        Kind::Compute => ('b', 74),
        Kind::Send => ('s', 214),
        Kind::Receive => ('r', 166),
        Kind::Wait => ('w', 175),
        Kind::Collective => ('c', 32),
        Kind::OneSided => ('o', 36),
        Kind::Io => ('f', 227),
        Kind::OtherMpi => ('m', 97),
        Kind::Tool => ('t', 245),
    }
}

/// The drawn timeline, ending in a line feed.
pub fn text(run: &Run, activity: &Activity, timeline: &TextTimeline) -> String {
    let every = timeline.rows.len().div_ceil(MAX_ROWS).max(1);
    let shown: Vec<usize> = timeline.rows.iter().copied().step_by(every).collect();
    let names: Vec<String> = shown.iter().map(|row| name(run, activity, *row)).collect();
    let gutter = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    let cells = timeline.columns.saturating_sub(gutter + 1).clamp(10, 400);
    let Range { start, end } = timeline.seconds;
    let mut text = ruler(start, end, gutter, cells);
    let mut used = [false; KINDS];
    let mut marked = false;
    for (row, name) in shown.iter().zip(&names) {
        text.push_str(&format!("{name:>gutter$} "));
        let at = |number: usize| start + (end - start) * number as f64 / cells as f64;
        let mut line: Vec<Cell> = (0..cells)
            .map(|number| cell(&activity.seconds(*row, at(number), at(number + 1))))
            .collect();
        if let Some((from, to)) = activity.summed_s {
            let is_summed = |number: &usize| {
                (from..to).contains(&at(*number)) || at(*number) < from && at(number + 1) > to
            };
            let first = (0..cells).find(is_summed).unwrap_or(cells);
            let last = (first..cells).find(|number| !is_summed(number)).unwrap_or(cells);
            let shown = activity.seconds(*row, from.max(start), to.min(end));
            line[first..last].copy_from_slice(&bar(&shown, last - first));
        }
        line.iter().for_each(|cell| push_cell(&mut text, *cell, timeline.colour, &mut used));
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
        if let Some(marks) = marks(&line) {
            marked = true;
            text.push_str(&format!("{:gutter$} {marks}\n", ""));
        }
    }
    text.push_str(&legend(&used, timeline.colour, gutter));
    if marked {
        text.push_str(&format!("{:gutter$} ' below a cell: it also contains shorter calls\n", ""));
    }
    if shown.len() < timeline.rows.len() {
        let left = timeline.rows.len() - shown.len();
        text.push_str(&format!(
            "{:gutter$} every {every}th of {} rows; {left} not shown, choose with --ranks\n",
            "",
            timeline.rows.len()
        ));
    }
    if let Some((from, to)) = activity.summed_s {
        text.push_str(&format!(
            "{:gutter$} from {} to {} calls are kept as totals: there is no timeline, bars show the shares\n",
            "",
            seconds(from.max(0.0)),
            seconds(to)
        ));
    }
    let cell_s = (end - start) / cells as f64;
    let bin_s = activity.bin_s();
    if bin_s > cell_s * 1.01 {
        text.push_str(&format!("{:gutter$} finest step {}\n", "", seconds(bin_s)));
    }
    text
}

/// A note for a timeline in which some calls are known only as totals.
pub(super) fn summed_note(summed_s: Option<(f64, f64)>) -> Option<String> {
    let (from, to) = summed_s?;
    Some(format!(
        "from {} to {} calls are kept as totals: their time by kind is drawn evenly; when each call was made is not known",
        seconds(from.max(0.0)),
        seconds(to)
    ))
}

fn name(run: &Run, activity: &Activity, row: usize) -> String {
    let row = &activity.rows[row];
    let hosts: std::collections::BTreeSet<&str> =
        run.ranks.iter().map(|rank| rank.file.header.host.as_str()).collect();
    let thread = if row.thread > 0 { format!(".{}", row.thread) } else { String::new() };
    match hosts.len() > 1 {
        true => {
            let host = &run.ranks[row.position].file.header.host;
            let host: String = shortened(&printable(host)).chars().take(12).collect();
            format!("{host} {}{thread}", row.rank)
        }
        false => format!("{}{thread}", row.rank),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    /// The row has no time here.
    Empty,
    /// The kind with the largest share, and whether the cell hides shorter calls.
    Mostly(Kind, bool),
}

fn cell(seconds: &[f64; KINDS]) -> Cell {
    let total: f64 = seconds.iter().sum();
    if total <= 0.0 {
        return Cell::Empty;
    }
    let largest = Kind::ALL.into_iter().max_by(|a, b| {
        // Of equal seconds, the first kind wins.
        seconds[*a as usize]
            .total_cmp(&seconds[*b as usize])
            .then((*b as usize).cmp(&(*a as usize)))
    });
    let largest = largest.unwrap_or(Kind::Own);
    let is_own = |kind: &Kind| matches!(kind, Kind::Own | Kind::Compute);
    let others = Kind::ALL.into_iter().filter(|kind| *kind != largest && !is_own(kind));
    let hidden = others.map(|kind| seconds[kind as usize]).fold(0.0, f64::max) > 0.0;
    Cell::Mostly(largest, hidden)
}

fn push_cell(text: &mut String, cell: Cell, colour: bool, used: &mut [bool; KINDS]) {
    let Cell::Mostly(kind, _) = cell else { return text.push(' ') };
    used[kind as usize] = true;
    let (letter, number) = symbol(kind);
    match colour {
        true => text.push_str(&format!("\x1b[38;5;{number}m█\x1b[0m")),
        false => text.push(letter),
    }
}

/// A bar of `cells` cells that shows the share of each kind, for time that is known only as totals.
fn bar(seconds: &[f64; KINDS], cells: usize) -> Vec<Cell> {
    let total: f64 = seconds.iter().sum();
    if total <= 0.0 {
        return vec![Cell::Empty; cells];
    }
    let mut until = 0.0;
    let mut bar = Vec::with_capacity(cells);
    for kind in Kind::ALL {
        until += seconds[kind as usize] / total;
        let filled = (until * cells as f64).round() as usize;
        bar.resize(filled.min(cells), Cell::Mostly(kind, false));
    }
    bar.resize(cells, Cell::Mostly(Kind::Own, false));
    bar
}

/// Marks below the cells that hide calls; `None` if no cell does.
fn marks(cells: &[Cell]) -> Option<String> {
    let is_hidden = |cell: &Cell| matches!(cell, Cell::Mostly(_, true));
    let line: String = cells.iter().map(|cell| if is_hidden(cell) { '\'' } else { ' ' }).collect();
    (!line.trim().is_empty()).then(|| line.trim_end().to_owned())
}

fn ruler(start: f64, end: f64, gutter: usize, cells: usize) -> String {
    let (left, right) = (seconds(start), seconds(end));
    let middle = seconds((start + end) / 2.0);
    let room = cells.saturating_sub(left.chars().count() + right.chars().count());
    let before = room.saturating_sub(middle.chars().count()) / 2;
    let after = room.saturating_sub(middle.chars().count() + before);
    format!(
        "{:>gutter$} {left}{}{middle}{}{right}\n",
        "rank",
        " ".repeat(before),
        " ".repeat(after)
    )
}

fn legend(used: &[bool; KINDS], colour: bool, gutter: usize) -> String {
    let kinds = Kind::ALL.into_iter().filter(|kind| used[*kind as usize]);
    let words: Vec<String> = kinds
        .map(|kind| {
            let (letter, number) = symbol(kind);
            match colour {
                true => format!("\x1b[38;5;{number}m█\x1b[0m {}", kind.name()),
                false => format!("{letter} {}", kind.name()),
            }
        })
        .collect();
    format!("{:gutter$} {}\n", "", words.join("  "))
}

/// What stands above the timeline: run, time window and number of rows, and what makes figures of the run invalid.
pub fn heading(diagnosis: &Diagnosis, activity: &Activity, timeline: &TextTimeline) -> String {
    let Range { start, end } = timeline.seconds;
    let mut text = format!(
        "{}: {} to {} of {}, {}\n",
        printable(&diagnosis.of.run.directory.display().to_string()),
        seconds(start),
        seconds(end),
        seconds(activity.length_s),
        plural(timeline.rows.len(), "row")
    );
    let doubts = printable(&findings::all_doubts(diagnosis).join(" "));
    for line in wrapped("", &doubts).iter().filter(|line| !line.is_empty()) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_share_is_drawn_and_shorter_calls_are_marked_below() {
        let of = |own, receive| {
            let mut seconds = [0.0; KINDS];
            (seconds[Kind::Own as usize], seconds[Kind::Receive as usize]) = (own, receive);
            cell(&seconds)
        };
        let cells = [of(0.999, 0.001), of(0.2, 0.8), of(0.0, 0.0), of(1.0, 0.0)];
        let mut used = [false; KINDS];
        let mut text = String::new();
        cells.iter().for_each(|cell| push_cell(&mut text, *cell, false, &mut used));
        assert_eq!(text, "-r -");
        assert_eq!(marks(&cells).as_deref(), Some("'"));
        assert_eq!(marks(&cells[1..]), None);
        assert!(used[Kind::Receive as usize] && !used[Kind::Wait as usize]);
    }
}
