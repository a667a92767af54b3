//! Sums up every rank's ticks by activity and its calls by function, for several selections at
//! once.
//!
//! | file | what it does |
//! |---|---|
//! | `accumulator` | accumulates sums |
//! | `thread` | routes a thread's spans into the sums of all selections |

mod accumulator;
mod thread;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::analysis::RankView;
use crate::analysis::segments::{ComputeMode, Functions, Segment, Segmenter, Segments};
use crate::analysis::spans::Activity;
use crate::analysis::union::{Precedence, merged};
use crate::timeline::RankTime;
use crate::trace::RankTrace;

use super::RankState;

pub(super) use accumulator::{CallSums, PollSums};
pub(super) use thread::Sums;

/// One rank's sums.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::metrics) struct RankPass {
    /// Total length of the selection's stretches.
    pub elapsed_ticks: u64,
    /// Time in which a thread does useful work.
    pub compute_ticks: u64,
    /// The rest of the time in which a thread is in MPI.
    pub mpi_ticks: u64,
    /// The rest of the time in which a thread is in the recorder.
    pub tool_ticks: u64,
    /// The remaining time.
    pub other_ticks: u64,
    /// Functions called, over all threads.
    pub calls: Vec<CallSums>,
    /// Polls in runs that began in the selection, over all threads.
    pub polls: PollSums,
    /// Operations of compute calls that began in the selection; `None` without such calls.
    pub flops: Option<f64>,
    /// Compute calls with an impossible number of operations.
    pub impossible_flops: u64,
    /// Number of failed calls, by function and error class.
    pub failed: BTreeMap<(u16, u32), u64>,
    /// The threads, in the order of the file.
    pub threads: Vec<ThreadSums>,
}

/// One thread's sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::metrics) struct ThreadSums {
    /// Thread number in the file.
    pub number: u32,
    /// Calls that began in the selection.
    pub calls: u64,
    /// Ticks in MPI.
    pub mpi_ticks: u64,
    /// Ticks in the recorder.
    pub tool_ticks: u64,
    /// Useful ticks.
    pub compute_ticks: u64,
}

/// What the threads of a rank do together, in order of precedence.
const ACTIVITIES: usize = 3;

/// Useful work, MPI or the recorder; `None` for the program's own code that is not useful.
fn activity_of(segment: &Segment, mode: ComputeMode) -> Option<usize> {
    match segment.activity {
        _ if segment.is_useful(mode) => Some(0),
        Activity::Mpi => Some(1),
        Activity::Tool => Some(2),
        Activity::Compute | Activity::Own => None,
    }
}

/// For each of several lists of stretches, the ticks in which a thread does useful work, the rest
/// of those in which one is in MPI, and the rest of those in which one is in the recorder.
fn together(
    rank: RankView<'_>,
    stretches: &[&[(u64, u64)]],
    functions: &Functions,
    mode: ComputeMode,
) -> Vec<[u64; ACTIVITIES]> {
    let mut sequences = Vec::new();
    if rank.thread(0).is_none() {
        let RankTime { begin_ticks, end_ticks, .. } = *rank.time;
        let segmenter = Segmenter::new(begin_ticks, end_ticks, functions);
        sequences.push(Segments::new(None, segmenter));
    }
    for thread in rank.threads() {
        let Some((begin, end)) = thread.stretch else { continue };
        let segmenter = Segmenter::new(begin, end, functions);
        sequences.push(Segments::new(Some(thread.spans(None)), segmenter));
    }
    let intervals = sequences.into_iter().map(|segments| {
        segments.filter_map(|segment| {
            let activity = activity_of(&segment, mode)?;
            Some((segment.begin_ticks, segment.end_ticks, activity))
        })
    });
    let mut of_all: Vec<Precedence<ACTIVITIES>> =
        stretches.iter().map(|stretches| Precedence::new(stretches)).collect();
    for interval in merged(intervals.collect()) {
        of_all.iter_mut().for_each(|of| of.add(interval));
    }
    of_all.into_iter().map(Precedence::finish).collect()
}

/// Whether the rank finished, and if not, its last call.
pub(in crate::metrics) fn state(trace: &RankTrace, time: &RankTime) -> RankState {
    if trace.facts.finalized() {
        return RankState::Finalized;
    }
    let name = |function| trace.file.function_name(function).unwrap_or("unknown").to_owned();
    let lasts = || trace.threads.iter().filter_map(|thread| thread.last_call.as_ref());
    let last_call = lasts().max_by_key(|call| call.begin_ticks).map(|call| name(call.function));
    let open = lasts().filter(|call| call.open).max_by_key(|call| call.begin_ticks);
    let inside = open.map(|call| (name(call.function), time.clock.seconds(call.begin_ticks)));
    RankState::Unfinished { last_call, inside }
}
