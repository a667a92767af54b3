//! Merges the ranks' definitions of communicators into one [`CommunicatorTable`].
//!
//! Each rank numbers its communicators itself and reuses the numbers. A communicator has the same
//! (hash, instance) on all ranks. Its members come from the definition of its rank 0; if that file
//! is missing, from the position that every other member reports for itself.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rustc_hash::FxHashMap;
use trace_format::header::{COMMUNICATOR_SELF, COMMUNICATOR_WORLD};
use trace_format::header::{Communicator, Definition};

use crate::trace::Run;

/// World ranks of a group in order, as runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Members {
    /// Position of each run's first member, the run's first world rank, and its stride. A first
    /// rank of −1 means processes outside the world.
    runs: Vec<(u32, i64, i64)>,
    size: u32,
}

/// The process with a certain rank in a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The process with this rank in MPI_COMM_WORLD.
    World(u32),
    /// A process of another world (spawned or connected).
    Outside,
    /// The communicator's members are not known.
    Unknown,
    /// The communicator has no such rank.
    Invalid,
}

/// First rank of a run whose members are not known.
const UNKNOWN: i64 = i64::MIN;

impl Members {
    fn unknown(size: u32) -> Self {
        Self { runs: vec![(0, UNKNOWN, 0)], size }
    }

    /// The group with these runs of (first world rank, stride, count).
    pub(crate) fn from_runs(runs: &[(i64, i64, u32)], size: u32) -> Self {
        let mut members = Self { runs: Vec::new(), size };
        let mut position = 0u32;
        for &(first, stride, count) in runs {
            members.runs.push((position, first, stride));
            position = position.saturating_add(count);
        }
        if position < size {
            members.runs.push((position, UNKNOWN, 0));
        }
        members
    }

    fn from_positions(positions: &BTreeMap<u32, u32>, size: u32) -> Self {
        let mut members = Self { runs: Vec::new(), size };
        let mut next = 0;
        for (&position, &world_rank) in positions {
            if position > next {
                members.runs.push((next, UNKNOWN, 0));
            }
            members.runs.push((position, i64::from(world_rank), 0));
            next = position.saturating_add(1);
        }
        if next < size {
            members.runs.push((next, UNKNOWN, 0));
        }
        members
    }

    /// Number of members.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The process at a position.
    pub fn peer(&self, position: i32) -> Peer {
        let Ok(position) = u32::try_from(position) else { return Peer::Invalid };
        if position >= self.size {
            return Peer::Invalid;
        }
        let index = self.runs.partition_point(|(start, ..)| *start <= position);
        let Some(&(start, first, stride)) = index.checked_sub(1).and_then(|i| self.runs.get(i))
        else {
            return Peer::Unknown;
        };
        match first {
            UNKNOWN => Peer::Unknown,
            outside if outside < 0 => Peer::Outside,
            _ => {
                let rank = first.saturating_add(stride.saturating_mul(i64::from(position - start)));
                u32::try_from(rank).map_or(Peer::Invalid, Peer::World)
            }
        }
    }

    /// Runs of (first world rank, stride, count); the first rank is `None` if unknown or outside
    /// the world.
    pub fn runs(&self) -> impl Iterator<Item = (Option<u32>, i64, u32)> + '_ {
        let ends = self.runs.iter().skip(1).map(|run| run.0).chain([self.size]);
        self.runs.iter().zip(ends).map(|(&(start, first, stride), end)| {
            (u32::try_from(first).ok(), stride, end.saturating_sub(start))
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommunicatorEntry {
    /// Hash of its members in order.
    pub hash: u64,
    /// Number of earlier communicators with this hash.
    pub instance: u32,
    /// The name that the program or MPI gave it.
    pub name: Option<String>,
    /// Name of the function that created it; `None` for predefined communicators.
    pub made_by: Option<String>,
    /// Whether it is an intercommunicator.
    pub inter: bool,
    /// Whether it is a rank's MPI_COMM_SELF.
    pub own: bool,
    /// Its groups; the second one of an intracommunicator is empty.
    pub groups: [Members; 2],
    /// Number of ranks that define it.
    pub known_by: u32,
}

impl CommunicatorEntry {
    /// Members of all groups.
    pub fn size(&self) -> u32 {
        self.groups.iter().map(Members::size).fold(0, u32::saturating_add)
    }
}

/// A rank's membership in a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// Position in the table.
    pub communicator: u32,
    /// Which of the two groups the rank belongs to.
    group: u8,
}

/// Meanings of a local id, each with the counter from which on it is valid, ascending.
type Meanings = Vec<(u64, Membership)>;

/// All communicators of a run.
#[derive(Debug, Clone, Default)]
pub struct CommunicatorTable {
    entries: Vec<CommunicatorEntry>,
    /// Local ids of each rank of [`Run::ranks`].
    ids: Vec<FxHashMap<u16, Meanings>>,
}

impl CommunicatorTable {
    /// Reads the definitions of all ranks.
    pub fn new(run: &Run) -> Self {
        let mut builder = TableBuilder::default();
        for (position, trace) in run.ranks.iter().enumerate() {
            let mut ids = FxHashMap::default();
            for definition in &trace.file.definitions {
                match definition {
                    Definition::Communicator(made) => {
                        let made_by = trace.file.function_name(made.made_by);
                        let membership = builder.add(made, (position, trace.rank), made_by);
                        let meanings: &mut Meanings = ids.entry(made.id).or_default();
                        meanings.push((made.ticks, membership));
                    }
                    Definition::CommunicatorName { id, ticks, name } => {
                        if let Some(membership) = ids.get(id).and_then(|m| meaning(m, *ticks)) {
                            builder.name(membership, name);
                        }
                    }
                    _ => {}
                }
            }
            ids.values_mut().for_each(|meanings| meanings.sort_by_key(|(ticks, _)| *ticks));
            builder.table.ids.push(ids);
        }
        builder.finish()
    }

    /// All communicators, in the order in which the lowest ranks created them.
    pub fn entries(&self) -> &[CommunicatorEntry] {
        &self.entries
    }

    /// The communicator at a position of the table.
    pub fn get(&self, communicator: u32) -> Option<&CommunicatorEntry> {
        self.entries.get(communicator as usize)
    }

    /// What a local id means at a moment of the rank's counter; `rank` is a position in
    /// [`Run::ranks`].
    pub fn resolve(&self, rank: usize, id: u16, ticks: u64) -> Option<Membership> {
        meaning(self.ids.get(rank)?.get(&id)?, ticks)
    }

    /// Like [`CommunicatorTable::resolve`]; also returns the counter before which the answer holds.
    pub(super) fn resolve_until(
        &self,
        rank: usize,
        id: u16,
        ticks: u64,
    ) -> (Option<Membership>, u64) {
        let Some(meanings) = self.ids.get(rank).and_then(|ids| ids.get(&id)) else {
            return (None, u64::MAX);
        };
        let next = meanings.partition_point(|(from, _)| *from <= ticks);
        let until = meanings.get(next).map_or(u64::MAX, |(from, _)| *from);
        (meaning(meanings, ticks), until)
    }

    /// The first meaning that a local id gets at or after a moment of the rank's counter. At the
    /// end of the call that creates a communicator, this is the new communicator.
    pub fn next_meaning(&self, rank: usize, id: u16, ticks: u64) -> Option<Membership> {
        let meanings = self.ids.get(rank)?.get(&id)?;
        let index = meanings.partition_point(|(from, _)| *from < ticks);
        meanings.get(index).map(|(_, membership)| *membership)
    }

    /// The communicators that a rank knows.
    pub fn of_rank(&self, rank: usize) -> BTreeSet<u32> {
        let meanings = self.ids.get(rank).into_iter().flat_map(HashMap::values).flatten();
        meanings.map(|(_, membership)| membership.communicator).collect()
    }

    /// The process that a rank in a call's arguments names: a member, or for an intercommunicator
    /// one of the other group.
    pub fn peer(&self, membership: Membership, rank: i32) -> Peer {
        let Some(entry) = self.get(membership.communicator) else { return Peer::Unknown };
        let group = if entry.inter { 1 - membership.group } else { membership.group };
        entry.groups[usize::from(group & 1)].peer(rank)
    }

    /// A name to display: the given one, or the function that created it and its number.
    pub fn label(&self, communicator: u32) -> String {
        match self.get(communicator) {
            None => "?".into(),
            Some(CommunicatorEntry { name: Some(name), .. }) => name.clone(),
            Some(entry) => {
                let made_by = entry.made_by.as_deref().unwrap_or("communicator");
                let made_by = made_by.strip_prefix("MPI_").unwrap_or(made_by);
                format!("{made_by}#{communicator}")
            }
        }
    }
}

fn meaning(meanings: &Meanings, ticks: u64) -> Option<Membership> {
    let index = meanings.partition_point(|(from, _)| *from <= ticks).checked_sub(1)?;
    meanings.get(index).map(|(_, membership)| *membership)
}

/// Marks a group that is determined only when all definitions are known.
const GROUP_OPEN: u8 = u8::MAX;

/// What is known of a communicator's members while definitions are being read.
#[derive(Debug, Default)]
struct KnownMembers {
    /// Whether a definition listed the members.
    listed: bool,
    /// World ranks of the members of an intracommunicator, by position.
    positions: BTreeMap<u32, u32>,
    /// Members of an intercommunicator: position in the run, world rank, rank in its own group.
    sides: Vec<(usize, u32, u32)>,
}

#[derive(Debug, Default)]
struct TableBuilder {
    table: CommunicatorTable,
    by_identity: HashMap<(u64, u32), u32>,
    known: Vec<KnownMembers>,
}

impl TableBuilder {
    /// Adds a definition of the rank at `position` of the run.
    fn add(
        &mut self,
        made: &Communicator,
        (position, world_rank): (usize, u32),
        made_by: Option<&str>,
    ) -> Membership {
        let number = self.table.entries.len() as u32;
        let index = *self.by_identity.entry((made.hash, made.instance)).or_insert(number);
        if index == number {
            self.table.entries.push(new_entry(made, made_by));
            self.known.push(KnownMembers::default());
        }
        let entry = &mut self.table.entries[index as usize];
        let known = &mut self.known[index as usize];
        entry.known_by += 1;
        if !known.listed && !made.members.is_empty() {
            known.listed = true;
            entry.groups = [
                Members::from_runs(&made.members, made.size),
                Members::from_runs(&made.remote_members, made.remote_size),
            ];
        }
        if made.inter {
            known.sides.push((position, world_rank, made.rank));
        } else {
            known.positions.insert(made.rank, world_rank);
        }
        Membership { communicator: index, group: if made.inter { GROUP_OPEN } else { 0 } }
    }

    fn name(&mut self, membership: Membership, name: &str) {
        let entry = &mut self.table.entries[membership.communicator as usize];
        if entry.name.is_none() && !name.is_empty() {
            entry.name = Some(name.to_owned());
        }
    }

    fn finish(self) -> CommunicatorTable {
        let CommunicatorTable { mut entries, mut ids } = self.table;
        // Ranks that are not at their position in the first group of an intercommunicator belong to
        // the second.
        let mut second: HashSet<(u32, usize)> = HashSet::new();
        for ((entry, known), number) in entries.iter_mut().zip(&self.known).zip(0u32..) {
            if !entry.inter && !known.listed {
                entry.groups[0] = Members::from_positions(&known.positions, entry.groups[0].size);
            }
            for &(position, world_rank, rank) in &known.sides {
                if entry.groups[0].peer(rank as i32) != Peer::World(world_rank) {
                    second.insert((number, position));
                }
            }
        }
        for (position, meanings) in ids.iter_mut().enumerate() {
            for (_, membership) in meanings.values_mut().flatten() {
                if membership.group == GROUP_OPEN {
                    let key = (membership.communicator, position);
                    membership.group = u8::from(second.contains(&key));
                }
            }
        }
        CommunicatorTable { entries, ids }
    }
}

fn new_entry(made: &Communicator, made_by: Option<&str>) -> CommunicatorEntry {
    let predefined = match made.id {
        COMMUNICATOR_WORLD if made.made_by == 0 => Some("MPI_COMM_WORLD"),
        COMMUNICATOR_SELF if made.made_by == 0 => Some("MPI_COMM_SELF"),
        _ => None,
    };
    CommunicatorEntry {
        hash: made.hash,
        instance: made.instance,
        name: predefined.map(str::to_owned),
        made_by: made_by.map(str::to_owned),
        inter: made.inter,
        own: predefined == Some("MPI_COMM_SELF"),
        groups: [Members::unknown(made.size), Members::unknown(made.remote_size)],
        known_by: 0,
    }
}
