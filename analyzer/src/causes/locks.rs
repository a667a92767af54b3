//! Waits for locks (MPI 5.0, section 12.5.3).
//!
//! A trace does not show when a lock was granted: libraries take it in MPI_Win_lock, in an access,
//! in a flush or in MPI_Win_unlock. If another rank that held a conflicting lock on the same memory
//! began to unlock it while one of these calls was running, and finished that before the caller's
//! own unlock, then the call waited for it. The holder's unlock may return later, because it also
//! waits for the target to answer: if the holder began it while the caller was still in
//! MPI_Win_lock, the library takes locks there, so the holder had it first. Otherwise it is not
//! known what the call did.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use trace_format::meaning::EpochCall;

use super::conditions::ConditionCollector;
use super::side::Side;
use super::states::State;
use super::windows::EpochPart;

/// An epoch in which a rank holds a lock, or asks for it.
#[derive(Debug, Clone)]
struct LockEpoch {
    window: u32,
    /// World rank whose memory is locked; `None`: all ranks of the window.
    target: Option<u32>,
    exclusive: bool,
    /// Its calls except for the unlock.
    calls: Vec<Side>,
    unlock: Option<Side>,
}

/// The call that gave a lock back, and the one that had asked for it.
#[derive(Debug, Clone, Copy)]
struct Release {
    unlock: Side,
    lock: Side,
}

/// The releases of one kind of lock, by when they were entered.
type Releases = Vec<Release>;

/// The releases of each window, by target and by whether the lock was exclusive.
#[derive(Debug, Default)]
struct Holders(FxHashMap<u32, FxHashMap<(Option<u32>, bool), Releases>>);

impl ConditionCollector<'_, '_> {
    /// Adds the conditions of calls that waited for a lock.
    pub(super) fn resolve_locks(&mut self) {
        let mut parts = std::mem::take(&mut self.found.windows.epochs);
        parts.retain(|part| {
            use EpochCall::{Complete, Post, Start, Wait};
            !matches!(part.what, Start | Complete | Post | Wait)
        });
        parts.sort_unstable_by_key(|part| {
            (part.window, part.side.rank, part.side.entered, part.side.call.event)
        });
        let epochs = self.lock_epochs(&parts);
        let holders = Holders::new(&epochs);
        for epoch in &epochs {
            for call in epoch.calls.iter().chain(&epoch.unlock) {
                if let Some(unlock) = holders.waited_for(epoch, call) {
                    let found = self.condition(call, &unlock, State::Lock);
                    self.add(found);
                }
            }
        }
    }

    /// The epochs, from their calls ordered by window, rank and time.
    fn lock_epochs(&mut self, parts: &[EpochPart]) -> Vec<LockEpoch> {
        let mut epochs: Vec<LockEpoch> = Vec::new();
        for of_rank in parts.chunk_by(|a, b| (a.window, a.side.rank) == (b.window, b.side.rank)) {
            // By target; `None` for all.
            let mut open: FxHashMap<Option<u32>, usize> = FxHashMap::default();
            for part in of_rank {
                let EpochPart { side, what, window, target, exclusive, .. } = *part;
                match what {
                    EpochCall::Lock | EpochCall::LockAll => {
                        let Some(exclusive) = exclusive else {
                            self.found.windows.unknown += 1;
                            continue;
                        };
                        // A lock on no rank, or on one that cannot be identified.
                        if what == EpochCall::Lock && target.is_none() {
                            continue;
                        }
                        open.insert(target, epochs.len());
                        let (calls, unlock) = (vec![side], None);
                        epochs.push(LockEpoch { window, target, exclusive, calls, unlock });
                    }
                    EpochCall::Unlock | EpochCall::UnlockAll => {
                        if let Some(at) = open.remove(&target) {
                            epochs[at].unlock = Some(side);
                        }
                    }
                    EpochCall::Flush => {
                        let of_all = open.get(&None);
                        if let Some(at) = open.get(&target).or(of_all) {
                            epochs[*at].calls.push(side);
                        }
                    }
                    _ => open.values().for_each(|at| epochs[*at].calls.push(side)),
                }
            }
        }
        epochs
    }
}

impl Holders {
    fn new(epochs: &[LockEpoch]) -> Self {
        let mut holders = Self::default();
        for epoch in epochs {
            let unlock = epoch.unlock.filter(|unlock| unlock.left.is_some());
            let (Some(unlock), Some(lock)) = (unlock, epoch.calls.first()) else { continue };
            let of_window = holders.0.entry(epoch.window).or_default();
            let of_kind = of_window.entry((epoch.target, epoch.exclusive)).or_default();
            of_kind.push(Release { unlock, lock: *lock });
        }
        let lists = holders.0.values_mut().flat_map(FxHashMap::values_mut);
        // Of those at the same time, the lowest line is found first from the end.
        let order = |of: &Release| (of.unlock.entered, Reverse(of.unlock.line));
        lists.for_each(|list| list.sort_unstable_by_key(order));
        holders
    }

    /// The last unlock of a conflicting lock that began while the call was running.
    fn waited_for(&self, epoch: &LockEpoch, call: &Side) -> Option<Side> {
        let conflicts = |(target, exclusive): (Option<u32>, bool)| {
            let same_memory = target.is_none() || epoch.target.is_none() || target == epoch.target;
            same_memory && (exclusive || epoch.exclusive)
        };
        let left = call.left?;
        let own_unlock = epoch.unlock.map_or(i64::MAX, |unlock| unlock.left.unwrap_or(i64::MAX));
        let is_lock = epoch.calls.first().is_some_and(|lock| lock.entered == call.entered);
        // One that was still asking when the caller gave its lock back came after it.
        let came_after = |lock: &Side| {
            let asked_at = |at: i64| lock.entered < at && lock.left.is_none_or(|left| at < left);
            epoch.unlock.is_some_and(|unlock| asked_at(unlock.entered))
        };
        let was_before = |Release { unlock, lock }: &Release| {
            let ended_before = unlock.left.is_some_and(|left| left <= own_unlock);
            unlock.rank != call.rank && (is_lock || ended_before) && !came_after(lock)
        };
        let lists = self.0.get(&epoch.window)?.iter().filter(|(kind, _)| conflicts(**kind));
        let last = lists.filter_map(|(_, releases)| {
            let until = releases.partition_point(|of| of.unlock.entered <= left);
            let inside = releases[..until].iter().rev();
            let mut inside = inside.take_while(|of| of.unlock.entered > call.entered);
            inside.find(|release| was_before(release)).map(|of| of.unlock)
        });
        last.max_by_key(|unlock| (unlock.entered, Reverse(unlock.line)))
    }
}
