//! What one share of a run owns, and what it forwards to others.

use std::ops::Range;
use std::sync::Arc;

use bincode::{Decode, Encode};
use rustc_hash::FxHashSet;

use super::call::Call;
use super::channel_key::ChannelKey;
use super::collectives::{CallCounts, OpenMember, SequenceKey};
use super::fate::{Fate, SendTracking};
use super::in_flight::Send;

/// The sends of a share are numbered from the share's number times this.
pub(super) const SENDS_PER_SHARE: u64 = 1 << 48;

/// What one share owns, and what it has to forward.
#[derive(Debug, Clone)]
pub(super) struct Share {
    /// Ranks of the world whose events it reads, and to which it matches messages.
    pub(super) ranks: Range<u32>,
    pub(super) number: usize,
    /// First rank of each share.
    pub(super) begins: Arc<[u32]>,
    /// What to forward to each share.
    pub(super) outboxes: Vec<Forwarded>,
    pub(super) tracking: SendTracking,
    /// Whether completions of non-blocking collective operations are needed.
    pub(super) completes_collectives: bool,
    /// Numbers of sends on which MPI_Cancel was called and that are not complete.
    pub(super) cancel_requested: FxHashSet<u64>,
    /// A send was not sent, and the share does not use [`SendTracking::Confirmed`].
    pub(super) must_restart: bool,
}

/// What one share forwards to another in a round. The receiver handles it in the order of the
/// fields: the fate of a send after the send, the end of a rank last.
#[derive(Debug, Clone, Default)]
pub(super) struct Forwarded {
    /// Sends to the receiver's ranks.
    pub(super) sends: Vec<(ChannelKey, Send)>,
    /// Fates of such sends, by their numbers.
    pub(super) fates: Vec<(ChannelKey, u64, Fate)>,
    /// Calls of collective operations that the receiver combines.
    pub(super) collectives: Vec<CollectiveCall>,
    /// Completions of such operations.
    pub(super) completions: Vec<CollectiveCompletion>,
    /// Ranks that have no more events, by their positions in the run.
    pub(super) ends: Vec<(usize, CallCounts)>,
}

/// A rank's call of a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CollectiveCall {
    pub(super) key: SequenceKey,
    /// Number of the call in its sequence on the rank.
    pub(super) number: u64,
    pub(super) function: u16,
    pub(super) member: OpenMember,
}

/// Completion of a collective operation by the rank at a position of the run.
#[derive(Debug, Clone, Encode, Decode)]
pub(super) struct CollectiveCompletion {
    pub(super) key: SequenceKey,
    pub(super) number: u64,
    pub(super) rank: usize,
    pub(super) by: Option<Call>,
}

impl Forwarded {
    pub(super) fn is_empty(&self) -> bool {
        let Self { sends, fates, collectives, completions, ends } = self;
        let empty = sends.is_empty() && fates.is_empty() && collectives.is_empty();
        empty && completions.is_empty() && ends.is_empty()
    }
}

impl Share {
    /// How much the share has to know about its sends.
    #[inline]
    pub(super) fn tracking(&self) -> SendTracking {
        self.tracking
    }

    /// Whether the messages to a rank are matched here.
    #[inline]
    pub(super) fn has_rank(&self, world_rank: u32) -> bool {
        self.ranks.contains(&world_rank)
    }

    #[inline]
    pub(super) fn of_rank(&self, world_rank: u32) -> usize {
        self.begins.partition_point(|begin| *begin <= world_rank).saturating_sub(1)
    }

    /// The share that combines a collective operation: in turn, as most are on few communicators.
    pub(super) fn of_collective(&self, key: SequenceKey, number: u64) -> usize {
        ((u64::from(key.communicator) + number) % self.begins.len() as u64) as usize
    }

    /// The outbox for the share that matches the messages to a rank; `None` if it is this share.
    #[inline]
    fn outbox_of_rank(&mut self, world_rank: u32) -> Option<&mut Forwarded> {
        if self.has_rank(world_rank) {
            return None;
        }
        let to = self.of_rank(world_rank);
        self.outboxes.get_mut(to)
    }

    /// Forwards a send, if it is matched in another share.
    #[inline]
    pub(super) fn forwards_send(&mut self, key: ChannelKey, send: Send) -> bool {
        let outbox = self.outbox_of_rank(key.destination);
        outbox.map(|outbox| outbox.sends.push((key, send))).is_some()
    }

    /// Forwards the fate of a send, if it is matched in another share.
    #[inline]
    pub(super) fn forwards_fate(&mut self, key: ChannelKey, number: u64, fate: Fate) -> bool {
        let outbox = self.outbox_of_rank(key.destination);
        outbox.map(|outbox| outbox.fates.push((key, number, fate))).is_some()
    }

    /// Forwards the end of a rank to all other shares.
    pub(super) fn forward_end(&mut self, rank: usize, calls: &CallCounts) {
        for (to, outbox) in self.outboxes.iter_mut().enumerate() {
            if to != self.number {
                outbox.ends.push((rank, calls.clone()));
            }
        }
    }

    /// Records that MPI_Cancel was called on a send of its ranks.
    pub(super) fn cancel_requested(&mut self, number: u64) {
        self.cancel_requested.insert(number);
    }

    /// The fate of a send of its ranks that has to be applied, if any. Libraries often do not write
    /// the status of a send, so it counts as cancelled only if MPI_Cancel was called.
    #[inline]
    pub(super) fn filter_fate(&mut self, number: u64, fate: Fate) -> Option<Fate> {
        let cancel_requested =
            !self.cancel_requested.is_empty() && self.cancel_requested.remove(&number);
        let fate = match fate {
            Fate::Cancelled(by) if !cancel_requested => Fate::Sent(Some(by)),
            Fate::Unseen if !cancel_requested => Fate::Sent(None),
            fate => fate,
        };
        match self.tracking {
            SendTracking::Confirmed => Some(fate),
            _ if matches!(fate, Fate::Cancelled(_) | Fate::Unseen | Fate::Failed) => {
                self.must_restart = true;
                None
            }
            SendTracking::Completed => Some(fate),
            SendTracking::Posted => None,
        }
    }
}
