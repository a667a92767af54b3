//! Collective calls into instances: each rank's calls on a communicator in order come in, instances
//! go out when all their members have come and completed, or cannot come any more.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use super::call::Call;
use crate::timeline::communicators::CommunicatorTable;

/// Calls that are counted together: those of a communicator, or the starts of one persistent
/// operation of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SequenceKey {
    /// Position of the communicator in the table.
    pub communicator: u32,
    /// 0, 1 + the number of the persistent operation by initialisation, or [`SequenceKey::together`]'s.
    pub lane: u32,
}

impl SequenceKey {
    /// What ranks do together beside collective operations, by the number of its name: each kind is counted by
    /// itself, for windows and files of one communicator may take turns.
    pub fn together(communicator: u32, function: u16) -> Self {
        Self { communicator, lane: u32::MAX - u32::from(function) }
    }
}

/// A member's call on its rank's own counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenMember {
    /// Position of the rank in the run.
    pub rank: usize,
    pub call: Call,
    /// The call that completed it.
    pub completed: Option<Call>,
    /// Whether its completion may still come.
    pub pending: bool,
    pub part: Part,
}

/// What a rank brings to a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// World rank of the root that it names, of an operation that has one.
    pub root: Option<u32>,
}

/// An instance in the making.
#[derive(Debug, Clone)]
pub(super) struct OpenInstance {
    pub communicator: u32,
    pub function: u16,
    pub number: u64,
    pub members: Vec<OpenMember>,
    pub missing: u32,
    pub mismatched: bool,
    pending: u32,
}

impl OpenInstance {
    /// The call of a rank; its place, where that is known.
    fn member(&mut self, rank: usize, place: usize) -> Option<&mut OpenMember> {
        if place < self.members.len() {
            return self.members.get_mut(place);
        }
        // Its place is near its rank where the members came in order.
        let guess = rank.min(self.members.len());
        let (before, behind) = self.members.split_at_mut(guess);
        let is_it = |member: &&mut OpenMember| member.rank == rank;
        behind.iter_mut().find(is_it).or_else(|| before.iter_mut().rev().find(is_it))
    }
}

/// How many calls of each sequence a rank has made.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(FxHashMap<SequenceKey, u64>);

impl Calls {
    /// The number of the next call.
    #[inline]
    pub fn next(&mut self, key: SequenceKey) -> u64 {
        let calls = self.0.entry(key).or_default();
        *calls += 1;
        *calls - 1
    }
}

#[derive(Debug, Clone, Default)]
struct Sequence {
    /// Number of the first open instance.
    first: u64,
    /// Instances that are handed on already leave a hole.
    open: VecDeque<Option<OpenInstance>>,
    /// Members that made no call before they ended, or were never there.
    absent: u32,
    /// For each other member that makes no more calls, how many it made; ascending.
    ended: Vec<u64>,
}

impl Sequence {
    /// Members of an instance that will never come.
    fn missing(&self, number: u64) -> u32 {
        let ended = self.ended.partition_point(|calls| *calls <= number) as u32;
        self.absent.saturating_add(ended)
    }

    fn instance(&mut self, number: u64) -> Option<&mut OpenInstance> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.open.get_mut(at)?.as_mut()
    }

    /// Hands on an instance that is complete.
    fn close(&mut self, number: u64, size: u32, complete: &mut Vec<OpenInstance>) {
        let missing = self.missing(number);
        let Some(at) = number.checked_sub(self.first).map(|at| at as usize) else { return };
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
    /// For each communicator its size, and the members that make no more calls.
    members: Vec<(u32, u32)>,
    /// Instances since they were last drained.
    complete: Vec<OpenInstance>,
    /// Room for the members of others.
    spare: Vec<Vec<OpenMember>>,
}

/// Most rooms that are kept.
const MOST_SPARE: usize = 64;

impl Collectives {
    pub fn new(communicators: &CommunicatorTable) -> Self {
        let members = communicators.entries().iter().map(|entry| {
            let size = entry.size();
            (size, size.saturating_sub(entry.known_by))
        });
        Self { members: members.collect(), ..Self::default() }
    }

    /// Hands on the instances that were completed since the last time.
    pub fn drain(&mut self, mut take: impl FnMut(&OpenInstance)) {
        for mut instance in self.complete.drain(..) {
            take(&instance);
            if self.spare.len() < MOST_SPARE {
                instance.members.clear();
                self.spare.push(instance.members);
            }
        }
    }

    /// Instances since they were last drained.
    #[inline]
    pub fn completed_count(&self) -> usize {
        self.complete.len()
    }

    /// Adds the call of that number that its rank makes; gives the member's place in its instance.
    pub fn call(
        &mut self,
        key: SequenceKey,
        number: u64,
        function: u16,
        member: OpenMember,
    ) -> usize {
        let (size, ended) = self.members.get(key.communicator as usize).copied().unwrap_or((1, 0));
        let new = || Sequence { absent: ended, ..Sequence::default() };
        let sequence = self.sequences.entry(key).or_insert_with(new);
        while sequence.first + sequence.open.len() as u64 <= number {
            sequence.open.push_back(Some(OpenInstance {
                communicator: key.communicator,
                function,
                number: sequence.first + sequence.open.len() as u64,
                members: self.spare.pop().unwrap_or_default(),
                missing: 0,
                mismatched: false,
                pending: 0,
            }));
        }
        let Some(instance) = sequence.instance(number) else { return usize::MAX };
        instance.mismatched |= instance.function != function;
        instance.pending += u32::from(member.pending);
        instance.members.push(member);
        let place = instance.members.len() - 1;
        sequence.close(number, size, &mut self.complete);
        place
    }

    /// Completes the call of a rank (where its place is not known, it is looked for); `None` when its
    /// completion will not be known.
    pub fn completed(
        &mut self,
        key: SequenceKey,
        number: u64,
        (rank, place): (usize, usize),
        by: Option<Call>,
    ) {
        let size = self.members.get(key.communicator as usize).map_or(1, |members| members.0);
        let Some(sequence) = self.sequences.get_mut(&key) else { return };
        if let Some(instance) = sequence.instance(number)
            && let Some(member) = instance.member(rank, place)
            && member.pending
        {
            member.pending = false;
            member.completed = by;
            instance.pending -= 1;
        }
        sequence.close(number, size, &mut self.complete);
    }

    /// A rank, by its position in the run, makes no more calls than `calls` says.
    pub fn end_of_rank(&mut self, rank: usize, calls: &Calls, communicators: &CommunicatorTable) {
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
                for number in sequence.first..sequence.first + sequence.open.len() as u64 {
                    sequence.close(number, *size, &mut self.complete);
                }
            }
        }
    }

    /// Hands on what is left: instances whose communicators' sizes do not fit their calls.
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
