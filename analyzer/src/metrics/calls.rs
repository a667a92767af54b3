//! Calls by function, over all ranks.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use trace_format::meaning::{Class, Meaning};

use crate::timeline::{GlobalTimeline, RankTime};
use crate::trace::{RankTrace, Run};

use super::sums::RankPass;

/// One function's calls over all ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallMetrics {
    /// Name of the function.
    pub function: String,
    /// `point-to-point`, `completion`, `probe`, `collective`, `one-sided`, `I/O`, `communicators`, `datatypes`,
    /// `lifetime`, `other` or `compute`.
    #[serde(serialize_with = "class_name")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub class: Class,
    /// Calls that began in the selection, of all threads. For the whole run every recorded call
    /// counts, including MPI_Init and MPI_Finalize.
    pub count: u64,
    /// Seconds in them, clipped to the selection. For the whole run they are not clipped, so that
    /// MPI_Init and MPI_Finalize, which lie outside τ, show their time.
    pub time_s: f64,
    /// Seconds of the longest call; of merged polls the longest mean.
    pub max_s: f64,
    /// Rank of the longest call.
    pub max_rank: u32,
    /// Bytes that the calls sent, received (blocking receives), or moved (remote memory, files,
    /// packing). Collective operations count the bytes sent, interposed compute functions those of
    /// their arguments. `None` if the call itself moves nothing (it posts, starts, waits, probes)
    /// and at detail level 0.
    pub bytes: Option<u64>,
}

fn class_name<S: Serializer>(class: &Class, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(class.name())
}

impl CallMetrics {
    /// Mean seconds per call.
    pub fn mean_s(&self) -> f64 {
        self.time_s / self.count as f64
    }
}

/// One row per function, most time first.
pub(super) fn merge(run: &Run, timeline: &GlobalTimeline, passes: &[RankPass]) -> Vec<CallMetrics> {
    let mut rows: BTreeMap<&str, CallMetrics> = BTreeMap::new();
    for ((trace, time), pass) in run.ranks.iter().zip(&timeline.ranks).zip(passes) {
        for sums in pass.calls.iter().filter(|sums| sums.count > 0) {
            let Some(name) = trace.file.function_name(sums.function) else { continue };
            let Meaning { class, moves_bytes, .. } = *Meaning::by_name(name);
            let row = rows.entry(name).or_insert_with(|| CallMetrics {
                function: name.to_owned(),
                class,
                count: 0,
                time_s: 0.0,
                max_s: -1.0,
                max_rank: trace.rank,
                bytes: None,
            });
            row.count = row.count.saturating_add(sums.count);
            row.time_s += time.clock.duration_s(sums.ticks);
            let max_s = time.clock.duration_s(sums.max_ticks);
            if max_s > row.max_s {
                (row.max_s, row.max_rank) = (max_s, trace.rank);
            }
            let recorded = class == Class::Compute || trace.file.fixed.level > 0;
            if recorded && moves_bytes {
                row.bytes = Some(row.bytes.unwrap_or(0).saturating_add(sums.bytes));
            }
        }
    }
    let mut rows: Vec<CallMetrics> = rows.into_values().collect();
    rows.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    rows
}

/// The MPI functions in which a rank spends the most time in the selection, at most three.
pub(super) fn top_of_rank(
    trace: &RankTrace,
    time: &RankTime,
    pass: &RankPass,
) -> Vec<(String, f64)> {
    let mut tops: Vec<_> = pass
        .calls
        .iter()
        .filter(|sums| sums.inside_ticks > 0)
        .filter_map(|sums| {
            let name = trace.file.function_name(sums.function)?;
            let is_mpi = Meaning::by_name(name).class != Class::Compute;
            is_mpi.then(|| (name.to_owned(), time.clock.duration_s(sums.inside_ticks)))
        })
        .collect();
    tops.sort_by(|a, b| b.1.total_cmp(&a.1));
    tops.truncate(3);
    tops
}
