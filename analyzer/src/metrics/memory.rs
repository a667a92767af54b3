//! The ranks' memory, and whose grew.

use serde::Serialize;

use super::{Note, RankMetrics};
use crate::trace::RankTrace;

/// Memory that a rank's process held, in bytes (resident).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
    pub(super) fn of(trace: &RankTrace) -> Option<Self> {
        let readings = || trace.facts.usage_readings.iter().filter(|one| one.resident_bytes > 0);
        let first = readings().min_by_key(|reading| reading.ticks)?;
        let last = readings().max_by_key(|reading| reading.ticks)?;
        Some(Self {
            first_bytes: first.resident_bytes,
            last_bytes: last.resident_bytes,
            peak_bytes: readings().map(|one| one.peak_resident_bytes).max()?,
        })
    }

    fn growth_bytes(&self) -> u64 {
        self.last_bytes.saturating_sub(self.first_bytes)
    }
}

/// A rank whose memory grew far more than that of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grown {
    /// The rank.
    pub rank: u32,
    /// Its memory.
    pub memory: Memory,
    /// By how much the median of the other ranks grew.
    pub others_bytes: u64,
}

/// Growth below which no rank is named.
const NOTABLE_BYTES: u64 = 64 << 20;
/// How many times as much as the others a rank must have grown to be named.
const NOTABLE_TIMES: u64 = 2;

/// A note on the rank that grew most, if the others grew far less.
pub(super) fn note(ranks: &[RankMetrics]) -> Option<Note> {
    let mut grown: Vec<(u64, u32, Memory)> = ranks
        .iter()
        .filter_map(|rank| rank.memory.map(|memory| (memory.growth_bytes(), rank.rank, memory)))
        .collect();
    grown.sort_by_key(|(growth, rank, _)| (std::cmp::Reverse(*growth), *rank));
    let (&(growth, rank, memory), others) = grown.split_first()?;
    let others_bytes = others.get(others.len() / 2)?.0;
    let stands_out =
        growth >= NOTABLE_BYTES && growth >= others_bytes.saturating_mul(NOTABLE_TIMES);
    stands_out.then_some(Note::MemoryGrew(Grown { rank, memory, others_bytes }))
}
