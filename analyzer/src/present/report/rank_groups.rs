//! Shows many ranks in few lines, as groups of similar ranks.
//!
//! A rank belongs to a group if it ended in the same way as the group's first rank, and if none of computing (γ),
//! lost (χ), MPI time and time outside differs from that rank's by more than [`TOLERANCE`] of elapsed time (τ).

use std::collections::BTreeMap;

use super::tables::{InMpi, peak_memory};
use crate::metrics::{Metrics, RankMetrics, RankState};

use crate::present::context::{number_list, plural};
use crate::present::quantity::TimeUnit;
use crate::present::table::Table;

/// Share of τ by which similar ranks may differ.
const TOLERANCE: f64 = 0.02;
/// Maximum number of groups shown.
const MAX_GROUPS: usize = 16;

/// Similar ranks; the first is the reference for all.
pub(super) struct RankGroup<'a> {
    /// Ascending by rank.
    pub members: Vec<&'a RankMetrics>,
}

impl RankGroup<'_> {
    fn mean(&self, of: fn(&RankMetrics) -> f64) -> f64 {
        self.members.iter().map(|rank| of(rank)).sum::<f64>() / self.members.len() as f64
    }
}

fn kind(rank: &RankMetrics) -> (bool, bool, u8) {
    (rank.takes_part, rank.state == RankState::Finalized, rank.ending as u8)
}

/// Groups of similar ranks, those that lose most first.
pub(super) fn groups(metrics: &Metrics) -> Vec<RankGroup<'_>> {
    let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * metrics.elapsed_s;
    let similar = |a: &RankMetrics, b: &RankMetrics| {
        kind(a) == kind(b)
            && near(a.compute_s, b.compute_s)
            && near(a.lost_s, b.lost_s)
            && near(a.mpi_s, b.mpi_s)
            && near(a.outside_s, b.outside_s)
    };
    let mut groups: Vec<RankGroup> = Vec::new();
    for rank in &metrics.ranks {
        match groups.iter_mut().find(|group| similar(group.members[0], rank)) {
            Some(group) => group.members.push(rank),
            None => groups.push(RankGroup { members: vec![rank] }),
        }
    }
    groups.sort_by(|a, b| {
        let of = |group: &RankGroup| group.mean(|rank| rank.lost_s);
        of(b).total_cmp(&of(a))
    });
    groups
}

/// The screen's table, a line for each group: means over its ranks, and the longest time that one of them was off
/// the CPU.
pub(super) fn lines(
    metrics: &Metrics,
    in_mpi: Option<&[InMpi]>,
    state: impl Fn(&RankMetrics) -> String,
) -> Vec<String> {
    let all = groups(metrics);
    let shown = &all[..all.len().min(MAX_GROUPS)];
    let unit = TimeUnit::of(metrics.elapsed_s);
    let time = |seconds: f64| unit.column(seconds, metrics.elapsed_s);
    let column = |of: fn(&RankMetrics) -> f64| shown.iter().map(move |group| group.mean(of));
    let mut table = Table::default();
    table.right("count", shown.iter().map(|group| group.members.len().to_string()));
    let list = |group: &RankGroup| number_list(group.members.iter().map(|rank| rank.rank));
    table.left("similar ranks", shown.iter().map(list));
    table.right("mean computing (γ)", column(|rank| rank.compute_s).map(time));
    table.right("lost (χ)", column(|rank| rank.lost_s).map(time));
    match in_mpi {
        Some(in_mpi) => {
            let ranks = metrics.ranks.iter().map(|rank| rank.rank);
            let of: BTreeMap<u32, InMpi> = ranks.zip(in_mpi.iter().copied()).collect();
            let mean = |part: fn(&InMpi) -> f64| {
                let of = &of;
                shown.iter().map(move |group| {
                    let parts = group.members.iter().filter_map(|rank| of.get(&rank.rank));
                    time(parts.map(part).sum::<f64>() / group.members.len() as f64)
                })
            };
            table.right("waiting", mean(|of| of.waiting_s));
            table.right("transfer", mean(|of| of.transfer_s));
            if in_mpi.iter().any(|of| of.gone_s > 0.0) {
                table.right("gone", mean(|of| of.gone_s));
            }
        }
        None => {
            table.right("in MPI", column(|rank| rank.mpi_s).map(time));
            table.right("start and end", column(|rank| rank.outside_s).map(time));
        }
    }
    table.right("recorder", column(|rank| rank.recorder_s).map(time));
    let most_off_cpu = |group: &RankGroup| {
        let waits = group.members.iter().filter_map(|rank| rank.off_cpu_s);
        waits.reduce(f64::max).map_or("?".into(), time)
    };
    table.right("waited for a core (most)", shown.iter().map(most_off_cpu));
    let most_memory = |group: &RankGroup| {
        let of_ranks = group.members.iter().filter_map(|rank| rank.memory);
        peak_memory(of_ranks.max_by_key(|memory| memory.peak_bytes))
    };
    if metrics.ranks.iter().any(|rank| rank.memory.is_some()) {
        table.right("peak memory (most)", shown.iter().map(most_memory));
    }
    let states: Vec<String> = shown.iter().map(|group| state(group.members[0])).collect();
    if states.iter().any(|state| !state.is_empty()) {
        table.left("state of the first", states);
    }
    let mut lines = table.lines();
    if all.len() > shown.len() {
        let left = &all[shown.len()..];
        let ranks = left.iter().map(|group| group.members.len()).sum();
        lines.push(format!(
            "… {} of {} that lose less (--json lists all ranks) …",
            plural(left.len(), "more group"),
            plural(ranks, "rank")
        ));
    }
    lines
}
