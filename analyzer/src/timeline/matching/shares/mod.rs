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

use super::call::Call;
use super::channel_key::UNKNOWN_INDEX;
use super::collectives::{OpenMember, SequenceKey};
use super::share::{CollectiveCall, CollectiveCompletion, Forwarded};
use super::state::Matching;

pub use division::ProcessShare;
pub use rounds::match_in_shares;

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
