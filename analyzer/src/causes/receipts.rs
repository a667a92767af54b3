//! Finds messages that were received in the wrong order: a receive waited although a message that
//! was sent earlier had arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::lines::Lines;
use super::states::State;
use super::wait::Wait;

/// Number of messages that are examined after a wait.
const LOOKED_AHEAD: usize = 100;

/// Messages of all shares of a process.
pub(super) type CountOfProcess = Arc<AtomicUsize>;

/// After so many messages, a share adds them to the process's.
const COUNTED_TOGETHER: usize = 1 << 10;

/// When each rank received messages (end of the completing call), and when these had been sent (entry of the send),
/// by the rank's position; 16 bytes per message.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Receipts {
    of_ranks: Vec<Vec<(i64, i64)>>,
    count: usize,
    /// How many are kept of the whole run.
    most: usize,
    #[serde(skip)]
    of_process: CountOfProcess,
    /// There were too many: none is kept.
    is_given_up: bool,
}

impl Receipts {
    /// Keeps at most this many messages; of a run with more, none.
    pub fn new(most: usize, of_process: &CountOfProcess) -> Self {
        Self { most, of_process: of_process.clone(), ..Self::default() }
    }

    /// Adds a message that the rank at a position received in a call that ended at `received`.
    pub fn add(&mut self, rank: usize, received: i64, sent: i64) {
        if self.is_given_up {
            return;
        }
        self.has_ranks(rank + 1);
        self.of_ranks[rank].push((received, sent));
        self.count += 1;
        if self.count.is_multiple_of(COUNTED_TOGETHER) {
            let of_process = self.of_process.fetch_add(COUNTED_TOGETHER, Relaxed);
            self.drop_if_more(of_process + COUNTED_TOGETHER);
        }
    }

    /// Makes room for so many ranks.
    fn has_ranks(&mut self, count: usize) {
        if self.of_ranks.len() < count {
            self.of_ranks.resize_with(count, Vec::new);
        }
    }

    /// Adds the receipts of another share, which has other ranks.
    pub fn merge(&mut self, other: Self) {
        self.is_given_up |= other.is_given_up;
        self.count += other.count;
        self.has_ranks(other.of_ranks.len());
        for (own, other) in self.of_ranks.iter_mut().zip(other.of_ranks) {
            match own.is_empty() {
                true => *own = other,
                false => own.extend(other),
            }
        }
        self.drop_if_more(self.count);
    }

    /// Drops all if the run has more messages than are kept.
    fn drop_if_more(&mut self, known: usize) {
        if self.is_given_up || known > self.most {
            (self.of_ranks, self.is_given_up) = (Vec::new(), true);
        }
    }

    /// Whether the run has more messages than are kept, so that none is.
    pub fn are_too_many(&self) -> bool {
        self.is_given_up || self.count > self.most
    }

    /// Marks the late senders after which the rank received a message that had been sent earlier.
    /// Messages of the same call, or of one that ended at the same time, do not count.
    pub fn mark_wrong_order(mut self, waits: &mut [Wait], lines: &Lines) {
        if self.are_too_many() {
            return;
        }
        self.of_ranks.par_iter_mut().for_each(|receipts| receipts.par_sort_unstable());
        waits.par_iter_mut().filter(|wait| wait.state == State::LateSender).for_each(|wait| {
            let rank = lines.all[wait.line as usize].position;
            let receipts = self.of_ranks.get(rank).map_or(&[][..], Vec::as_slice);
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
