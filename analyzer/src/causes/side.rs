//! One side of a message, of a collective operation or of an access to a window.

use serde::{Deserialize, Serialize};

use crate::timeline::matching::Call;

/// One side of a message or operation: rank, line, call and its times.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Side {
    /// The rank's position in the run.
    pub rank: usize,
    pub line: u32,
    pub call: Call,
    /// When the call was entered, and when it was left.
    pub entered: i64,
    pub left: Option<i64>,
}
