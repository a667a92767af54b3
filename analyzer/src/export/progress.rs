//! What a writer tells while it works, and when it is done.

use serde::{Deserialize, Serialize};

/// Receives progress.
pub trait Progress: Sync {
    /// A stage begins; `steps` is its length, if known.
    fn stage(&self, what: &str, steps: Option<u64>);
    /// A number of steps is done.
    fn advance(&self, steps: u64);
}

/// Counts of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Written {
    /// Calls; runs of polls count once.
    pub calls: u64,
    /// Messages with both ends.
    pub messages: u64,
    /// Collective operations.
    pub collectives: u64,
}
