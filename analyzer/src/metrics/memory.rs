//! The ranks' memory, and whose grew.

use serde::Serialize;

use crate::trace::RankTrace;

/// Memory that a rank's process held, in bytes (resident).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Memory {
    /// When MPI_Init returned.
    pub first_bytes: u64,
    /// When it was last read: at MPI_Finalize, or up to a second before the last call of a rank that
    /// died.
    pub last_bytes: u64,
    /// The most until then.
    pub peak_bytes: u64,
}

impl Memory {
    /// From the rank's readings; `None` in older traces and where the system tells nothing.
    pub(super) fn at_end(trace: &RankTrace) -> Option<Self> {
        let readings = || trace.facts.usage_readings.iter().filter(|one| one.resident_bytes > 0);
        let first = readings().min_by_key(|reading| reading.ticks)?;
        let last = readings().max_by_key(|reading| reading.ticks)?;
        Some(Self {
            first_bytes: first.resident_bytes,
            last_bytes: last.resident_bytes,
            peak_bytes: readings().map(|one| one.peak_resident_bytes).max()?,
        })
    }

    pub(super) fn growth_bytes(&self) -> u64 {
        self.last_bytes.saturating_sub(self.first_bytes)
    }
}

/// A rank whose memory grew far more than that of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grown {
    pub rank: u32,
    pub memory: Memory,
    /// By how much the median of the other ranks grew.
    pub others_bytes: u64,
}
