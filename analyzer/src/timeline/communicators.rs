//! Communicators by their identity: the ranks' definitions come in, [`CommunicatorTable`] goes out.
//!
//! Each rank numbers its communicators by itself and uses the numbers again; what is alike on all
//! of them is (hash, instance). Members come from the definition of the communicator's rank 0; where
//! its file is missing, from what every other member says about its own place.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rustc_hash::FxHashMap;
use trace_format::header::{COMMUNICATOR_SELF, COMMUNICATOR_WORLD};
use trace_format::header::{Communicator, Definition};

use crate::trace::Run;

/// World ranks of a group in order, as runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Members {
    /// Position of each run's first member, the run's first world rank, and its stride; a first of
    /// −1 stands for processes outside the world.
    runs: Vec<(u32, i64, i64)>,
    size: u32,
}

/// Who a rank number of a communicator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// That rank of MPI_COMM_WORLD.
    World(u32),
    /// A process of another world (spawned or connected).
    Outside,
    /// The communicator's members are not known.
    Unknown,
    /// The communicator has no such rank.
    Invalid,
}

/// First of a run whose members are not known.
const UNKNOWN: i64 = i64::MIN;

impl Members {
    fn unknown(size: u32) -> Self {
        Self { runs: vec![(0, UNKNOWN, 0)], size }
    }

    fn from_runs(runs: &[(i64, i64, u32)], size: u32) -> Self {
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

    fn from_places(places: &BTreeMap<u32, u32>, size: u32) -> Self {
        let mut members = Self { runs: Vec::new(), size };
        let mut next = 0;
        for (&position, &world_rank) in places {
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

    /// Who has a position.
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

    /// Runs of (first world rank, stride, count); a first of `None` is not known, or outside.
    pub fn runs(&self) -> impl Iterator<Item = (Option<u32>, i64, u32)> + '_ {
        let ends = self.runs.iter().skip(1).map(|run| run.0).chain([self.size]);
        self.runs.iter().zip(ends).map(|(&(start, first, stride), end)| {
            (u32::try_from(first).ok(), stride, end.saturating_sub(start))
        })
    }
}

/// A communicator as all its members know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommunicatorEntry {
    /// Hash of its ordered members.
    pub hash: u64,
    /// Count of earlier ones with this hash.
    pub instance: u32,
    /// The name that the program or MPI gave it.
    pub name: Option<String>,
    /// Name of the function that made it; `None` for the predefined ones.
    pub made_by: Option<String>,
    /// Whether it is an intercommunicator.
    pub inter: bool,
    /// Whether it is a rank's MPI_COMM_SELF.
    pub own: bool,
    /// Its groups; an intracommunicator has one.
    pub groups: [Members; 2],
    /// Ranks of the world that know it, by their definitions.
    pub known_by: u32,
}

impl CommunicatorEntry {
    /// Members of all groups.
    pub fn size(&self) -> u32 {
        self.groups.iter().map(Members::size).fold(0, u32::saturating_add)
    }
}

/// Where a rank stands in a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Position in the table.
    pub communicator: u32,
    /// Its own group of the two.
    group: u8,
}

/// A local id's meanings: counter from which on each is valid, ascending.
type Meanings = Vec<(u64, Standing)>;

/// All communicators of a run.
#[derive(Debug, Clone, Default)]
pub struct CommunicatorTable {
    entries: Vec<CommunicatorEntry>,
    /// For each rank of [`Run::ranks`] its local ids.
    ids: Vec<FxHashMap<u16, Meanings>>,
}

impl CommunicatorTable {
    /// Reads the definitions of all ranks.
    pub fn new(run: &Run) -> Self {
        let mut making = Making::default();
        for (position, trace) in run.ranks.iter().enumerate() {
            let mut ids = FxHashMap::default();
            for definition in &trace.file.definitions {
                match definition {
                    Definition::Communicator(made) => {
                        let made_by = trace.file.function_name(made.made_by);
                        let standing = making.add(made, (position, trace.rank), made_by);
                        let meanings: &mut Meanings = ids.entry(made.id).or_default();
                        meanings.push((made.ticks, standing));
                    }
                    Definition::CommunicatorName { id, ticks, name } => {
                        if let Some(standing) = ids.get(id).and_then(|m| meaning(m, *ticks)) {
                            making.name(standing, name);
                        }
                    }
                    _ => {}
                }
            }
            ids.values_mut().for_each(|meanings| meanings.sort_by_key(|(ticks, _)| *ticks));
            making.table.ids.push(ids);
        }
        making.finish()
    }

    /// All communicators, in the order in which the lowest ranks made them.
    pub fn entries(&self) -> &[CommunicatorEntry] {
        &self.entries
    }

    /// One of them.
    pub fn get(&self, communicator: u32) -> Option<&CommunicatorEntry> {
        self.entries.get(communicator as usize)
    }

    /// What a rank's local id means at a moment of its counter; the rank by its position in
    /// [`Run::ranks`].
    pub fn resolve(&self, rank: usize, id: u16, ticks: u64) -> Option<Standing> {
        meaning(self.ids.get(rank)?.get(&id)?, ticks)
    }

    /// As [`CommunicatorTable::resolve`], and the counter up to which (exclusively) the answer holds.
    pub(super) fn resolve_until(
        &self,
        rank: usize,
        id: u16,
        ticks: u64,
    ) -> (Option<Standing>, u64) {
        let Some(meanings) = self.ids.get(rank).and_then(|ids| ids.get(&id)) else {
            return (None, u64::MAX);
        };
        let next = meanings.partition_point(|(from, _)| *from <= ticks);
        let until = meanings.get(next).map_or(u64::MAX, |(from, _)| *from);
        (meaning(meanings, ticks), until)
    }

    /// What a rank's local id comes to mean at a moment of its counter or later: right after the
    /// call that makes a communicator, that one.
    pub fn next_meaning(&self, rank: usize, id: u16, ticks: u64) -> Option<Standing> {
        let meanings = self.ids.get(rank)?.get(&id)?;
        let index = meanings.partition_point(|(from, _)| *from < ticks);
        meanings.get(index).map(|(_, standing)| *standing)
    }

    /// The communicators that a rank knows.
    pub fn of_rank(&self, rank: usize) -> BTreeSet<u32> {
        let meanings = self.ids.get(rank).into_iter().flat_map(HashMap::values).flatten();
        meanings.map(|(_, standing)| standing.communicator).collect()
    }

    /// Who a rank number in a call's arguments is: a member, or one of the remote group.
    pub fn peer(&self, standing: Standing, rank: i32) -> Peer {
        let Some(entry) = self.get(standing.communicator) else { return Peer::Unknown };
        let group = if entry.inter { 1 - standing.group } else { standing.group };
        entry.groups[usize::from(group & 1)].peer(rank)
    }

    /// A name for people: the given one, or how it was made and its number.
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

fn meaning(meanings: &Meanings, ticks: u64) -> Option<Standing> {
    let index = meanings.partition_point(|(from, _)| *from <= ticks).checked_sub(1)?;
    meanings.get(index).map(|(_, standing)| *standing)
}

/// Group of a standing that is not known before all definitions are.
const GROUP_OPEN: u8 = u8::MAX;

/// What is gathered of a communicator until all definitions are known.
#[derive(Debug, Default)]
struct Gathered {
    /// Whether a list of the members has come in.
    listed: bool,
    /// Positions of the members of an intracommunicator, and their world ranks.
    places: BTreeMap<u32, u32>,
    /// Members of an intercommunicator: position in the run, world rank, rank in its own group.
    sides: Vec<(usize, u32, u32)>,
}

#[derive(Debug, Default)]
struct Making {
    table: CommunicatorTable,
    by_identity: HashMap<(u64, u32), u32>,
    gathered: Vec<Gathered>,
}

impl Making {
    /// Takes a definition of the rank at `position` of the run.
    fn add(
        &mut self,
        made: &Communicator,
        (position, world_rank): (usize, u32),
        made_by: Option<&str>,
    ) -> Standing {
        let number = self.table.entries.len() as u32;
        let index = *self.by_identity.entry((made.hash, made.instance)).or_insert(number);
        if index == number {
            self.table.entries.push(new_entry(made, made_by));
            self.gathered.push(Gathered::default());
        }
        let entry = &mut self.table.entries[index as usize];
        let gathered = &mut self.gathered[index as usize];
        entry.known_by += 1;
        if !gathered.listed && !made.members.is_empty() {
            gathered.listed = true;
            entry.groups = [
                Members::from_runs(&made.members, made.size),
                Members::from_runs(&made.remote_members, made.remote_size),
            ];
        }
        if made.inter {
            gathered.sides.push((position, world_rank, made.rank));
        } else {
            gathered.places.insert(made.rank, world_rank);
        }
        Standing { communicator: index, group: if made.inter { GROUP_OPEN } else { 0 } }
    }

    fn name(&mut self, standing: Standing, name: &str) {
        let entry = &mut self.table.entries[standing.communicator as usize];
        if entry.name.is_none() && !name.is_empty() {
            entry.name = Some(name.to_owned());
        }
    }

    fn finish(self) -> CommunicatorTable {
        let CommunicatorTable { mut entries, mut ids } = self.table;
        // The second group of an intercommunicator: who is not found at its place in the first.
        let mut second: HashSet<(u32, usize)> = HashSet::new();
        for ((entry, gathered), number) in entries.iter_mut().zip(&self.gathered).zip(0u32..) {
            if !entry.inter && !gathered.listed {
                entry.groups[0] = Members::from_places(&gathered.places, entry.groups[0].size);
            }
            for &(position, world_rank, rank) in &gathered.sides {
                if entry.groups[0].peer(rank as i32) != Peer::World(world_rank) {
                    second.insert((number, position));
                }
            }
        }
        for (position, meanings) in ids.iter_mut().enumerate() {
            for (_, standing) in meanings.values_mut().flatten() {
                if standing.group == GROUP_OPEN {
                    let key = (standing.communicator, position);
                    standing.group = u8::from(second.contains(&key));
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
