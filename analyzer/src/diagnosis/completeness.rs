//! What is missing of a run.

use std::collections::BTreeSet;

use crate::trace::{FileFault, NotBegun};

use super::evidence::Evidence;
use super::finding::Finding;

/// Damaged files.
pub(super) fn damage(of: &Evidence) -> Option<Finding> {
    let begun = |what: &FileFault| !matches!(what, FileFault::NotBegun { .. });
    let of_run =
        of.run.diagnoses.iter().filter(|fault| begun(&fault.what)).map(|fault| &fault.file);
    let of_timeline = of.timeline.diagnoses.iter().map(|fault| &fault.file);
    let of_metrics = of.metrics.diagnoses.iter().map(|fault| &fault.file);
    let files = of_run.chain(of_timeline).chain(of_metrics).collect::<BTreeSet<_>>().len();
    (files > 0).then_some(Finding::DamagedFiles { files })
}

/// Ranks that never returned from MPI_Init.
pub(super) fn not_begun(of: &Evidence) -> Option<Finding> {
    let ranks = ranks_not_begun(of);
    (!ranks.is_empty()).then_some(Finding::NotBegun { ranks, world: of.run.world_size })
}

fn ranks_not_begun(of: &Evidence) -> Vec<(u32, NotBegun)> {
    let ranks = of.run.diagnoses.iter().filter_map(|diagnosis| match diagnosis.what {
        FileFault::NotBegun { rank, state } => Some((rank, state)),
        _ => None,
    });
    ranks.collect()
}

/// Ranks without a readable file.
pub(super) fn missing_ranks(of: &Evidence) -> Option<Finding> {
    let not_begun: BTreeSet<u32> = ranks_not_begun(of).into_iter().map(|(rank, _)| rank).collect();
    let mut ranks: Vec<(u32, u32)> = Vec::new();
    for range in &of.run.missing {
        let mut next = *range.start();
        for rank in not_begun.range(range.clone()) {
            ranks.extend((next < *rank).then(|| (next, rank - 1)));
            next = rank + 1;
        }
        ranks.extend((next <= *range.end()).then(|| (next, *range.end())));
    }
    let count = (of.run.missing_count() as usize).saturating_sub(not_begun.len());
    (count > 0).then_some(Finding::RanksMissing { count, ranks, world: of.run.world_size })
}
