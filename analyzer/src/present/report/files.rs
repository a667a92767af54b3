//! Files that the program works on ([`FileMetrics`]), on the screen.

use crate::metrics::{FileMetrics, Metrics, RankFiles};
use crate::present::context::plural;
use crate::present::quantity::{in_unit, percent, seconds};
use crate::present::table;
use crate::tables::files;

/// Maximum number of rows of each table.
const MAX_ROWS: usize = 8;
/// Bytes that were not seen, and their part of those that were, below which no sentence names them.
const NOTABLE_BYTES: u64 = 64 << 10;
const NOTABLE: f64 = 0.01;

fn bytes(number: u64) -> String {
    in_unit(number as f64, 3, "B")
}

/// How much is read and written, and how long that takes.
pub(in crate::present) fn sentences(files: &FileMetrics, metrics: &Metrics) -> Vec<String> {
    if !files.is_loaded {
        return vec![
            "calls on files were asked for, but libgammachi_io.so, which sees them, was not loaded \
             (preload it behind libgammachi.so)"
                .into(),
        ];
    }
    let sum = |of: fn(&RankFiles) -> u64| files.ranks.iter().map(of).sum::<u64>();
    let (read, written) = (sum(|of| of.read_bytes), sum(|of| of.written_bytes));
    let all_s: f64 = files.ranks.iter().map(|of| of.seconds).sum();
    let own_s = all_s - files.ranks.iter().map(|of| of.other_threads_s).sum::<f64>();
    let mut lines = Vec::new();
    if files.files.is_empty() {
        lines.push("no call on a regular file was seen".into());
    } else {
        let ranks = metrics.participants().count();
        let of_all = metrics.elapsed_s * ranks as f64;
        let share = match of_all > 0.0 {
            // Other threads run beside those that the ranks' time is of.
            true => format!(" ({} of all ranks' time)", percent(own_s / of_all)),
            false => String::new(),
        };
        lines.push(format!(
            "{} read in {}, {} written in {}; {} in calls on {}{share}",
            bytes(read),
            plural(sum(|of| of.reads) as usize, "call"),
            bytes(written),
            plural(sum(|of| of.writes) as usize, "call"),
            seconds(all_s),
            plural(files.files.len(), "file"),
        ));
    }
    if files.is_partial {
        lines.push("calls on files are missing where calls were kept only as totals".into());
    }
    if let Some(unseen) = files.unseen {
        let notable = |unseen: u64, seen: u64| {
            unseen >= NOTABLE_BYTES && unseen as f64 >= NOTABLE * seen as f64
        };
        let parts: Vec<String> =
            [(unseen.read_bytes, read, "read"), (unseen.written_bytes, written, "written")]
                .into_iter()
                .filter(|(unseen, seen, _)| notable(*unseen, *seen))
                .map(|(unseen, _, what)| format!("{} {what}", bytes(unseen)))
                .collect();
        if !parts.is_empty() {
            lines.push(format!(
                "{} by calls that are not recorded: fprintf, fgets and the like, copies within the \
                 kernel, libraries being loaded, text for the terminal",
                parts.join(" and ")
            ));
        }
    }
    lines
}

/// The files with most time.
pub(super) fn file_lines(metrics: &FileMetrics) -> Vec<String> {
    let shown = &metrics.files[..metrics.files.len().min(MAX_ROWS)];
    if shown.is_empty() {
        return Vec::new();
    }
    let mut lines = table::lines(&files::files(shown));
    lines.extend(table::more(metrics.files.len() - shown.len(), "file"));
    lines
}

/// What each rank does with files.
pub(super) fn rank_lines(metrics: &FileMetrics) -> Vec<String> {
    if metrics.files.is_empty() {
        return Vec::new();
    }
    let shown = &metrics.ranks[..metrics.ranks.len().min(MAX_ROWS)];
    let mut lines = table::lines(&files::ranks(shown));
    lines.extend(table::more(metrics.ranks.len() - shown.len(), "rank"));
    lines
}
