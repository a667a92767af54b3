//! Collective operations that not all members entered.

use serde::{Deserialize, Serialize};

use crate::timeline::communicators::CommunicatorEntry;

/// Ascending ranks of MPI_COMM_WORLD.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ranks(pub Vec<u32>);

/// A collective operation that some member is still inside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenCollective {
    /// Name of its blocking form.
    pub function: String,
    /// Name of its communicator.
    pub communicator: String,
    /// Number of the collective operation on its communicator, from 0; `None` for calls that are
    /// not numbered (those that create or free a communicator, and MPI_Finalize).
    pub number: Option<u64>,
    /// The ranks that are inside.
    pub inside: Ranks,
    /// The members that have not arrived.
    pub missing: Ranks,
    /// Number of members that have not arrived and whose ranks are unknown.
    pub missing_unknown: u32,
    /// Whether its members called different functions.
    pub mismatched: bool,
}

/// Largest world for which the graph is built; anything larger is a damaged header.
pub(super) const MAX_RANKS: u32 = 1 << 24;

/// The members of a communicator that are ranks of this world, ascending, and the number of members
/// that are unknown or belong to other worlds.
pub(super) fn members(entry: &CommunicatorEntry, world_size: u32) -> (Vec<u32>, u32) {
    let (mut ranks, mut unknown) = (Vec::new(), 0u32);
    for (first, stride, count) in entry.groups.iter().flat_map(|group| group.runs()) {
        let Some(first) = first else {
            unknown = unknown.saturating_add(count);
            continue;
        };
        for index in 0..i64::from(count.min(world_size)) {
            // Impossible definitions may list a rank many times.
            if ranks.len() > 2 * world_size as usize {
                break;
            }
            let rank = i64::from(first).saturating_add(index.saturating_mul(stride));
            match u32::try_from(rank).ok().filter(|rank| *rank < world_size) {
                Some(rank) => ranks.push(rank),
                None => unknown = unknown.saturating_add(1),
            }
        }
    }
    ranks.sort_unstable();
    ranks.dedup();
    (ranks, unknown)
}
