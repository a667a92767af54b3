//! How a rank's counter was aligned.

use serde::Serialize;

/// How a rank's counter was aligned with the global timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Alignment {
    /// The counter is the reference itself.
    #[serde(rename = "reference")]
    Reference,
    /// By measured exchanges.
    #[serde(rename = "measured")]
    Measured,
    /// The exchange found no offset from the invariant counter of a rank on the same host: both
    /// read one counter.
    #[serde(rename = "shared counter")]
    SharedCounter,
    /// No exchange, but another rank of the host has a clock and both counters are invariant:
    /// assumed to be one counter.
    #[serde(rename = "assumed shared")]
    AssumedShared,
    /// No exchange; from messages between its host and others.
    #[serde(rename = "estimated")]
    Estimated,
    /// Only by the system's wall clock, or not at all.
    #[serde(rename = "unaligned")]
    Unaligned,
}
