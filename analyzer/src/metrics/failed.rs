//! Counts calls that returned an error, by function and error class.

use std::collections::BTreeMap;

use trace_format::errors::class_name;

use crate::trace::Run;

use super::note::FailedCalls;
use super::sums::RankPass;

/// Merges the ranks' counts; most frequent first, then by name.
pub(super) fn merge(run: &Run, passes: &[RankPass]) -> Vec<FailedCalls> {
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (trace, pass) in run.ranks.iter().zip(passes) {
        for (&(function, error), &count) in &pass.failed {
            let name = trace.file.function_name(function).unwrap_or("other functions");
            let error = class_name(&trace.file.header.mpi_family, error);
            let sum = counts.entry((name.to_owned(), error)).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let mut rows: Vec<FailedCalls> = counts
        .into_iter()
        .map(|((function, error), count)| FailedCalls { function, error, count })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}
