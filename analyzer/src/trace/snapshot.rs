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
    /// The same on the counter of a rank, which nobody sets; `null`: no rank was there.
    #[serde(default)]
    pub counter: Option<CounterMoment>,
    /// The rank that the reason names; `null`: none.
    pub rank: Option<u32>,
    /// State of the ranks' processes at that moment: `on a core`, `asleep`, `stopped`, `gone` or `unknown` (MPI_Finalize
    /// had returned).
    pub processes: BTreeMap<u32, String>,
    /// Ranks that were asked for their stacks, but have none, and why.
    #[serde(default)]
    pub unanswered: BTreeMap<u32, Unanswered>,
}

impl Reason {
    /// Whether ranks do not move.
    pub fn is_standstill(self) -> bool {
        matches!(
            self,
            Self::Stopped | Self::Deadlock | Self::Outside | Self::NoProgress | Self::Vanished
        )
    }
}

/// Why a rank that was to be asked for its stack has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unanswered {
    /// It did not answer within a second.
    Silent,
    /// Its thread blocks the signal.
    Blocked,
    /// The program uses the signal itself.
    Taken,
    /// A debugger is attached, which would meet the signal.
    Traced,
    /// Outside MPI it sleeps in a system call that the signal would end early.
    Sleeping,
}

/// A moment on the counter of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CounterMoment {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Its counter.
    pub ticks: u64,
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
    /// Ranks wait for each other in a circle; `rank` is the one whose message is missing while it is in a collective
    /// operation already, else the lowest.
    Deadlock,
    /// One rank is outside MPI while all others have waited longer than they ever did.
    Outside,
    /// No rank has begun or ended a call for long; `rank` is the one that most others wait for in the end.
    NoProgress,
    /// An iteration took far longer than usual; `rank` is the one that took longer outside MPI.
    Slow,
    /// At the pace at which ranks grow, memory will be used up soon; `rank` is the one that grows most.
    Memory,
    /// The batch job is about to end.
    Limit,
    /// All ranks stand still, and a host was not heard of any more; `rank` is its lowest.
    Vanished,
    /// The job ended before all ranks returned from MPI_Finalize.
    Exit,
    /// The watcher received SIGUSR1.
    Signal,
    /// `gammachi watch --now`.
    Asked,
}
