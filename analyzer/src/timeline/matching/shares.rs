//! Matching shared out over threads: a run whose ranks all finished comes in; for every share of it
//! what matching finds there goes out, to a sink of its own.
//!
//! A share is the messages to some of the ranks and the collective operations on some of the
//! communicators: whatever meets in a channel, or in an instance, is in one share. Each share reads all
//! events, but of a rank that is not its own only the sends to its ranks count, and the collective
//! calls on its communicators; requests matter on their own rank only, as the sends of a finished rank
//! are sent whether or not somebody waits for them.
//!
//! The order in which the ranks' events are taken does not matter then, so they are taken in turns of
//! many: what is in flight grows by at most [`EVENTS_IN_FLIGHT`] events, or [`LEAST_TURN`] a rank.
//!
//! Where this does not hold, all is left to [`super::match_run`]: ranks without a file or not finished,
//! cancelled sends (whether they met a receive depends on time), persistent and partitioned operations.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use trace_format::layout::{COMMUNICATOR_WORLD, Slot};
use trace_format::reader::Event;

use super::channels::Post;
use super::collectives::SequenceKey;
use super::operations::Operation;
use super::rank_state::{RankState, arguments_of};
use super::{MatchSink, Matcher, Matching, MatchingSummary, is_possible};
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::trace::Run;

/// Events by which all ranks together may run ahead, and what a rank's turn has at least and at most.
const EVENTS_IN_FLIGHT: usize = 1 << 13;
const LEAST_TURN: usize = 8;
const MOST_TURN: usize = 512;
/// Every share reads all events: more of them gain little.
const MOST_SHARES: usize = 16;
/// Steps between two looks at whether another share gave up.
const STEPS: u32 = 1 << 12;

/// What one thread matches.
#[derive(Debug, Clone)]
pub(super) struct Share {
    /// Ranks of the world whose messages received are matched.
    ranks: Range<u32>,
    number: u32,
    count: u32,
}

impl Share {
    /// Whether the messages to a rank are matched here.
    #[inline]
    pub fn has_rank(&self, world_rank: u32) -> bool {
        self.ranks.contains(&world_rank)
    }

    /// Whether a send may matter here; `position` is its rank's in a run without missing files.
    #[inline]
    pub fn meets(&self, position: usize, send: &Slot) -> bool {
        // On MPI_COMM_WORLD a peer is that rank of the world.
        self.has_rank(position as u32)
            || send.communicator() != COMMUNICATOR_WORLD
            || u32::try_from(send.peer).is_ok_and(|peer| self.has_rank(peer))
    }

    fn has_communicator(&self, communicator: u32) -> bool {
        // From the last on: the first ranks' shares tend to have more to do.
        communicator % self.count == self.count - 1 - self.number
    }
}

impl Matching<'_> {
    /// Whether the messages to a rank are matched here.
    #[inline]
    pub(super) fn has_rank(&self, world_rank: u32) -> bool {
        self.share.as_ref().is_none_or(|share| share.has_rank(world_rank))
    }

    /// Whether the collective operations on a communicator are matched here.
    #[inline]
    pub(super) fn has_communicator(&self, communicator: u32) -> bool {
        self.share.as_ref().is_none_or(|share| share.has_communicator(communicator))
    }
}

impl Operation {
    /// Whether a share alone cannot tell what it does.
    fn needs_all(self) -> bool {
        matches!(
            self,
            Self::SendInit
                | Self::ReceiveInit
                | Self::PartitionedSendInit
                | Self::PartitionedReceiveInit
                | Self::CollectiveInit
                | Self::Start
                | Self::Startall
        )
    }
}

impl RankState<'_> {
    /// Takes an event as far as a share has to; `false` when it is one of a rank of its own, to be
    /// taken as any.
    #[inline]
    pub(super) fn take_for_share(
        &mut self,
        post: Post,
        event: &Event,
        (operation, function): (Operation, u16),
        m: &mut Matching,
    ) -> bool {
        let Some(share) = &m.share else { return false };
        if operation.needs_all() {
            m.given_up = true;
            return true;
        }
        if share.has_rank(self.rank) {
            return false;
        }
        let communicator = || m.communicators.resolve(self.index, event.communicator, event.begin);
        let makes_request = matches!(operation, Operation::Isend | Operation::IsendReceive);
        let failed = makes_request && event.request == 0 && event.end.is_some();
        match operation {
            Operation::Send
            | Operation::Isend
            | Operation::SendReceive
            | Operation::IsendReceive
                if !failed =>
            {
                let arguments = arguments_of(event, communicator());
                self.send(post, &arguments, false, m);
            }
            Operation::Collective | Operation::Icollective => {
                if let Some(standing) = communicator()
                    && m.has_communicator(standing.communicator)
                {
                    let key = SequenceKey { communicator: standing.communicator, lane: 0 };
                    let bytes = (event.sent, event.received);
                    self.collective(post, key, function, false, bytes, m);
                }
            }
            _ => {}
        }
        m.hand_on();
        true
    }
}

/// Whether a run may be matched in shares.
pub fn is_shareable(run: &Run) -> bool {
    is_possible(run)
        && run.missing.is_empty()
        && run.ranks.iter().all(|trace| trace.facts.finalized())
}

/// Ranks of equally many calls, as nearly as whole ranks allow.
fn shares(run: &Run, count: usize) -> Vec<Share> {
    let calls = |index: usize| -> u64 {
        let threads = run.ranks[index].threads.iter();
        threads.map(|thread| thread.calls).fold(1, u64::saturating_add)
    };
    let all: u128 = (0..run.ranks.len()).map(|index| u128::from(calls(index))).sum();
    let mut shares = Vec::with_capacity(count);
    let (mut begin, mut sum) = (0u32, 0u128);
    for index in 0..run.ranks.len() {
        sum += u128::from(calls(index));
        let number = shares.len();
        let enough = sum * count as u128 >= all * (number as u128 + 1);
        if enough || index + 1 == run.ranks.len() {
            let end = run.ranks[index].rank + 1;
            shares.push(Share { ranks: begin..end, number: number as u32, count: 0 });
            begin = end;
        }
    }
    let count = shares.len() as u32;
    shares.iter_mut().for_each(|share| share.count = count);
    shares
}

/// Matches everything in a run, in at most `most` shares at the same time; `None` when it cannot be
/// done so. What is found comes in no certain order, and operations that are still active are those of
/// one share each.
pub fn match_in_shares<S: MatchSink + Send>(
    run: &Run,
    timeline: &GlobalTimeline,
    communicators: &CommunicatorTable,
    most: usize,
    new_sink: impl Fn() -> S + Sync,
) -> Option<Vec<(MatchingSummary, S)>> {
    if !is_shareable(run) {
        return None;
    }
    let count = most.clamp(1, MOST_SHARES).min(run.ranks.len());
    let turn = (EVENTS_IN_FLIGHT / run.ranks.len()).clamp(LEAST_TURN, MOST_TURN);
    let given_up = AtomicBool::new(false);
    let one = |share: Share| {
        let mut sink = new_sink();
        let mut matcher = Matcher::new(run, timeline, communicators).of_share(share, turn as u32);
        let mut steps = 0u32;
        while matcher.step(&mut sink) {
            steps = steps.wrapping_add(1);
            if matcher.matching.given_up {
                given_up.store(true, Ordering::Relaxed);
            }
            if matcher.matching.given_up
                || steps.is_multiple_of(STEPS) && given_up.load(Ordering::Relaxed)
            {
                return None;
            }
        }
        let summary = matcher.finish(&mut sink);
        Some((summary, sink))
    };
    shares(run, count).into_par_iter().map(one).collect()
}
