//! Waits in general active target synchronisation (MPI 5.0, section 12.5.2): MPI_Win_start,
//! MPI_Win_complete, MPI_Win_post, MPI_Win_wait.
//!
//! The n-th access epoch of an origin that names a target, on a window, belongs to the n-th exposure
//! epoch of that target that names the origin. Libraries may block for the post in MPI_Win_start, in
//! an access or in MPI_Win_complete, so each of these waited for the last post that happened before
//! it returned. MPI_Win_wait returns only after all origins have called MPI_Win_complete.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use trace_format::meaning::EpochCall;

use crate::timeline::matching::{Access, Epoch};

use super::conditions::ConditionCollector;
use super::side::Side;
use super::states::State;
use super::windows::{AccessPart, EpochPart};

/// An access or exposure epoch.
#[derive(Debug, Clone, Copy)]
struct GroupEpoch {
    window: u32,
    begin: Side,
    /// The call that ended it.
    end: Option<Side>,
    /// The group's number on the rank.
    group: u32,
}

/// A pair of ranks whose epochs on a window belong together: window, origin and target as world
/// ranks; then the position of the epoch.
type Pair = (u32, u32, u32, usize);

/// An access epoch and an exposure epoch, by their positions.
type Matched = (usize, usize);

impl ConditionCollector<'_, '_> {
    /// Adds the conditions of the calls that begin and end access and exposure epochs for groups,
    /// and of the accesses in them.
    pub(super) fn resolve_epochs(&mut self) {
        let mut parts = self.found.windows.epochs.clone();
        parts.retain(|part| {
            use EpochCall::{Complete, Post, Start, Wait};
            matches!(part.what, Start | Complete | Post | Wait)
        });
        parts.sort_unstable_by_key(|part| {
            (part.window, part.side.rank, part.side.entered, part.side.call.event)
        });
        let (access, exposure) = epochs(&parts);
        let mut matched = self.match_epochs(&access, &exposure);
        let mut accesses = std::mem::take(&mut self.found.windows.accesses);
        accesses.sort_unstable_by_key(key_of_access);
        for of_epoch in matched.chunk_by(|a, b| a.0 == b.0) {
            let posts: Vec<Side> = of_epoch.iter().map(|(_, at)| exposure[*at].begin).collect();
            self.late_posts(&access[of_epoch[0].0], &posts, &accesses);
        }
        matched.sort_unstable_by_key(|(access, exposure)| (*exposure, *access));
        for of_epoch in matched.chunk_by(|a, b| a.1 == b.1) {
            let completes = of_epoch.iter().filter_map(|(at, _)| access[*at].end);
            self.early_wait(&exposure[of_epoch[0].1], completes.collect());
        }
    }

    /// Which access epochs belong to which exposure epochs, by the position of the access epoch.
    fn match_epochs(&mut self, access: &[GroupEpoch], exposure: &[GroupEpoch]) -> Vec<Matched> {
        // Without one group, the epochs of a window could not be counted.
        let is_unknown = |of: &&GroupEpoch| self.windows.group(of.begin.rank, of.group).is_none();
        let unknown: BTreeSet<u32> =
            access.iter().chain(exposure).filter(is_unknown).map(|of| of.window).collect();
        let all = access.iter().chain(exposure);
        self.found.windows.unknown += all.filter(|of| unknown.contains(&of.window)).count() as u64;
        let origins = self.pairs(access, &unknown, |own, other| (own, other));
        let targets = self.pairs(exposure, &unknown, |own, other| (other, own));
        let mut matched = Vec::new();
        let mut targets = targets.chunk_by(same_ranks).peekable();
        for of_origin in origins.chunk_by(same_ranks) {
            let key = ranks_of(&of_origin[0]);
            while targets.next_if(|of_target| ranks_of(&of_target[0]) < key).is_some() {}
            if let Some(of_target) = targets.next_if(|of| ranks_of(&of[0]) == key) {
                matched.extend(of_origin.iter().zip(of_target).map(|(o, t)| (o.3, t.3)));
            }
        }
        matched.sort_unstable();
        matched
    }

    /// The pairs of ranks that epochs connect, ordered by window, ranks and time. `ordered` puts a
    /// rank and a member of its group into the order of origin and target.
    fn pairs(
        &self,
        epochs: &[GroupEpoch],
        unknown: &BTreeSet<u32>,
        ordered: impl Fn(u32, u32) -> (u32, u32),
    ) -> Vec<Pair> {
        let mut pairs = Vec::new();
        let known = epochs.iter().enumerate().filter(|(_, of)| !unknown.contains(&of.window));
        for (at, epoch) in known {
            let own = self.run.ranks[epoch.begin.rank].rank;
            let group = self.windows.group(epoch.begin.rank, epoch.group).unwrap_or_default();
            pairs.extend(group.iter().map(|other| {
                let (origin, target) = ordered(own, *other);
                (epoch.window, origin, target, at)
            }));
        }
        pairs.sort_unstable();
        pairs
    }

    /// Adds the waits of an access epoch for the posts of its targets.
    fn late_posts(&mut self, epoch: &GroupEpoch, posts: &[Side], accesses: &[AccessPart]) {
        for call in [Some(epoch.begin), epoch.end].into_iter().flatten() {
            self.waited_for_last(&call, posts.iter(), State::LatePost);
        }
        let of_rank = (epoch.window, epoch.begin.rank);
        let end = epoch.end.map_or(i64::MAX, |end| end.entered);
        let from = accesses.partition_point(|a| key_of_access(a) < (of_rank, epoch.begin.entered));
        let inside = accesses[from..].iter();
        for access in inside.take_while(|a| key_of_access(a) <= (of_rank, end)) {
            let target = |post: &&Side| self.run.ranks[post.rank].rank == access.target;
            if let Some(post) = posts.iter().find(target) {
                self.waited_for_last(&access.side, std::iter::once(post), State::EarlyTransfer);
            }
        }
    }

    /// Adds the wait of an exposure epoch's end for the last origin that ended its access.
    fn early_wait(&mut self, epoch: &GroupEpoch, completes: Vec<Side>) {
        let Some(end) = epoch.end.filter(|end| end.left.is_some()) else { return };
        let origins = self.windows.group(epoch.begin.rank, epoch.group).map_or(0, <[u32]>::len);
        if completes.len() < origins {
            self.found.windows.unknown += 1;
            return;
        }
        if let Some(last) = completes.iter().max_by_key(by_entry) {
            let found = self.condition(&end, last, State::EarlyWait);
            self.add(found);
        }
    }

    /// Adds the wait of a call for the last partner that entered before the call returned, if it
    /// waited at all.
    fn waited_for_last<'s>(
        &mut self,
        call: &Side,
        partners: impl Iterator<Item = &'s Side>,
        state: State,
    ) {
        let Some(left) = call.left else { return };
        let last = partners.filter(|partner| partner.entered <= left).max_by_key(by_entry);
        let found = last.and_then(|last| self.condition(call, last, state));
        self.add(found);
    }
}

fn by_entry(side: &&Side) -> (i64, Reverse<u32>) {
    (side.entered, Reverse(side.line))
}

fn key_of_access(access: &AccessPart) -> ((u32, usize), i64) {
    ((access.window, access.side.rank), access.side.entered)
}

fn ranks_of(pair: &Pair) -> (u32, u32, u32) {
    (pair.0, pair.1, pair.2)
}

fn same_ranks(a: &Pair, b: &Pair) -> bool {
    ranks_of(a) == ranks_of(b)
}

/// The access epochs and the exposure epochs, from their calls ordered by window, rank and time.
fn epochs(parts: &[EpochPart]) -> (Vec<GroupEpoch>, Vec<GroupEpoch>) {
    let (mut access, mut exposure) = (Vec::new(), Vec::new());
    for of_rank in parts.chunk_by(|a, b| (a.window, a.side.rank) == (b.window, b.side.rank)) {
        let mut open: [Option<usize>; 2] = [None; 2];
        for part in of_rank {
            let (at, epochs) = match part.what {
                EpochCall::Start | EpochCall::Complete => (0, &mut access),
                _ => (1, &mut exposure),
            };
            if matches!(part.what, EpochCall::Start | EpochCall::Post) {
                open[at] = Some(epochs.len());
                let EpochPart { window, group, side, .. } = *part;
                epochs.push(GroupEpoch { window, begin: side, end: None, group });
            } else if let Some(begun) = open[at].take() {
                epochs[begun].end = Some(part.side);
            }
        }
    }
    (access, exposure)
}

impl ConditionCollector<'_, '_> {
    /// Adds a call of an epoch. The waits are found when those of all ranks are known.
    pub(super) fn add_epoch(&mut self, epoch: &Epoch) {
        let Epoch { what, group, target, exclusive, .. } = *epoch;
        let Some(side) = self.side(epoch.rank, epoch.call) else { return };
        let calls = &mut self.found.windows;
        let Some(window) = self.windows.number(side.rank, epoch.window) else {
            calls.unknown += 1;
            return;
        };
        match what {
            EpochCall::Start => drop(calls.started.insert((side.rank, window))),
            EpochCall::Complete => drop(calls.started.remove(&(side.rank, window))),
            _ => {}
        }
        calls.epochs.push(EpochPart { side, what, window, group, target, exclusive });
    }

    /// Adds an access, if it is in an epoch that MPI_Win_start began.
    pub(super) fn add_access(&mut self, access: &Access) {
        if self.found.windows.started.is_empty() {
            return;
        }
        let Some(side) = self.side(access.origin, access.call) else { return };
        let Some(window) = self.windows.number(side.rank, access.window) else { return };
        let calls = &mut self.found.windows;
        if calls.started.contains(&(side.rank, window)) {
            calls.accesses.push(AccessPart { side, window, target: access.target });
        }
    }
}
