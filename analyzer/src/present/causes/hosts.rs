//! Sums by host: which hosts make the others wait.

use std::collections::BTreeMap;

use crate::causes::Line;
use crate::present::table::Table;

use super::Why;
use super::words::{seconds_of, share};

/// Maximum number of rows of the table.
const MAX_ROWS: usize = 10;
/// Share of the waiting from which a host is said to cause it, and of a host's part from which one rank is.
const MAIN_SHARE: f64 = 0.75;

/// What the ranks of a host did, ticks.
#[derive(Debug, Default)]
struct Host {
    ranks: i64,
    computing: i64,
    waiting: i64,
    on_path: i64,
    /// Waiting that they cause, together and the most of any of them.
    caused: i64,
    most_of_a_rank: i64,
}

/// The hosts, dearest first; empty if the run has only one.
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
        let of_rank = caused.get(&line.position).copied().unwrap_or(0);
        host.caused += of_rank;
        host.most_of_a_rank = host.most_of_a_rank.max(of_rank);
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
    let mut table = Table::default();
    table.left("host", shown.iter().map(|(name, _)| (*name).to_owned()));
    table.right("ranks", shown.iter().map(|(_, host)| host.ranks.to_string()));
    table.right("computing / rank", shown.iter().map(|(_, host)| each(host, host.computing)));
    table.right("waiting / rank", shown.iter().map(|(_, host)| each(host, host.waiting)));
    let of_path = |host: &Host| share(host.on_path, why.causes.path.ticks());
    table.right("of the critical path", shown.iter().map(|(_, host)| of_path(host)));
    let caused = shown.iter().map(|(_, host)| seconds_of(why, host.caused));
    table.right("waiting that it causes", caused);
    let mut lines = if shown.is_empty() { Vec::new() } else { table.lines() };
    if hosts.len() > shown.len() {
        lines.push(format!("{} more hosts (--json lists them)", hosts.len() - shown.len()));
    }
    lines
}

/// A sentence on the host whose ranks cause most of the waiting, if no single rank of it does.
pub(super) fn slow_host(why: &Why) -> Option<String> {
    let (name, host) = hosts(why).into_iter().next()?;
    let waiting = why.causes.waiting();
    let is_main = host.caused as f64 >= MAIN_SHARE * waiting as f64;
    let of_a_rank = host.most_of_a_rank as f64;
    (is_main && of_a_rank <= MAIN_SHARE * host.caused as f64).then(|| {
        format!(
            "The ranks on host {name} together cause {} of the waiting.",
            share(host.caused, waiting)
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::present::causes::{of_ranks, screen};
    use crate::synthetic_messages::on_world;
    use crate::synthetic_trace::SyntheticRank;

    /// The screen of four ranks on the given hosts, of which ranks 2 and 3 take turns in being late at a barrier.
    fn screen_on(hosts: [&str; 4]) -> String {
        let end = 3_000_000;
        let mut ranks: [SyntheticRank; 4] =
            std::array::from_fn(|rank| SyntheticRank::level_1(rank as u32, 4, end));
        for (number, (rank, host)) in ranks.iter_mut().zip(hosts).enumerate() {
            rank.header.host = host.into();
            for turn in 0..20 {
                let begin = 2_000_000 + turn * 10_000;
                let is_late = number >= 2 && turn as usize % 2 == number - 2;
                let entered = begin + if is_late { 8_000 } else { 1_000 };
                rank.call_with("MPI_Barrier", entered, begin + 8_010, on_world(0, 0, 0));
            }
            rank.finalize(end, end + 10);
        }
        of_ranks(&ranks, |why| screen(why, false))
    }

    #[test]
    fn slow_host_is_named_where_no_single_rank_of_it_is_to_blame() {
        let text = screen_on(["a", "a", "b", "b"]);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains("The ranks on host b together cause"), "{text}");
        let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("HOSTS")).collect();
        assert!(
            rows[1].trim_start().starts_with("b ") && rows[2].trim_start().starts_with("a "),
            "{text}"
        );
        let text = screen_on(["a", "b", "a", "b"]);
        assert!(!text.contains("together cause") && text.contains("HOSTS"), "{text}");
        let text = screen_on(["a"; 4]);
        assert!(!text.contains("together cause") && !text.contains("HOSTS"), "{text}");
    }
}
