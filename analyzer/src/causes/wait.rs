//! A wait state of one call.

use serde::{Deserialize, Serialize};

use super::states::State;

/// In place of a line: the delaying rank is not known.
pub const DELAYED_BY_UNKNOWN: u32 = u32::MAX;

/// A stretch in which a call did nothing but wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The line that waits.
    pub line: u32,
    /// When it began to wait.
    pub begin: i64,
    /// When what it waited for happened (t*), within the call. This is `begin` plus `ticks`, except
    /// for polls, which spend only part of the time inside MPI.
    pub until: i64,
    /// How long it waited, inside MPI.
    pub ticks: i64,
    /// When it left the call.
    pub left: i64,
    /// The line that it waited for, or [`DELAYED_BY_UNKNOWN`].
    pub delayed_by: u32,
    /// When the delaying rank entered the call that ended the wait (A).
    pub fulfilled: i64,
    /// Kind of wait.
    pub state: State,
    /// Function of the waiting call, as its rank numbers it.
    pub function: u16,
}

impl Wait {
    /// Whether the late line is known.
    pub fn has_delaying_rank(&self) -> bool {
        self.delayed_by != DELAYED_BY_UNKNOWN
    }
}
