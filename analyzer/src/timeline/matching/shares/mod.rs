//! Matching shared out over threads: a run comes in; for every share of it what matching finds there goes
//! out, to a sink of its own.
//!
//! A share reads the events of its own ranks. It matches the messages to them and the collective
//! operations on its own communicators: whatever meets in a channel, or in an instance, is in one share.
//! What its ranks send to others' ranks, and call on others' communicators, it forwards, and what becomes of
//! these where that matters ([`super::settlement`]). Requests, persistent and partitioned
//! operations are each rank's own.
//!
//! The order in which the ranks' events are taken does not matter then, as long as each rank's own is
//! kept: MPI's rule speaks of orders on each rank only, and what stays open is known when all have ended.
//! The one thing that the order of time would tell, whether a send was sent before it was cancelled or
//! failed, its completion says too: a run in which there is such a send is begun anew, and its sends wait
//! for their completions.
//!
//! | file | its idea |
//! |---|---|
//! | `mod` | who has what, and what is forwarded |
//! | `ranks` | the events of a share's ranks, in turns |
//! | `rounds` | all shares through the run, in rounds |
//! | `meeting` | where their threads wait for each other |

mod meeting;
mod ranks;
mod rounds;

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Matching;
use super::call::Call;
use super::channel::Send;
use super::channels::{ChannelKey, UNKNOWN};
use super::collectives::{Calls, OpenMember, SequenceKey};
use super::settlement::{Fate, Thoroughness};

pub use rounds::match_in_shares;

/// Sends of a share have numbers of their own, from its own number times this on.
const SENDS_OF_A_SHARE: u64 = 1 << 48;

/// What one share has to do with.
#[derive(Debug, Clone)]
pub(super) struct Share {
    /// Ranks of the world whose events are read, and whose messages received are matched.
    ranks: Range<u32>,
    number: usize,
    /// First rank of every share.
    begins: Arc<[u32]>,
    /// For each share what it has to know.
    outboxes: Vec<Forwarded>,
    thoroughness: Thoroughness,
    /// Completions of collective operations that do not block are asked for.
    completes_collectives: bool,
    /// Sends that MPI_Cancel was called on and that are not complete, by their numbers.
    doubted: FxHashSet<u64>,
    /// There is a send that was not sent, and the share is not [`Thoroughness::Doubting`].
    given_up: bool,
}

/// What the ranks of one share did in a round that another share has to know. It is taken in the order of
/// the fields: what becomes of a send behind the send, the end of a rank last.
#[derive(Debug, Clone, Default)]
pub(super) struct Forwarded {
    /// Sends to its ranks.
    sends: Vec<(ChannelKey, Send)>,
    /// What became of them, by their numbers.
    fates: Vec<(ChannelKey, u64, Fate)>,
    /// Calls of collective operations on its communicators.
    collectives: Vec<CollectiveCall>,
    /// Completions of such operations.
    completions: Vec<CollectiveCompletion>,
    /// Ranks that have no more events, by their positions in the run.
    ends: Vec<(usize, Calls)>,
}

/// A rank's call of a collective operation.
#[derive(Debug, Clone)]
struct CollectiveCall {
    key: SequenceKey,
    /// Which of the rank's calls in that sequence it is.
    number: u64,
    function: u16,
    member: OpenMember,
}

/// A rank, by its position in the run, completed a collective operation.
#[derive(Debug, Clone)]
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
    /// How much of the sends is passed on.
    #[inline]
    pub(super) fn thoroughness(&self) -> Thoroughness {
        self.thoroughness
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

    fn of_communicator(&self, communicator: u32) -> usize {
        // From the last on: the first ranks' shares tend to have more to do.
        let shares = self.begins.len();
        shares - 1 - communicator as usize % shares
    }

    /// What the share that matches the messages to a rank has to know; `None` where it is this one.
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

    /// Forwards what became of a send, if it is matched in another share.
    #[inline]
    pub(super) fn forwards_fate(&mut self, key: ChannelKey, number: u64, fate: Fate) -> bool {
        let outbox = self.outbox_of_rank(key.destination);
        outbox.map(|outbox| outbox.fates.push((key, number, fate))).is_some()
    }

    /// Forwards the end of a rank to all others.
    fn forward_end(&mut self, rank: usize, calls: &Calls) {
        for (to, outbox) in self.outboxes.iter_mut().enumerate() {
            if to != self.number {
                outbox.ends.push((rank, calls.clone()));
            }
        }
    }

    /// MPI_Cancel was called on a send of its ranks.
    pub(super) fn doubted(&mut self, number: u64) {
        self.doubted.insert(number);
    }

    /// What is to be done about what became of a send of its ranks. Libraries leave the status of a send
    /// mostly unwritten: that it was cancelled is believed only where MPI_Cancel was called.
    #[inline]
    pub(super) fn settles(&mut self, number: u64, fate: Fate) -> Option<Fate> {
        let doubted = !self.doubted.is_empty() && self.doubted.remove(&number);
        let fate = match fate {
            Fate::Cancelled(by) if !doubted => Fate::Sent(Some(by)),
            fate => fate,
        };
        match self.thoroughness {
            Thoroughness::Doubting => Some(fate),
            _ if matches!(fate, Fate::Cancelled(_) | Fate::Failed) => {
                self.given_up = true;
                None
            }
            Thoroughness::Completed => Some(fate),
            Thoroughness::Posted => None,
        }
    }
}

impl Matching<'_> {
    /// Takes the call of a collective operation that has that number among its rank's, or passes it on to
    /// the share that has the communicator; gives the member's place in its instance.
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
        let to = share.of_communicator(key.communicator);
        if to == share.number {
            return self.collectives.call(key, number, function, member);
        }
        share.outboxes[to].collectives.push(CollectiveCall { key, number, function, member });
        usize::MAX
    }

    /// Completes a collective operation of a rank, by its position in the run; `None` when that will not
    /// be known.
    pub(super) fn complete_collective(
        &mut self,
        key: SequenceKey,
        number: u64,
        (rank, place): (usize, usize),
        by: Option<Call>,
    ) {
        if let Some(share) = &mut self.share {
            if !share.completes_collectives {
                return;
            }
            let to = share.of_communicator(key.communicator);
            if to != share.number {
                let completion = CollectiveCompletion { key, number, rank, by };
                share.outboxes[to].completions.push(completion);
                return;
            }
        }
        self.collectives.completed(key, number, (rank, place), by);
    }

    /// Takes what another share forwarded; `handed_on` is called now and then, to hand on what was matched.
    fn take_forwarded(&mut self, from: &mut Forwarded, mut handed_on: impl FnMut(&mut Self)) {
        for (key, send) in from.sends.drain(..) {
            self.take_send(&mut (key, UNKNOWN), send);
            handed_on(self);
        }
        for (key, number, fate) in from.fates.drain(..) {
            self.settle_here((key, UNKNOWN), number, fate);
            handed_on(self);
        }
        for CollectiveCall { key, number, function, member } in from.collectives.drain(..) {
            self.collectives.call(key, number, function, member);
            handed_on(self);
        }
        for CollectiveCompletion { key, number, rank, by } in from.completions.drain(..) {
            self.collectives.completed(key, number, (rank, usize::MAX), by);
        }
        for (rank, calls) in from.ends.drain(..) {
            self.end_of_rank(rank, &calls);
        }
    }

    fn has_given_up(&self) -> bool {
        self.share.as_ref().is_some_and(|share| share.given_up)
    }
}
