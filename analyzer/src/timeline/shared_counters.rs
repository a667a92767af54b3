//! Which ranks read the same counter.

use std::collections::HashMap;

use super::alignment::Alignment;
use super::chain::host_counter;
use super::rank_time::RankTime;
use crate::trace::Run;

/// For each rank, by position, the first one whose counter it reads according to the clock
/// exchanges; itself if it shares none. Ranks of a host without an exchange are assumed to share
/// that host's counter.
pub fn shared_counters(run: &Run, ranks: &[RankTime]) -> Vec<usize> {
    let mut of_hosts = HashMap::new();
    for (position, (trace, time)) in run.ranks.iter().zip(ranks).enumerate() {
        let alignment = time.clock.alignment;
        let is_known = !matches!(alignment, Alignment::AssumedShared | Alignment::Unaligned);
        if is_known && trace.file.header.counter_invariant {
            of_hosts.entry(host_counter(trace)).or_insert(position);
        }
    }
    let shared_with = |rank: usize| match ranks[rank].clock.alignment {
        Alignment::SharedCounter => {
            let exchange = run.ranks[rank].facts.exchanges.first()?;
            run.position_of(exchange.parent)
        }
        Alignment::AssumedShared => of_hosts.get(&host_counter(&run.ranks[rank])).copied(),
        _ => None,
    };
    let root_of = |rank: usize| {
        // A chain of parents is at most as long as the run has ranks.
        let chain = std::iter::successors(Some(rank), |at| shared_with(*at).filter(|to| to != at));
        chain.take(run.ranks.len()).last().unwrap_or(rank)
    };
    (0..run.ranks.len()).map(root_of).collect()
}
