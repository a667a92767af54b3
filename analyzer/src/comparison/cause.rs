//! Finds the cause of a difference: counts that changed, otherwise the place and the ranks whose
//! time changed most.
//!
//! A rank that computes longer makes the others wait. In the mean over the ranks, most of the
//! difference is then waiting, so the largest difference of means is not the cause. The measure
//! used here is the change of the rank that changed most: how much shorter the run would be if this
//! rank were as before.

use serde::Serialize;

use super::counts::Change;
use super::place::CodeLocation;

/// A rank has changed if its time changed by at least this share of that of the rank that changed
/// most.
pub(super) const CHANGED_SHARE: f64 = 0.5;

/// If more than this share of the ranks changed, all ranks count as changed.
pub(super) const ALL_SHARE: f64 = 0.75;

/// The kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// Ranks exchange messages with other ranks than before.
    Partners,
    /// More or fewer calls.
    Calls,
    /// Messages or collective operations have another size.
    Bytes,
    /// A place computes longer, or less long.
    Computing,
    /// A wait that is not explained by the computing of any place.
    Waiting,
    /// A call takes longer without waiting.
    Transfer,
    /// Time in the recorder.
    Recorder,
    /// Start and end of the ranks.
    StartAndEnd,
    /// Calls of which only totals are kept.
    Other,
    /// All computing changed alike.
    Machine,
}

/// Which ranks changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichRanks {
    /// All, or nearly all.
    All,
    /// These: first and last rank of each group.
    Some(Vec<(u32, u32)>),
}

/// The cause of a difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// The kind of change.
    pub kind: CauseKind,
    /// Place in the program, for counts with a call site and for times.
    pub spot: Option<CodeLocation>,
    /// The ranks; unknown for counts.
    pub ranks: Option<WhichRanks>,
    /// How much longer a changed rank takes in the run, nanoseconds; unknown for counts.
    pub ns: Option<f64>,
    /// The count that changed, for counts.
    pub change: Option<Change>,
}
