//! How sends ended.

use bincode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::call::Call;
use super::pairs::Pair;

/// The fate of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(super) enum Fate {
    /// It was sent; with the call that completed it, if known.
    Sent(Option<Call>),
    /// Its status says cancelled; it was not sent if MPI_Cancel was called on it, else it was.
    Cancelled(Call),
    /// Its completion will never be seen; it was sent unless MPI_Cancel was called on it.
    Unseen,
    /// Its operation ended with an error.
    Failed,
    /// Its rank has no more events.
    Unfinished,
}

impl Fate {
    /// The fate of a send whose request was completed without an error.
    pub fn completed(cancelled: bool, by: Call) -> Self {
        if cancelled { Self::Cancelled(by) } else { Self::Sent(Some(by)) }
    }
}

/// How much a share has to know about its sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum SendTracking {
    /// Only that they were posted.
    #[default]
    Posted,
    /// Also when they completed.
    Completed,
    /// Also whether they were sent.
    Confirmed,
}

/// Pairs whose sends are not complete, by the send's number.
#[derive(Debug, Clone, Default)]
pub(super) struct Unsettled(pub(super) FxHashMap<u64, Pair>);
