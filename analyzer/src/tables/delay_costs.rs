//! DELAY COSTS: the waiting that each delay causes; and the CRITICAL PATH.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::causes::{Cost, OnPath};
use crate::diagnosis::Why;

use super::delay::Delay;
use super::table::{Cell, Table};

/// A line and a context, and the waiting that its delay there causes.
pub type DelayCost<'a> = ((u32, u32), &'a Cost);

/// The delays of the selected rank, or of all, the costliest first.
pub fn costliest<'a>(why: &Why<'a>) -> Vec<DelayCost<'a>> {
    let all = why.causes.charges.causes.iter().map(|(key, cost)| (*key, cost));
    let mut rows: Vec<DelayCost> = all.filter(|((line, _), _)| why.concerns(*line)).collect();
    rows.sort_by_key(|(key, cost)| (Reverse(cost.total()), *key));
    rows
}

/// Delays, a row each.
pub fn delay_costs(why: &Why, rows: &[DelayCost]) -> Table {
    let (causes, own_times) = (why.causes, why.own_times());
    let costs = || rows.iter().map(|(_, cost)| cost);
    let s = |ticks| Cell::Seconds(why.seconds(ticks));
    let share = |cost: &&Cost| Cell::share(cost.total() as f64, causes.waiting() as f64);
    let delay = |((line, context), _): &DelayCost| {
        Cell::Delay(Delay::longer(causes, *context, own_times.on_line(causes, *line)))
    };
    let mut table = Table::default();
    table.add("rank", "rank", rows.iter().map(|((line, _), _)| Cell::thread(causes, *line)));
    table.add("seconds", "cost", costs().map(|cost| s(cost.total())));
    table.add("share", "share", costs().map(share));
    table.add("direct_s", "direct", costs().map(|cost| s(cost.direct)));
    table.add("indirect_s", "indirect", costs().map(|cost| s(cost.indirect)));
    table.add("delay", "delay", rows.iter().map(delay));
    table
}

/// Contexts on the critical path, a row each.
pub fn critical_path(why: &Why, rows: &[OnPath]) -> Table {
    let s = |ticks| Cell::Seconds(why.seconds(ticks));
    let context = |row: &OnPath| Cell::Context(why.causes.contexts.get(row.context).clone());
    let mut table = Table::default();
    table.add("seconds", "on the path", rows.iter().map(|row| s(row.on_path)));
    table.add("imbalance_s", "imbalance", rows.iter().map(|row| s(row.imbalance)));
    table.add("context", "context", rows.iter().map(context));
    table
}

/// Ticks that ranks are on the critical path.
pub fn on_path_by_rank(why: &Why) -> BTreeMap<u32, i64> {
    let mut ranks = BTreeMap::new();
    for (line, ticks) in &why.causes.path.on_line {
        *ranks.entry(why.causes.lines.all[*line as usize].rank).or_default() += ticks;
    }
    ranks
}
