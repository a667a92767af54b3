//! Matches a run with several threads, in one process or several. Each thread has a share of the
//! run and passes what it finds to a sink of its own.
//!
//! A share reads the events of its own ranks. It matches the messages to these ranks, and combines
//! every n-th collective operation on each communicator, so that each channel and each instance
//! belongs to one share. A share forwards its ranks' sends to other ranks and their calls of other
//! collective operations, and, if necessary, the fates of these sends ([`super::settlement`]). Requests,
//! persistent and partitioned operations concern one rank only.
//!
//! The order in which the shares read events does not matter as long as each rank's own order is
//! kept: MPI's rule only concerns orders on each rank, and what stays open is known when all ranks
//! have ended. Only one question would need the order of time: whether a send was sent before it
//! was cancelled or failed. The send's completion answers it, too, so a run with such a send is
//! matched again, and its sends wait for their completions.
//!
//! | file | content |
//! |---|---|
//! | `mod` | what each share owns, and what it forwards |
//! | `division` | the shares of all processes |
//! | `ranks` | reading the events of a share's ranks in turn |
//! | `rounds` | running all shares in rounds |
//! | `exchange` | what passes between shares after a round, and between processes |
//! | `wire` | what passes between processes, in few bytes |
//! | `unmet` | unfinished sends that another share matches |
//! | `barrier` | the barrier between rounds |

mod barrier;
mod division;
mod exchange;
mod ranks;
mod rounds;
mod unmet;
mod wire;

use std::ops::Range;
use std::sync::Arc;

use bincode::{Decode, Encode};
use rustc_hash::FxHashSet;

use super::Matching;
use super::call::Call;
use super::channel::Send;
use super::channels::{ChannelKey, UNKNOWN_INDEX};
use super::collectives::{CallCounts, OpenMember, SequenceKey};
use super::settlement::{Fate, SendTracking};

pub use division::ProcessShare;
pub use rounds::match_in_shares;

/// The sends of a share are numbered from the share's number times this.
const SENDS_PER_SHARE: u64 = 1 << 48;

/// What one share owns, and what it has to forward.
#[derive(Debug, Clone)]
pub(super) struct Share {
    /// Ranks of the world whose events it reads, and to which it matches messages.
    ranks: Range<u32>,
    number: usize,
    /// First rank of each share.
    begins: Arc<[u32]>,
    /// What to forward to each share.
    outboxes: Vec<Forwarded>,
    tracking: SendTracking,
    /// Whether completions of non-blocking collective operations are needed.
    completes_collectives: bool,
    /// Numbers of sends on which MPI_Cancel was called and that are not complete.
    cancel_requested: FxHashSet<u64>,
    /// A send was not sent, and the share does not use [`SendTracking::Confirmed`].
    must_restart: bool,
}

/// What one share forwards to another in a round. The receiver handles it in the order of the
/// fields: the fate of a send after the send, the end of a rank last.
#[derive(Debug, Clone, Default)]
pub(super) struct Forwarded {
    /// Sends to the receiver's ranks.
    sends: Vec<(ChannelKey, Send)>,
    /// Fates of such sends, by their numbers.
    fates: Vec<(ChannelKey, u64, Fate)>,
    /// Calls of collective operations that the receiver combines.
    collectives: Vec<CollectiveCall>,
    /// Completions of such operations.
    completions: Vec<CollectiveCompletion>,
    /// Ranks that have no more events, by their positions in the run.
    ends: Vec<(usize, CallCounts)>,
}

/// A rank's call of a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CollectiveCall {
    key: SequenceKey,
    /// Number of the call in its sequence on the rank.
    number: u64,
    function: u16,
    member: OpenMember,
}

/// Completion of a collective operation by the rank at a position of the run.
#[derive(Debug, Clone, Encode, Decode)]
struct CollectiveCompletion {
    key: SequenceKey,
    number: u64,
    rank: usize,
    by: Option<Call>,
}

impl Forwarded {
    fn is_empty(&self) -> bool {
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
    fn of_collective(&self, key: SequenceKey, number: u64) -> usize {
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
    fn forward_end(&mut self, rank: usize, calls: &CallCounts) {
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

impl Matching<'_> {
    /// Adds a rank's call of a collective operation with its number in the sequence, or forwards it
    /// to the share that combines the operation; returns the member's index in the instance.
    pub(super) fn collective(
        &mut self,
        key: SequenceKey,
        number: u64,
        function: u16,
        member: OpenMember,
    ) -> usize {
        let Some(share) = &mut self.share else {
            return self.collectives.call(key, number, function, member);
        };
        let member = match share.completes_collectives {
            true => member,
            false => OpenMember { pending: false, completed: Some(member.call), ..member },
        };
        let to = share.of_collective(key, number);
        if to == share.number {
            return self.collectives.call(key, number, function, member);
        }
        share.outboxes[to].collectives.push(CollectiveCall { key, number, function, member });
        usize::MAX
    }

    /// Completes a collective operation of the rank at a position of the run. `by` is `None` if the
    /// completion will never be known.
    pub(super) fn complete_collective(
        &mut self,
        key: SequenceKey,
        number: u64,
        (rank, index): (usize, usize),
        by: Option<Call>,
    ) {
        if let Some(share) = &mut self.share {
            if !share.completes_collectives {
                return;
            }
            let to = share.of_collective(key, number);
            if to != share.number {
                let completion = CollectiveCompletion { key, number, rank, by };
                share.outboxes[to].completions.push(completion);
                return;
            }
        }
        self.collectives.completed(key, number, (rank, index), by);
    }

    /// Handles what another share forwarded; calls `emit` repeatedly, to emit what was matched.
    fn handle_forwarded(&mut self, from: &mut Forwarded, mut emit: impl FnMut(&mut Self)) {
        for (key, send) in from.sends.drain(..) {
            self.add_send(&mut (key, UNKNOWN_INDEX), send);
            emit(self);
        }
        for (key, number, fate) in from.fates.drain(..) {
            self.settle_here((key, UNKNOWN_INDEX), number, fate);
            emit(self);
        }
        for CollectiveCall { key, number, function, member } in from.collectives.drain(..) {
            self.collectives.call(key, number, function, member);
            emit(self);
        }
        for CollectiveCompletion { key, number, rank, by } in from.completions.drain(..) {
            self.collectives.completed(key, number, (rank, usize::MAX), by);
        }
        for (rank, calls) in from.ends.drain(..) {
            self.end_of_rank(rank, &calls);
        }
    }

    fn must_restart(&self) -> bool {
        self.share.as_ref().is_some_and(|share| share.must_restart)
    }
}
