//! What a pass over the events sums up for a rank and its threads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::accumulator::{CallSums, PollSums};

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
    pub mpi_ticks: u64,
    /// Ticks in the recorder.
    pub tool_ticks: u64,
    /// Useful ticks.
    pub compute_ticks: u64,
}
