//! The rows of the rank table and their bars.

use minijinja::value::Value;
use serde::Serialize;

use crate::metrics::activity::{Activity, KINDS, Kind};
use crate::metrics::{RankMetrics, Selection};
use crate::present::shown::Report;
use crate::present::{quantity, report};

use super::data;
use super::table::laid_out;

/// Rows of the rank table. Of more ranks it shows those that lose most and the one that loses least.
const MAX_RANKS: usize = 256;

#[derive(Debug, Serialize)]
struct Part {
    class: String,
    /// Percent of τ.
    percent: f64,
    /// Where the part begins, percent of τ.
    from: f64,
}

/// A bar of the parts of τ that a rank spent on each kind.
#[derive(Debug, Serialize)]
pub(super) struct Bar {
    rank: u32,
    words: String,
    parts: Vec<Part>,
}

pub(super) fn table(of: &Report, positions: &[usize]) -> Value {
    laid_out(&report::ranks_of(of).table(positions))
}

/// What one colour of the bars means.
#[derive(Debug, Serialize)]
pub(super) struct LegendItem {
    class: String,
    name: &'static str,
}

/// Time before a rank began, and after it ended.
const START_AND_END: &str = "start and end";

/// Positions of the ranks that have a row, ascending.
pub(super) fn shown(report: &Report) -> Vec<usize> {
    let ranks = &report.metrics.ranks;
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    if ranks.len() > MAX_RANKS {
        order.sort_by(|a, b| ranks[*b].lost_s.total_cmp(&ranks[*a].lost_s));
        let least = order.pop();
        order.truncate(MAX_RANKS - 1);
        order.extend(least);
        order.sort_unstable();
    }
    order
}

/// The colours of the bars: the kinds of call for the whole run; for a part of it only the classes that the metrics
/// have.
pub(super) fn legend(report: &Report, activity: &Activity) -> Vec<LegendItem> {
    let item = |class: String, name| LegendItem { class, name };
    let mut items: Vec<LegendItem> = match report.metrics.selection {
        Selection::Whole => data::kinds_used(activity)
            .into_iter()
            .map(|kind| item(format!("k{kind}"), Kind::ALL[kind].name()))
            .collect(),
        _ => CLASSES.map(|(class, name)| item(class.to_owned(), name)).into(),
    };
    items.push(item("k-outside".to_owned(), START_AND_END));
    items
}

/// The bar of a rank: by kind of call for the whole run, by the classes of the metrics for a part of it.
pub(super) fn bar(report: &Report, activity: &Activity, index: usize) -> Bar {
    let metrics = report.metrics;
    let rank = &metrics.ranks[index];
    let whole = metrics.selection == Selection::Whole;
    let row = activity.rows.iter().find(|row| row.position == index && row.thread == 0);
    let parts: Vec<(String, &str, f64)> = match row.filter(|_| whole) {
        Some(row) => {
            let kinds = (0..KINDS)
                .map(|kind| (format!("k{kind}"), Kind::ALL[kind].name(), row.totals_s[kind]));
            kinds.chain([("k-outside".into(), START_AND_END, rank.outside_s)]).collect()
        }
        None => selection_parts(rank),
    };
    let total = metrics.elapsed_s.max(f64::MIN_POSITIVE);
    let parts: Vec<_> = parts.into_iter().filter(|(_, _, seconds)| *seconds > 0.0).collect();
    let words = parts.iter().map(|(_, name, s)| format!("{name} {}", quantity::seconds(*s)));
    let words = words.collect::<Vec<_>>().join(", ");
    let mut from = 0.0;
    let part = |(class, _, seconds): (String, &str, f64)| {
        let percent = (seconds / total * 1e4).round() / 100.0;
        from += percent;
        Part { class, percent, from: ((from - percent) * 100.0).round() / 100.0 }
    };
    Bar { rank: rank.rank, words, parts: parts.into_iter().map(part).collect() }
}

/// The classes of a part of the run, for which kinds of call are not known.
const CLASSES: [(&str, &str); 4] =
    [("k1", "computing"), ("k8", "in MPI"), ("k9", "recorder"), ("k0", "other code")];

fn selection_parts(rank: &RankMetrics) -> Vec<(String, &'static str, f64)> {
    let seconds = [rank.compute_s, rank.mpi_s, rank.recorder_s, rank.other_s];
    let parts = CLASSES.iter().zip(seconds);
    let parts = parts.map(|((class, name), seconds)| ((*class).to_owned(), *name, seconds));
    parts.chain([("k-outside".into(), START_AND_END, rank.outside_s)]).collect()
}
