//! A stretch in which all ranks repeat the same calls, and its iterations.

use crate::causes::local_site::LocalSite;
use crate::causes::sampled_parts::PhaseSamples;

/// A stretch of the run in which all ranks repeat the same calls.
#[derive(Debug, Clone)]
pub struct Phase {
    /// The call that begins an iteration, with the numbers of the rank at position 0.
    pub(in crate::causes) anchor: LocalSite,
    /// The same as a context of the run.
    pub context: u32,
    /// By rank: begin of each iteration, and end of the last one.
    pub(super) begins: Vec<Vec<i64>>,
    /// Latest begin of each iteration on any rank, and latest end of the last one.
    pub bounds: Vec<i64>,
    /// In order.
    pub iterations: Vec<Iteration>,
    /// Ticks outside MPI by rank, over all iterations.
    pub(super) computing: Vec<i64>,
    /// Ticks outside MPI of each rank in each iteration, rank by rank; empty if there are too many.
    pub computing_of_each: Vec<i64>,
    /// Sum over the iterations of the busiest rank's computing time.
    pub(super) busiest: i64,
    /// What was sampled in its iterations.
    pub samples: PhaseSamples,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Iteration {
    /// Its length: from its latest begin to the latest begin of the next.
    pub ticks: i64,
    /// Ticks outside MPI, over all ranks.
    pub computing: i64,
    /// Ticks of waiting for a known rank, over all ranks.
    pub waiting: i64,
    /// The rank that computes longest, by its position.
    pub slowest: usize,
    /// The line for which the others wait longest; `None` if nobody waits.
    pub delayed_by: Option<u32>,
}
