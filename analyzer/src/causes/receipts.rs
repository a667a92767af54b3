//! Finds messages that were received in the wrong order: a receive waited although a message that
//! was sent earlier had arrived.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::State;
use super::lines::Lines;
use super::waits::Wait;

/// Number of messages that are examined after a wait.
const LOOKED_AHEAD: usize = 100;

/// When each rank received messages (end of the completing call), and when these had been sent (entry of the send),
/// by the rank's position; 16 bytes per message.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    of_ranks: FxHashMap<usize, Vec<(i64, i64)>>,
    count: usize,
    most: usize,
    /// There were too many: none is kept.
    pub are_too_many: bool,
}

impl Receipts {
    /// Keeps at most this many messages; of a run with more, none.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Adds a message that the rank at a position received in a call that ended at `received`.
    pub fn add(&mut self, rank: usize, received: i64, sent: i64) {
        if self.are_too_many {
            return;
        }
        self.of_ranks.entry(rank).or_default().push((received, sent));
        self.count += 1;
        if self.count > self.most {
            (self.of_ranks, self.are_too_many) = (FxHashMap::default(), true);
        }
    }

    /// Adds the receipts of another share, which has other ranks.
    pub fn merge(&mut self, other: Self) {
        self.are_too_many |= other.are_too_many;
        for (rank, receipts) in other.of_ranks {
            self.of_ranks.entry(rank).or_default().extend(receipts);
        }
    }

    /// Marks the late senders after which the rank received a message that had been sent earlier.
    /// Messages of the same call, or of one that ended at the same time, do not count.
    pub fn mark_wrong_order(mut self, waits: &mut [Wait], lines: &Lines) {
        if self.are_too_many {
            return;
        }
        self.of_ranks.par_iter_mut().for_each(|(_, receipts)| receipts.par_sort_unstable());
        waits.par_iter_mut().filter(|wait| wait.state == State::LateSender).for_each(|wait| {
            let rank = lines.all[wait.line as usize].position;
            let receipts = self.of_ranks.get(&rank).map_or(&[][..], Vec::as_slice);
            // A run of polls ends before the poll that received the message.
            let from = receipts.partition_point(|(left, _)| *left < wait.left);
            let is_it = |receipt: &&(i64, i64)| receipt.1 == wait.fulfilled;
            let waited_for = receipts[from..].iter().take(LOOKED_AHEAD).find(is_it);
            let received = waited_for.map_or(wait.left, |(received, _)| *received);
            let later = receipts.partition_point(|(left, _)| *left <= received);
            let mut later = receipts[later..].iter().take(LOOKED_AHEAD);
            if later.any(|(_, sent)| *sent < wait.fulfilled) {
                wait.state = State::LateSenderWrongOrder;
            }
        });
    }
}
