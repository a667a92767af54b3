//! All ranks' counters on one clock.

use serde::Serialize;

use crate::trace::FileDiagnosis;

use super::fault::{TimeFault, TimeNote};
use super::last_activity::LastActivity;
use super::offset_estimate::OffsetEstimate;
use super::rank_time::RankTime;
use super::utc::Utc;

/// What the elapsed time τ_i of a rank covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ElapsedScope {
    /// From the return of MPI_Init to the entry of MPI_Finalize.
    #[default]
    Mpi,
    /// From the begin of its process to its end.
    Process,
}

/// All ranks' counters on one clock.
#[derive(Debug, Clone, PartialEq)]
pub struct GlobalTimeline {
    /// One entry per rank of [`Run::ranks`](crate::trace::Run::ranks), in the same order.
    pub ranks: Vec<RankTime>,
    /// Largest error bound of the measured ranks over their stretches, nanoseconds; `None` if no
    /// rank was measured.
    pub bound_ns: Option<f64>,
    /// The same, but only at the begin and end of the ranks' stretches, next to the exchanges.
    pub ends_bound_ns: Option<f64>,
    /// How offsets were estimated that no exchange measured; `None` if none was missing, or nothing
    /// was recorded that could tell.
    pub estimate: Option<OffsetEstimate>,
    /// What the causal correction changed; `None` for the clocks as measured.
    pub causal: Option<CausalCorrection>,
    /// Where the timeline lies in UTC, according to the reference rank's system clock.
    pub utc: Option<Utc>,
    /// The job's last sign of life; `None` if every rank finished.
    pub last_activity: Option<LastActivity>,
    /// Whether every rank is aligned.
    pub aligned: bool,
    /// What the ranks' stretches cover.
    pub scope: ElapsedScope,
    /// Faults in stretches and clocks.
    pub diagnoses: Vec<FileDiagnosis<TimeFault>>,
    /// What a reader should know about the times.
    pub notes: Vec<TimeNote>,
}

/// Summary of what a correction changed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CausalCorrection {
    /// Messages examined.
    pub messages: u64,
    /// Messages that arrived before they were sent.
    pub early_before: u64,
    /// Messages that still do after the correction.
    pub early_after: u64,
    /// Receives that were moved because of their own message.
    pub moved_receives: u64,
    /// Ranks whose times were changed.
    pub changed_ranks: u64,
    /// Largest distance that a receive was moved because of its own message, nanoseconds.
    pub largest_jump_ns: f64,
    /// Largest shift of any send or receive, nanoseconds.
    pub largest_shift_ns: f64,
}
