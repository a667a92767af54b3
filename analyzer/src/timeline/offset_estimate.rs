//! How offsets between hosts were estimated that no exchange measured.

use serde::Serialize;

/// How offsets between counters were estimated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OffsetEstimate {
    /// Messages between ranks of different counters.
    pub messages: u64,
    /// Collective operations of ranks of different counters.
    pub collectives: u64,
    /// Ranks without an estimate, because no messages went both ways between their host and those
    /// whose clocks are known.
    pub unconnected: Vec<u32>,
    /// Ranks without an estimate, because the bounds contradict each other.
    pub contradictory: Vec<u32>,
}
