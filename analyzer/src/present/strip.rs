//! The timeline in a terminal: activity comes in, a line of cells a row goes out.
//!
//! A cell stands for a piece of time. In colour its block says how much of it was spent in MPI and its
//! colour in which kind; without colour a letter says the kind, capital where it fills half the cell.
//! A call that is there at all is seen, however short.

use std::ops::Range;

use super::context::{plural, shortened};
use super::quantity::seconds;
use crate::metrics::activity::{Activity, KINDS, Kind};
use crate::plain_text::printable;
use crate::trace::Run;

/// What is shown, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Strip {
    /// Global seconds.
    pub seconds: Range<f64>,
    /// Positions of rows in [`Activity::rows`].
    pub rows: Vec<usize>,
    /// Columns of the terminal.
    pub columns: usize,
    /// Whether the terminal has colours.
    pub colour: bool,
}

/// Rows shown; of more, as many evenly spread.
pub const MOST_ROWS: usize = 64;

/// A kind's letter, and its place in the 256 colours of a terminal.
fn look(kind: Kind) -> (char, u8) {
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

/// The text, ending in a line feed.
pub fn text(run: &Run, activity: &Activity, strip: &Strip) -> String {
    let every = strip.rows.len().div_ceil(MOST_ROWS).max(1);
    let shown: Vec<usize> = strip.rows.iter().copied().step_by(every).collect();
    let names: Vec<String> = shown.iter().map(|row| name(run, activity, *row)).collect();
    let gutter = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    let cells = strip.columns.saturating_sub(gutter + 1).clamp(10, 400);
    let Range { start, end } = strip.seconds;
    let mut text = ruler(start, end, gutter, cells);
    let mut used = [false; KINDS];
    for (row, name) in shown.iter().zip(&names) {
        text.push_str(&format!("{name:>gutter$} "));
        for cell in 0..cells {
            let at = |cell: usize| start + (end - start) * cell as f64 / cells as f64;
            let shares = shares(activity, *row, at(cell), at(cell + 1));
            push_cell(&mut text, &shares, strip.colour, &mut used);
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text.push_str(&legend(&used, strip.colour, gutter));
    if shown.len() < strip.rows.len() {
        let left = strip.rows.len() - shown.len();
        text.push_str(&format!(
            "{:gutter$} every {every}th of {} rows; {left} not shown, choose with --ranks\n",
            "",
            strip.rows.len()
        ));
    }
    if let Some(note) = summed_note(activity.summed_s) {
        text.push_str(&format!("{:gutter$} {note}\n", ""));
    }
    let cell_s = (end - start) / cells as f64;
    let bin_s = activity.bin_s();
    if bin_s > cell_s * 1.01 {
        text.push_str(&format!("{:gutter$} finest step {}\n", "", seconds(bin_s)));
    }
    text
}

/// What a reader should know of a timeline some of whose calls are kept as totals.
pub(super) fn summed_note(summed_s: Option<(f64, f64)>) -> Option<String> {
    let (from, to) = summed_s?;
    Some(format!(
        "from {} to {} calls are kept as totals: their time by kind is drawn evenly, when each was is not known",
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

/// Share of each kind between two moments.
fn shares(activity: &Activity, row: usize, from: f64, to: f64) -> [f64; KINDS] {
    let bin_s = activity.bin_s();
    let mut sums = [0.0; KINDS];
    if bin_s <= 0.0 || to <= from {
        return sums;
    }
    let first = (from / bin_s).floor().max(0.0) as usize;
    let last = ((to / bin_s).ceil().max(0.0) as usize).min(activity.bins);
    for (bin, kinds) in activity.rows[row].bins.iter().enumerate().take(last).skip(first) {
        let at = bin as f64 * bin_s;
        let part = ((at + bin_s).min(to) - at.max(from)).max(0.0) / bin_s;
        for (sum, kind) in sums.iter_mut().zip(kinds) {
            *sum += f64::from(*kind) * part / (to - from);
        }
    }
    sums
}

fn push_cell(text: &mut String, shares: &[f64; KINDS], colour: bool, used: &mut [bool; KINDS]) {
    let total: f64 = shares.iter().sum();
    if total <= 0.0 {
        return text.push(' ');
    }
    // Computation is the ground on which everything else shows.
    let overhead: f64 = shares[2..].iter().sum::<f64>() / total;
    let most = Kind::ALL[2..].iter().copied().filter(|kind| shares[*kind as usize] > 0.0);
    let most = most.max_by(|a, b| shares[*a as usize].total_cmp(&shares[*b as usize]));
    let ground = if shares[1] > shares[0] { Kind::Compute } else { Kind::Own };
    let kind = most.unwrap_or(ground);
    used[kind as usize] = true;
    let (letter, number) = look(kind);
    if !colour {
        let fills = overhead >= 0.5;
        return text.push(if fills { letter.to_ascii_uppercase() } else { letter });
    }
    let block = match (most, overhead) {
        (None, _) => '·',
        (_, share) if share < 0.25 => '░',
        (_, share) if share < 0.5 => '▒',
        (_, share) if share < 0.75 => '▓',
        _ => '█',
    };
    text.push_str(&format!("\x1b[38;5;{number}m{block}\x1b[0m"));
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
            let (letter, number) = look(kind);
            match colour {
                true => format!("\x1b[38;5;{number}m█\x1b[0m {}", kind.name()),
                false => format!("{letter} {}", kind.name()),
            }
        })
        .collect();
    let how = match colour {
        true => {
            "· none, ░ under 25 %, ▒ 50 %, ▓ 75 %, █ more of the cell outside own code and BLAS"
        }
        false => "capital: more than half of the cell is outside own code and BLAS",
    };
    format!("{:gutter$} {}\n{:gutter$} {how}\n", "", words.join("  "), "")
}

/// Says how many rows of how many ranks.
pub fn heading(run: &Run, activity: &Activity, strip: &Strip) -> String {
    let Range { start, end } = strip.seconds;
    format!(
        "{}: {} to {} of {}, {}\n",
        printable(&run.directory.display().to_string()),
        seconds(start),
        seconds(end),
        seconds(activity.length_s),
        plural(strip.rows.len(), "row")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_call_is_seen_and_a_long_one_is_large() {
        let mut shares = [0.0; KINDS];
        (shares[0], shares[3]) = (0.999, 0.001);
        let mut used = [false; KINDS];
        let mut text = String::new();
        push_cell(&mut text, &shares, false, &mut used);
        (shares[0], shares[3]) = (0.2, 0.8);
        push_cell(&mut text, &shares, false, &mut used);
        push_cell(&mut text, &[0.0; KINDS], false, &mut used);
        (shares[0], shares[3]) = (1.0, 0.0);
        push_cell(&mut text, &shares, false, &mut used);
        assert_eq!(text, "rR -");
        assert!(used[3] && used[0] && !used[4]);
    }
}
