//! Sums by host: which hosts make the others wait.

use std::collections::BTreeMap;

use crate::causes::Line;
use crate::present::table::{self, Table};

use super::words::{seconds_of, share};
use crate::diagnosis::Why;

const MAX_ROWS: usize = 10;

/// What the ranks of a host did, ticks.
#[derive(Debug, Default)]
struct Host {
    ranks: i64,
    computing: i64,
    waiting: i64,
    on_path: i64,
    /// Waiting that they cause.
    caused: i64,
}

/// The hosts, costliest first; empty if the run has only one.
fn hosts<'a>(why: &Why<'a>) -> Vec<(&'a str, Host)> {
    let causes = why.causes;
    let host_of = |line: &Line| why.run.ranks[line.position].file.header.host.as_str();
    let mut caused: BTreeMap<usize, i64> = BTreeMap::new();
    for ((line, _), cost) in &causes.charges.causes {
        *caused.entry(causes.lines.all[*line as usize].position).or_default() += cost.total();
    }
    let mut hosts: BTreeMap<&str, Host> = BTreeMap::new();
    for (number, line) in (0u32..).zip(&causes.lines.all) {
        let host = hosts.entry(host_of(line)).or_default();
        host.on_path += causes.path.on_line.get(&number).copied().unwrap_or(0);
        if causes.lines.first_of(line.position) != number {
            continue;
        }
        host.ranks += 1;
        let time = &causes.rank_times[line.position];
        host.computing += time.computing;
        host.waiting += time.waiting;
        host.caused += caused.get(&line.position).copied().unwrap_or(0);
    }
    let mut hosts: Vec<(&str, Host)> = hosts.into_iter().collect();
    if hosts.len() < 2 {
        return Vec::new();
    }
    hosts.sort_by_key(|(name, host)| (std::cmp::Reverse(host.caused), *name));
    hosts
}

/// The table of a run's hosts; empty if it has only one.
pub(super) fn host_lines(why: &Why) -> Vec<String> {
    let hosts = hosts(why);
    let shown = &hosts[..hosts.len().min(MAX_ROWS)];
    let each = |host: &Host, ticks: i64| seconds_of(why, ticks / host.ranks.max(1));
    let mut table = Table::with_rows(shown);
    table.left("host", |(name, _)| (*name).to_owned());
    table.right("ranks", |(_, host)| host.ranks.to_string());
    table.right("computing / rank", |(_, host)| each(host, host.computing));
    table.right("waiting / rank", |(_, host)| each(host, host.waiting));
    let of_path = |host: &Host| share(host.on_path, why.causes.path.ticks());
    table.right("of the critical path", |(_, host)| of_path(host));
    table.right("waiting that it causes", |(_, host)| seconds_of(why, host.caused));
    let mut lines = if shown.is_empty() { Vec::new() } else { table.lines() };
    lines.extend(table::more(hosts.len() - shown.len(), "host"));
    lines
}
