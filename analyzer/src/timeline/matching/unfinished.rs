//! Operations that were not complete when their rank's events ended.

use std::collections::HashSet;

use super::channel_key::Address;
use super::requests::Work;

/// An operation that its rank did not complete.
#[derive(Debug, Clone)]
pub(super) struct UnfinishedOperation {
    pub(super) rank: u32,
    pub(super) request: Option<u32>,
    pub(super) work: Work,
}

/// The unfinished operations of all ranks that have ended so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Unfinished {
    pub(super) operations: Vec<UnfinishedOperation>,
    /// Communicators and ranks with an incomplete wildcard receive: sends to them are kept.
    pub(super) wildcards: HashSet<(u32, u32)>,
}

impl Unfinished {
    /// The sends among them, with their channels and numbers.
    pub fn sends(&self) -> impl Iterator<Item = (Address, u64)> + '_ {
        self.operations.iter().filter_map(|operation| match &operation.work {
            Work::Send { to, number, .. } => Some((*to, *number)),
            Work::SendReceive(both) => both.send,
            _ => None,
        })
    }

    /// Whether a rank without further events may still receive any message on a communicator.
    pub fn has_wildcard(&self, communicator: u32, rank: u32) -> bool {
        self.wildcards.contains(&(communicator, rank))
    }
}

/// Numbers of unfinished sends that met a receive.
#[derive(Debug, Default)]
pub(super) struct MatchedSends(pub(super) HashSet<u64>);

impl MatchedSends {
    /// The sends among `unfinished` for which `is_unmet` does not hold.
    pub fn new(unfinished: &Unfinished, is_unmet: impl Fn(Address, u64) -> bool) -> Self {
        let sends = unfinished.sends().filter(|(to, number)| !is_unmet(*to, *number));
        Self(sends.map(|(_, number)| number).collect())
    }
}
