//! Counts calls that returned an error, by function and error class.

use std::collections::BTreeMap;

use trace_format::errors::class_name;

use crate::trace::Run;

use super::sums::RankPass;

/// Calls of one function that returned one class of error, over all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCalls {
    /// Name of the function.
    pub function: String,
    /// Name of the error class, or its number where it has no known name.
    pub error: String,
    /// Calls that began in the selection.
    pub count: u64,
}

/// Most frequent first, then by name.
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

/// Rows that the note names.
const MOST_NAMED: usize = 5;

/// What a reader should know; `None` where every call succeeded.
pub(super) fn note(rows: &[FailedCalls]) -> Option<String> {
    let all = rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.count));
    let calls = match all {
        0 => return None,
        1 => "1 call returned an error".to_owned(),
        _ => format!("{all} calls returned an error"),
    };
    let named = |row: &FailedCalls| match row.count {
        1 => format!("{} {}", row.function, row.error),
        count => format!("{} {} ({count} times)", row.function, row.error),
    };
    let mut which: Vec<String> = rows.iter().take(MOST_NAMED).map(named).collect();
    if rows.len() > MOST_NAMED {
        which.push(format!("{} more kinds", rows.len() - MOST_NAMED));
    }
    Some(format!(
        "{calls}: {}; what was refused takes no part in messages, collective operations and bytes",
        which.join(", ")
    ))
}
