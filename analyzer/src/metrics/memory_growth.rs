//! Finds a rank whose memory grew far more than that of the others.

use super::figures::RankMetrics;
use super::memory::{Grown, Memory};
use super::note::Note;

/// Growth below which no rank is named.
pub(super) const NOTABLE_BYTES: u64 = 64 << 20;

/// How many times as much as the others a rank must have grown to be named.
pub(super) const NOTABLE_TIMES: u64 = 2;

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
