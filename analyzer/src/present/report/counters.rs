//! Counters of processor and kernel ([`CounterMetrics`]), for the screen and the document.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::metrics::{CounterMetrics, NoCount, RankCount};

use crate::present::context::{number_list, plural};
use crate::present::quantity::{count, seconds, with_prefix};
use crate::present::table::Table;

/// Values below this are shown in full.
const SHOWN_IN_FULL: f64 = 1e7;
/// Maximum number of hosts named.
const MAX_HOSTS: usize = 4;

/// A table with a row for each counter that was read on any rank.
pub(super) fn lines(counters: &[CounterMetrics]) -> Vec<String> {
    let values = |counter: &CounterMetrics| -> Vec<f64> {
        let counts = counter.ranks.iter().filter_map(|one| one.count.as_ref().ok());
        counts.map(|count| count.value).collect()
    };
    let rows: Vec<_> = counters
        .iter()
        .map(|counter| (counter, values(counter)))
        .filter(|(_, values)| !values.is_empty())
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut table = Table::default();
    table.left("counter", rows.iter().map(|(counter, _)| counter.name.clone()));
    table.right("total", rows.iter().map(|(one, _)| one.total().map_or("?".into(), number)));
    let extreme = |pick: fn(f64, f64) -> f64| {
        rows.iter().map(move |(_, values)| {
            values.iter().copied().reduce(pick).map_or("?".to_owned(), number)
        })
    };
    table.right("min per rank", extreme(f64::min));
    table.right("max per rank", extreme(f64::max));
    table.left("event (perf_event)", rows.iter().map(|(one, _)| one.events.clone()));
    table.lines()
}

fn number(value: f64) -> String {
    match value < SHOWN_IN_FULL {
        true => count(value as u64),
        false => with_prefix(value).trim_end().to_owned(),
    }
}

/// What the values lack, and why.
pub(super) fn sentences(counters: &[CounterMetrics]) -> Vec<String> {
    counters.iter().flat_map(counter_sentences).collect()
}

/// What the values of one counter lack, and why; reasons for a missing total come first.
pub(crate) fn counter_sentences(counter: &CounterMetrics) -> Vec<String> {
    let name = &counter.name;
    let mut sentences: Vec<String> = reasons(counter)
        .into_iter()
        .map(|(why, (hosts, ranks))| {
            let more = match hosts.len().saturating_sub(MAX_HOSTS) {
                0 => String::new(),
                more => format!(" and {} more", count(more as u64)),
            };
            let hosts: Vec<&str> = hosts.into_iter().take(MAX_HOSTS).collect();
            let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
            let ranks = number_list(ranks);
            format!("{name}: not available on {}{more} ({noun} {ranks}): {why}", hosts.join(", "))
        })
        .collect();
    let ended = |one: &&RankCount| one.count.as_ref().ok().and_then(|count| count.until_s);
    let cut: Vec<&RankCount> = counter.ranks.iter().filter(|one| ended(one).is_some()).collect();
    if let Some(first) = cut.first() {
        sentences.push(format!(
            "{name}: {} did not reach the end, so only what was read before is counted (rank {} up to {})",
            plural(cut.len(), "rank"),
            first.rank,
            ended(first).map_or("?".into(), seconds)
        ));
    }
    if counter.is_scaled() {
        sentences.push(format!(
            "{name}: the hardware was shared with other counters for a time; the count is scaled up"
        ));
    }
    let missed: u32 = counter.ranks.iter().map(|one| one.missed_threads).sum();
    if missed > 0 {
        sentences.push(format!(
            "{name}: {} that existed at MPI_Init could not be counted",
            plural(missed as usize, "thread")
        ));
    }
    sentences
}

/// Why there is no count.
fn no_count(why: &NoCount) -> &str {
    match why {
        NoCount::NotRecorded => "the rank was recorded without this counter",
        NoCount::Unavailable(reason) => reason,
        NoCount::NotReadAtBegin => {
            "it was not read where the selection begins: counters are read at the begin and end of a rank \
             and of its regions"
        }
        NoCount::NotReadAtEnd => {
            "it was not read where the selection ends: counters are read at the begin and end of a rank \
             and of its regions"
        }
        NoCount::Unreadable => {
            "it could not be read, or never had the hardware (other counters use it)"
        }
    }
}

/// Hosts and ranks without a count, by reason.
fn reasons(counter: &CounterMetrics) -> BTreeMap<&str, (BTreeSet<&str>, Vec<u32>)> {
    let mut reasons: BTreeMap<&str, (BTreeSet<&str>, Vec<u32>)> = BTreeMap::new();
    for one in &counter.ranks {
        if let Err(why) = &one.count {
            let (hosts, ranks) = reasons.entry(no_count(why)).or_default();
            hosts.insert(&one.host);
            ranks.push(one.rank);
        }
    }
    reasons
}

/// A counter of the processor or the kernel.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CounterDocument<'a> {
    /// As in [`--counters`](settings.md#counters).
    name: &'a str,
    /// Such as `raw 0x1f03`; empty: no built-in choice.
    events: &'a str,
    /// `events` are the built-in choice.
    built_in: bool,
    /// Sum; null unless all ranks that take part were read to their end.
    total: Option<f64>,
    /// The hardware was shared for a time.
    scaled: bool,
    /// By rank.
    ranks: Vec<RankCountDocument<'a>>,
}

/// A counter of a rank.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RankCountDocument<'a> {
    /// Rank in MPI_COMM_WORLD.
    rank: u32,
    /// Of its threads in the selection; null in a `--window`.
    value: Option<f64>,
    /// The hardware was shared for a time.
    scaled: bool,
    /// Last reading, of a rank without an end.
    until_s: Option<f64>,
    /// Threads that were not counted.
    missed_threads: u32,
    /// Why there is no value.
    not_available: Option<&'a str>,
}

impl<'a> CounterDocument<'a> {
    pub fn new(counter: &'a CounterMetrics) -> Self {
        let rank = |one: &'a RankCount| {
            let count = one.count.as_ref().ok();
            RankCountDocument {
                rank: one.rank,
                value: count.map(|count| count.value),
                scaled: count.is_some_and(|count| count.scaled),
                until_s: count.and_then(|count| count.until_s),
                missed_threads: one.missed_threads,
                not_available: one.count.as_ref().err().map(no_count),
            }
        };
        Self {
            name: &counter.name,
            events: &counter.events,
            built_in: counter.built_in,
            total: counter.total(),
            scaled: counter.is_scaled(),
            ranks: counter.ranks.iter().map(rank).collect(),
        }
    }
}
