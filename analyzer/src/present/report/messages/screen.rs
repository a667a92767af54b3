//! Messages and communicators on the screen of a report.

use crate::metrics::{CommunicatorMetrics, Matrix, MessageMetrics, Traffic};
use crate::present::context::{plural, shortened};
use crate::present::quantity::{count, percent, with_prefix};
use crate::present::table::{self, Table};
use crate::tables::{self, Cell};
use crate::timeline::communicators::Members;
use crate::timeline::matching::{Reason, Sides};
use crate::trace::Run;

/// Up to this many ranks, the whole matrix is shown.
const MAX_MATRIX_RANKS: u32 = 8;
/// Beyond this many ranks, traffic is shown by host.
const MAX_PAIR_RANKS: u32 = 64;
/// Maximum number of pairs shown where the matrix is not.
const MAX_PAIRS: usize = 8;
/// Maximum number of communicators shown.
const MAX_COMMUNICATORS: usize = 8;
/// Maximum number of ranges of members shown for a communicator.
const MAX_RUNS: usize = 6;

/// The number of messages and of sends and receives that could not be matched.
pub(in crate::present::report) fn summary_line(metrics: &MessageMetrics) -> String {
    let total = metrics.total;
    let mut parts = vec![format!("{} matched, {}", count(total.count), bytes(total.bytes))];
    parts.push(match metrics.unmatched_count() {
        0 => "unmatched 0".into(),
        unmatched => {
            let reasons = metrics.unmatched.iter();
            let reasons: Vec<String> =
                reasons.map(|(reason, sides)| of_reason(*reason, *sides)).collect();
            format!("unmatched {} ({})", count(unmatched), reasons.join("; "))
        }
    });
    if metrics.wildcard_receives > 0 {
        parts.push(format!("{} received by wildcard", count(metrics.wildcard_receives)));
    }
    if let Some(most) = metrics.sizes.iter().max_by_key(|class| class.traffic.count) {
        let range = match most.from_bytes {
            small @ (0 | 1) => format!("{small} B"),
            from => format!("{} to {}", power_of_two(from), power_of_two(from.saturating_mul(2))),
        };
        let share = most.traffic.count as f64 / total.count as f64;
        parts.push(format!("most common size {range} ({})", percent(share)));
    }
    let one_sided = metrics.one_sided;
    if one_sided.accesses > 0 {
        let (put, got) = (bytes(one_sided.put_bytes), bytes(one_sided.got_bytes));
        let accesses = count(one_sided.accesses);
        parts.push(format!("one-sided {accesses}, {put} put and {got} got"));
    }
    parts.join(" | ")
}

/// Sends and receives that one reason left without a partner.
fn of_reason(reason: Reason, sides: Sides) -> String {
    let (sends, receives) = (sides.sends as usize, sides.receives as usize);
    let join = |sends: String, receives: String| match (sides.sends, sides.receives) {
        (0, _) => receives,
        (_, 0) => sends,
        _ => format!("{receives} and {sends}"),
    };
    let (of_sends, of_receives) = (plural(sends, "send"), plural(receives, "receive"));
    match reason {
        Reason::Open => join(
            format!("{of_sends} whose receive never completed"),
            format!("{of_receives} never completed"),
        ),
        _ => format!("{}: {}", reason.name(), join(of_sends, of_receives)),
    }
}

fn bytes(number: u64) -> String {
    match number {
        0..1000 => format!("{number} B"),
        _ => with_prefix(number as f64) + "B",
    }
}

fn power_of_two(number: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let found = units.into_iter().find(|(unit, _)| number >= *unit);
    let (unit, name) = found.unwrap_or((1, "B"));
    format!("{} {name}", number / unit)
}

/// The matrix, or the pairs with most bytes.
pub(in crate::present::report) fn traffic_lines(
    run: &Run,
    metrics: &MessageMetrics,
) -> Vec<String> {
    if metrics.matrix.pairs.is_empty() {
        return Vec::new();
    }
    if run.world_size <= MAX_MATRIX_RANKS {
        return matrix_lines(&metrics.matrix, run.world_size);
    }
    if run.world_size <= MAX_PAIR_RANKS {
        return pair_lines(&metrics.matrix, "from", &|rank| Cell::Count(rank.into()));
    }
    let (hosts, matrix) = metrics.matrix.by_host(run);
    pair_lines(&matrix, "from host", &|host| {
        hosts.get(host as usize).map_or(Cell::Unknown, |host| Cell::Text(host.clone()))
    })
}

fn matrix_lines(matrix: &Matrix, ranks: u32) -> Vec<String> {
    let mut table = Table::default();
    table.right("from\\to", (0..ranks).map(|rank| rank.to_string()));
    for column in 0..ranks {
        let cell = |row| match matrix.pairs.get(&(row, column)) {
            Some(traffic) => format!("{} in {}", bytes(traffic.bytes), count(traffic.count)),
            None => "-".into(),
        };
        table.right(&column.to_string(), (0..ranks).map(cell));
    }
    table.lines()
}

/// The pairs of ranks, or what `from` calls them, with most bytes.
pub(in crate::present) fn pair_table(
    pairs: &[((u32, u32), Traffic)],
    from: &str,
    name: &dyn Fn(u32) -> Cell,
) -> tables::Table {
    let rows = || pairs.iter();
    let rank = |rank: u32| Cell::Count(rank.into());
    let mut table = tables::Table::default();
    table.add("from", from, rows().map(|((sender, _), _)| name(*sender)));
    table.add("to", "to", rows().map(|((_, receiver), _)| name(*receiver)));
    table.add("count", "messages", rows().map(|(_, traffic)| Cell::Count(traffic.count)));
    table.add("bytes", "bytes", rows().map(|(_, traffic)| Cell::Bytes(traffic.bytes as f64)));
    table.mark("ranks", rows().map(|((from, to), _)| Cell::Ranks(vec![*from, *to])));
    table.mark("sender", rows().map(|((sender, _), _)| rank(*sender)));
    table.mark("receiver", rows().map(|((_, receiver), _)| rank(*receiver)));
    table
}

fn pair_lines(matrix: &Matrix, from: &str, name: &dyn Fn(u32) -> Cell) -> Vec<String> {
    let pairs = matrix.heaviest(MAX_PAIRS);
    let mut lines = table::lines(&pair_table(&pairs, from, name));
    lines.extend(table::more(matrix.pairs.len() - pairs.len(), "pair"));
    lines
}

/// The communicators that carried most bytes.
pub(in crate::present::report) fn communicator_lines(metrics: &MessageMetrics) -> Vec<String> {
    let used = |row: &&CommunicatorMetrics| {
        row.messages != Traffic::default() || row.one_sided.accesses > 0 || row.collectives > 0
    };
    let rows: Vec<&CommunicatorMetrics> = metrics.communicators.iter().filter(used).collect();
    let unused = metrics.communicators.len() - rows.len();
    if rows.is_empty() {
        return vec!["none used in this selection".into()];
    }
    // CALLS and MESSAGES say nearly the same of MPI_COMM_WORLD alone.
    if let [row] = rows.as_slice()
        && row.name.as_deref() == Some("MPI_COMM_WORLD")
        && row.one_sided.accesses == 0
    {
        return Vec::new();
    }
    let hidden = rows.len().saturating_sub(MAX_COMMUNICATORS);
    let mut lines = table::brief_lines(&communicator_table(rows, MAX_COMMUNICATORS));
    lines.extend(table::more(hidden, "communicator"));
    if unused > 0 {
        lines.push(format!("{} more, not used", count(unused as u64)));
    }
    lines
}

/// Communicators, at most so many, those with most traffic first.
pub(in crate::present) fn communicator_table(
    mut rows: Vec<&CommunicatorMetrics>,
    most: usize,
) -> tables::Table {
    rows.sort_by_key(|row| {
        std::cmp::Reverse((row.all_bytes(), row.messages.count, row.collectives))
    });
    rows.truncate(most);
    let bytes = |bytes: u64| Cell::Bytes(bytes as f64);
    let size = |row: &CommunicatorMetrics| match row.groups.as_slice() {
        [one] => Cell::Count(one.size().into()),
        groups => {
            let sizes: Vec<String> = groups.iter().map(|of| count(of.size().into())).collect();
            Cell::Text(sizes.join("+"))
        }
    };
    let rows = || rows.iter().copied();
    let mut table = tables::Table::default();
    table.add("name", "communicator", rows().map(|row| Cell::Text(shortened(&name(row)))));
    if rows().any(|row| row.instances > 1) {
        table.add("instances", "times", rows().map(|row| Cell::Count(row.instances)));
    }
    table.add("size", "size", rows().map(size));
    table.add("members", "ranks", rows().map(|row| Cell::Text(members(row))));
    table.add("messages", "messages", rows().map(|row| Cell::Count(row.messages.count)));
    table.add("bytes", "bytes", rows().map(|row| bytes(row.messages.bytes)));
    if rows().any(|row| row.one_sided.accesses > 0) {
        let accesses = rows().map(|row| Cell::Count(row.one_sided.accesses));
        table.add("one_sided", "one-sided", accesses);
        table.add("one_sided_bytes", "bytes", rows().map(|row| bytes(row.one_sided.bytes())));
    }
    table.add("collectives", "collectives", rows().map(|row| Cell::Count(row.collectives)));
    let calls = rows().map(|row| Cell::Count(row.collective_calls));
    table.detail("collective_calls", "their calls", calls);
    table.add("collective_bytes", "bytes sent", rows().map(|row| bytes(row.collective_bytes)));
    table
}

fn name(row: &CommunicatorMetrics) -> String {
    match (&row.name, &row.made_by) {
        (Some(name), _) => name.clone(),
        (None, Some(made_by)) => format!("(by {made_by})"),
        (None, None) => "(unnamed)".into(),
    }
}

fn members(row: &CommunicatorMetrics) -> String {
    if row.instances > 1 && row.groups.first().is_some_and(|group| group.size() == 1) {
        return "each its own".into();
    }
    let groups: Vec<String> = row.groups.iter().map(member_list).collect();
    groups.join(" | ")
}

/// Ranks of a group: `0-3`, with a stride `0-6:2`.
pub(in crate::present::report) fn member_list(members: &Members) -> String {
    let text = |(first, stride, number): (Option<u32>, i64, u32)| {
        let Some(first) = first else { return "?".to_owned() };
        let length = stride.saturating_mul(i64::from(number.saturating_sub(1)));
        let last = i64::from(first).saturating_add(length);
        match (number, stride) {
            (0 | 1, _) => format!("{first}"),
            (2, _) => format!("{first},{last}"),
            (_, 1) => format!("{first}-{last}"),
            _ => format!("{first}-{last}:{stride}"),
        }
    };
    let mut runs = members.runs();
    let mut texts: Vec<String> = runs.by_ref().take(MAX_RUNS).map(text).collect();
    if runs.next().is_some() {
        texts.push("…".into());
    }
    texts.join(",")
}
