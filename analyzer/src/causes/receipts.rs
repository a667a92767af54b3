//! Messages received in another order than they were sent: a receive that waited while an earlier message was
//! there (CAUSES, section 1, wrong order).

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::State;
use super::lines::Lines;
use super::waits::Wait;

/// So many messages are looked at behind a wait.
const LOOKED_AHEAD: usize = 100;

/// When ranks received messages (left the completing call), and when these had been sent (entry of the
/// send), by the rank's position; 16 bytes a message.
#[derive(Debug, Default)]
pub(super) struct Receipts(FxHashMap<usize, Vec<(i64, i64)>>);

impl Receipts {
    /// Takes a message of the rank at a position.
    pub fn add(&mut self, rank: usize, left: i64, sent: i64) {
        self.0.entry(rank).or_default().push((left, sent));
    }

    /// Takes those of another share, which has other ranks.
    pub fn merge(&mut self, other: Self) {
        for (rank, receipts) in other.0 {
            self.0.entry(rank).or_default().extend(receipts);
        }
    }

    /// Tells the late senders behind which a message was received that had been sent earlier. What the same
    /// call received, or one that was left at the same time, does not count.
    pub fn tell_wrong_order(mut self, waits: &mut [Wait], lines: &Lines) {
        self.0.par_iter_mut().for_each(|(_, receipts)| receipts.par_sort_unstable());
        waits.par_iter_mut().filter(|wait| wait.state == State::LateSender).for_each(|wait| {
            let rank = lines.all[wait.line as usize].position;
            let receipts = self.0.get(&rank).map_or(&[][..], Vec::as_slice);
            // A run of polls ends before the poll that received the message.
            let from = receipts.partition_point(|(left, _)| *left < wait.left);
            let is_it = |receipt: &&(i64, i64)| receipt.1 == wait.fulfilled;
            let waited_for = receipts[from..].iter().take(LOOKED_AHEAD).find(is_it);
            let Some((received, _)) = waited_for else { return };
            let behind = receipts.partition_point(|(left, _)| left <= received);
            let mut next = receipts[behind..].iter().take(LOOKED_AHEAD);
            if next.any(|(_, sent)| *sent < wait.fulfilled) {
                wait.state = State::LateSenderWrongOrder;
            }
        });
    }
}
