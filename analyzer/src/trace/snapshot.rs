//! What `run.json` says of a snapshot: a run directory with what a running job had recorded at one moment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::wall_clock::Instant;

/// Name of a run's snapshots before their number.
pub const NAME: &str = "flight-";

/// A moment of a running job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// Why it was taken.
    pub reason: Reason,
    /// When it was taken.
    pub at: Instant,
    /// The rank that the reason names; `null`: none.
    pub rank: Option<u32>,
    /// State of the ranks' processes at that moment: `on a core`, `asleep`, `stopped`, `gone` or `unknown` (MPI_Finalize
    /// had returned).
    pub processes: BTreeMap<u32, String>,
}

/// Why a snapshot is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A process ended before MPI_Finalize.
    Dead,
    /// A process was stopped by a signal.
    Stopped,
    /// Ranks wait for each other in a circle; `rank` is the lowest.
    Deadlock,
    /// One rank is outside MPI while all others have waited longer than they ever did.
    Outside,
    /// No rank has begun or ended a call for long; `rank` is the one that most others wait for in the end.
    NoProgress,
    /// The job ended before all ranks returned from MPI_Finalize.
    Exit,
    /// The watcher received SIGUSR1.
    Signal,
    /// `gammachi watch --now`.
    Asked,
}
