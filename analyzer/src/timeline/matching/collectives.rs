//! Combines the ranks' collective calls on each communicator into instances. An instance is
//! complete when all members have called and completed, or cannot do so any more.

use std::collections::{BTreeMap, VecDeque};

use bincode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::call::Call;
use crate::timeline::communicators::CommunicatorTable;

/// Identifies calls that are counted together: those on a communicator, or the starts of one of its
/// persistent operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub(super) struct SequenceKey {
    /// Position of the communicator in the table.
    pub communicator: u32,
    /// 0; for a persistent operation 1 + its number in order of initialisation; see also
    /// [`SequenceKey::implicit`].
    pub lane: u32,
}

impl SequenceKey {
    /// The sequence of an operation that ranks do together without being a collective operation, by
    /// the number of its name. Each function is counted separately, because ranks may use windows
    /// and files of one communicator in different orders.
    pub fn implicit(communicator: u32, function: u16) -> Self {
        Self { communicator, lane: u32::MAX - u32::from(function) }
    }
}

/// A member's call on its rank's own counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenMember {
    /// Position of the rank in the run.
    pub rank: usize,
    pub call: Call,
    pub completed: Option<Call>,
    /// Whether its completion may still come.
    pub pending: bool,
    pub contribution: Contribution,
}

/// A rank's contribution to a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contribution {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// World rank of the root that it names, if the operation has one.
    pub root: Option<u32>,
}

/// An instance that is not complete yet.
#[derive(Debug, Clone)]
pub(super) struct OpenInstance {
    pub communicator: u32,
    pub lane: u32,
    pub function: u16,
    pub number: u64,
    pub members: Vec<OpenMember>,
    pub missing: u32,
    pub mismatched: bool,
    pending: u32,
}

impl OpenInstance {
    /// The member for a rank; `index` is its index if known.
    fn member(&mut self, rank: usize, index: usize) -> Option<&mut OpenMember> {
        if index < self.members.len() {
            return self.members.get_mut(index);
        }
        // If the members came in order, its index is near its rank.
        let guess = rank.min(self.members.len());
        let (before, after) = self.members.split_at_mut(guess);
        let is_it = |member: &&mut OpenMember| member.rank == rank;
        after.iter_mut().find(is_it).or_else(|| before.iter_mut().rev().find(is_it))
    }
}

/// How many calls a rank has made in each sequence.
#[derive(Debug, Clone, Default, Encode, Decode)]
pub(super) struct CallCounts(FxHashMap<SequenceKey, u64>);

impl CallCounts {
    /// The number of the next call.
    #[inline]
    pub fn next(&mut self, key: SequenceKey) -> u64 {
        let calls = self.0.entry(key).or_default();
        *calls += 1;
        *calls - 1
    }
}

/// The instances of a sequence that are combined here: every `stride`-th, from `offset` on. A
/// position counts them from 0.
#[derive(Debug, Clone, Default)]
struct Sequence {
    offset: u64,
    stride: u64,
    /// Position of the first open instance.
    first: u64,
    /// `None` for instances that are already complete.
    open: VecDeque<Option<OpenInstance>>,
    /// Members that ended without a call, or were never there.
    absent: u32,
    /// Number of calls of each other member that has ended; ascending.
    ended: Vec<u64>,
}

impl Sequence {
    /// Number of members that will never take part in an instance.
    fn missing(&self, number: u64) -> u32 {
        let ended = self.ended.partition_point(|calls| *calls <= number) as u32;
        self.absent.saturating_add(ended)
    }

    /// Position of the instance with this number.
    fn position(&self, number: u64) -> u64 {
        number / self.stride
    }

    /// Number of the instance at this position.
    fn number(&self, position: u64) -> u64 {
        position * self.stride + self.offset
    }

    fn instance(&mut self, position: u64) -> Option<&mut OpenInstance> {
        let at = usize::try_from(position.checked_sub(self.first)?).ok()?;
        self.open.get_mut(at)?.as_mut()
    }

    /// Moves an instance to `complete` if it is.
    fn close(&mut self, position: u64, size: u32, complete: &mut Vec<OpenInstance>) {
        let missing = self.missing(self.number(position));
        let Some(at) = position.checked_sub(self.first).map(|at| at as usize) else { return };
        let Some(open) = self.open.get_mut(at) else { return };
        let done = |instance: &OpenInstance| {
            instance.pending == 0
                && instance.members.len() as u64 + u64::from(missing) >= size.into()
        };
        if open.as_ref().is_some_and(done)
            && let Some(mut instance) = open.take()
        {
            instance.missing = size.saturating_sub(instance.members.len() as u32);
            complete.push(instance);
        }
        while let Some(None) = self.open.front() {
            self.open.pop_front();
            self.first += 1;
        }
    }
}

/// All collective calls of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Collectives {
    sequences: BTreeMap<SequenceKey, Sequence>,
    /// Size of each communicator, and how many of its members have ended.
    members: Vec<(u32, u32)>,
    /// Instances that were completed since the last drain.
    complete: Vec<OpenInstance>,
    /// Allocations that are reused for the members of new instances.
    spare: Vec<Vec<OpenMember>>,
    /// In how many shares the instances of a sequence are combined, in turn.
    stride: u64,
}

/// Most allocations that are kept for reuse.
const MAX_SPARE: usize = 64;

impl Collectives {
    pub fn new(communicators: &CommunicatorTable) -> Self {
        let members = communicators.entries().iter().map(|entry| {
            let size = entry.size();
            (size, size.saturating_sub(entry.known_by))
        });
        Self { members: members.collect(), stride: 1, ..Self::default() }
    }

    /// Makes this one of several shares, each of which combines every `shares`-th instance.
    pub fn share_with(&mut self, shares: usize) {
        self.stride = shares as u64;
    }

    /// Passes the instances that were completed since the last drain to `take`.
    pub fn drain(&mut self, mut take: impl FnMut(&OpenInstance)) {
        for mut instance in self.complete.drain(..) {
            take(&instance);
            if self.spare.len() < MAX_SPARE {
                instance.members.clear();
                self.spare.push(instance.members);
            }
        }
    }

    /// Number of instances that were completed since the last drain.
    #[inline]
    pub fn completed_count(&self) -> usize {
        self.complete.len()
    }

    /// Adds a rank's call with its number in the sequence; returns the member's index in the
    /// instance. All calls of a sequence that come here have the same remainder modulo the shares.
    pub fn call(
        &mut self,
        key: SequenceKey,
        number: u64,
        function: u16,
        member: OpenMember,
    ) -> usize {
        let (size, ended) = self.members.get(key.communicator as usize).copied().unwrap_or((1, 0));
        let stride = self.stride;
        let offset = number % stride;
        let new = || Sequence { absent: ended, stride, offset, ..Sequence::default() };
        let sequence = self.sequences.entry(key).or_insert_with(new);
        let position = sequence.position(number);
        while sequence.first + sequence.open.len() as u64 <= position {
            sequence.open.push_back(Some(OpenInstance {
                communicator: key.communicator,
                lane: key.lane,
                function,
                number: sequence.number(sequence.first + sequence.open.len() as u64),
                members: self.spare.pop().unwrap_or_default(),
                missing: 0,
                mismatched: false,
                pending: 0,
            }));
        }
        let Some(instance) = sequence.instance(position) else { return usize::MAX };
        if instance.function != function {
            // Not the first one's: who comes first depends on the division into shares.
            instance.function = instance.function.min(function);
            instance.mismatched = true;
        }
        instance.pending += u32::from(member.pending);
        instance.members.push(member);
        let index = instance.members.len() - 1;
        sequence.close(position, size, &mut self.complete);
        index
    }

    /// Completes the call of a rank; the member is searched for if its index is not known. `by` is
    /// `None` if the completion will never be known.
    pub fn completed(
        &mut self,
        key: SequenceKey,
        number: u64,
        (rank, index): (usize, usize),
        by: Option<Call>,
    ) {
        let size = self.members.get(key.communicator as usize).map_or(1, |members| members.0);
        let Some(sequence) = self.sequences.get_mut(&key) else { return };
        let position = sequence.position(number);
        if let Some(instance) = sequence.instance(position)
            && let Some(member) = instance.member(rank, index)
            && member.pending
        {
            member.pending = false;
            member.completed = by;
            instance.pending -= 1;
        }
        sequence.close(position, size, &mut self.complete);
    }

    /// Records that the rank at a position made `calls` and will make no more.
    pub fn end_of_rank(
        &mut self,
        rank: usize,
        calls: &CallCounts,
        communicators: &CommunicatorTable,
    ) {
        for communicator in communicators.of_rank(rank) {
            let Some((size, ended)) = self.members.get_mut(communicator as usize) else { continue };
            *ended = ended.saturating_add(1);
            let lane = |lane| SequenceKey { communicator, lane };
            for (key, sequence) in self.sequences.range_mut(lane(0)..=lane(u32::MAX)) {
                match calls.0.get(key).copied() {
                    Some(calls) => {
                        let at = sequence.ended.partition_point(|other| *other <= calls);
                        sequence.ended.insert(at, calls);
                    }
                    None => sequence.absent = sequence.absent.saturating_add(1),
                }
                for position in sequence.first..sequence.first + sequence.open.len() as u64 {
                    sequence.close(position, *size, &mut self.complete);
                }
            }
        }
    }

    /// Completes what is left: instances whose calls do not fit the size of their communicator.
    pub fn finish(&mut self) {
        for ((size, _), sequence) in self.sequences.iter_mut().map(|(key, sequence)| {
            let members = self.members.get(key.communicator as usize);
            (members.copied().unwrap_or((0, 0)), sequence)
        }) {
            for mut instance in sequence.open.drain(..).flatten() {
                instance.missing = size.saturating_sub(instance.members.len() as u32);
                self.complete.push(instance);
            }
        }
    }
}
