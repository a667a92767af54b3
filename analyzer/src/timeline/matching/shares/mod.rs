//! Matching shared out over threads: a run comes in; for every share of it what matching finds there goes
//! out, to a sink of its own.
//!
//! A share reads the events of its own ranks. It matches the messages to them and the collective
//! operations on its own communicators: whatever meets in a channel, or in an instance, is in one share.
//! What its ranks send to others' ranks, and call on others' communicators, it passes on as [`Mail`], and
//! what becomes of these where that matters ([`super::settlement`]). Requests, persistent and partitioned
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
//! | `mod` | who has what; mail |
//! | `rounds` | all shares through the run, in rounds |

mod rounds;

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Matching;
use super::call::Call;
use super::channel::Send;
use super::channels::{Address, ChannelKey, UNKNOWN};
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
    outboxes: Vec<Vec<Mail>>,
    thoroughness: Thoroughness,
    /// Completions of collective operations that do not block are asked for.
    completes_collectives: bool,
    /// Sends that MPI_Cancel was called on and that are not complete, by their numbers.
    doubted: FxHashSet<u64>,
    /// There is a send that was not sent, and the share is not [`Thoroughness::Doubting`].
    given_up: bool,
}

/// What happens on a rank that another share has to know.
#[derive(Debug, Clone)]
pub(super) enum Mail {
    /// A send to one of its ranks.
    Send { key: ChannelKey, send: Send },
    /// What became of one.
    Fate { to: Address, number: u64, fate: Fate },
    /// A call of a collective operation on one of its communicators: which one of the rank's.
    Collective(Box<CollectiveMail>),
    /// The completion of one, by the rank's position in the run.
    Completed { key: SequenceKey, number: u64, rank: usize, by: Option<Call> },
    /// The rank at this position in the run has no more events.
    End { rank: usize, calls: Box<Calls> },
}

/// See [`Mail::Collective`].
#[derive(Debug, Clone)]
pub(super) struct CollectiveMail {
    key: SequenceKey,
    number: u64,
    function: u16,
    member: OpenMember,
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

    #[inline]
    pub(super) fn post(&mut self, to: usize, mail: Mail) {
        if let Some(outbox) = self.outboxes.get_mut(to) {
            outbox.push(mail);
        }
    }

    /// Passes the end of a rank on to all others.
    fn post_end(&mut self, rank: usize, calls: &Calls) {
        for (to, outbox) in self.outboxes.iter_mut().enumerate() {
            if to != self.number {
                outbox.push(Mail::End { rank, calls: Box::new(calls.clone()) });
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
        let mail = CollectiveMail { key, number, function, member };
        share.post(to, Mail::Collective(Box::new(mail)));
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
                share.post(to, Mail::Completed { key, number, rank, by });
                return;
            }
        }
        self.collectives.completed(key, number, (rank, place), by);
    }

    fn take_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Send { key, send } => {
                self.take_send((key, UNKNOWN), send);
            }
            Mail::Fate { to, number, fate } => self.settle_here((to.0, UNKNOWN), number, fate),
            Mail::Collective(mail) => {
                let CollectiveMail { key, number, function, member } = *mail;
                self.collectives.call(key, number, function, member);
            }
            Mail::Completed { key, number, rank, by } => {
                self.collectives.completed(key, number, (rank, usize::MAX), by);
            }
            Mail::End { rank, calls } => self.end_of_rank(rank, &calls),
        }
    }

    fn has_given_up(&self) -> bool {
        self.share.as_ref().is_some_and(|share| share.given_up)
    }
}
