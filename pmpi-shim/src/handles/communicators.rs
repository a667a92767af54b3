//! Identity of communicators, windows and files.
//!
//! A communicator is registered when the call that makes it returns. All its members then count the
//! same number of earlier communicators with the same members, without communicating. What the path
//! needs is cached per thread by handle; freeing a handle anywhere empties these caches. Only
//! registering takes a lock.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;

use trace_format::header::{COMMUNICATOR_SELF, COMMUNICATOR_UNKNOWN, COMMUNICATOR_WORLD};
use trace_format::header::{Communicator, Definition, ObjectKind, Topology};

use crate::handles::cache::{forget_handles, index_of};
use crate::handles::topology::{self, Neighbours};
use crate::host::counter;
use crate::host::lock::{Lock, Locked};
use crate::host::own_work::OwnWork;
use crate::host::peers;
use crate::mpi::abi;
use crate::mpi::library::{KnownEntry, MpiLibrary, ask};
use crate::state::thread_block::{CACHED_COMMUNICATORS, CommunicatorFacts, ThreadBlock};
use crate::store::trace_file::define;
use crate::store::transient::{self, Subject};

/// A communicator held by the program.
#[derive(Debug)]
pub struct Registered {
    facts: &'static CommunicatorFacts,
    /// Identity on which all members agree. It goes into the hashes of the communicators made from
    /// this one.
    identity: u64,
    /// Number of communicators made from this one, by hash of their members.
    children: HashMap<u64, u32>,
}

static UNKNOWN: CommunicatorFacts = CommunicatorFacts {
    id: COMMUNICATOR_UNKNOWN,
    inter: false,
    rank: -1,
    peers: 0,
    size: 0,
    in_neighbours: 0,
    out_neighbours: 0,
    missing_neighbours: 0,
};

#[derive(Default)]
struct Registry {
    library: Option<Constants>,
    world_group: usize,
    /// By handle. The facts are leaked, so a pointer in a thread's cache never dangles.
    communicators: HashMap<usize, Registered>,
    /// All leaked facts. Communicators with equal facts share one allocation.
    leaked: HashSet<&'static CommunicatorFacts>,
    free: Vec<&'static CommunicatorFacts>,
    next_id: u16,
    /// Number of earlier communicators without a parent, by hash of their members.
    instances: HashMap<u64, u32>,
    objects: HashMap<(bool, usize), (u32, u16)>,
    next_object: u32,
}

#[derive(Clone, Copy)]
struct Constants {
    world: usize,
    comm_self: usize,
    null: usize,
}

static IS_INTER: KnownEntry = KnownEntry::new(c"PMPI_Comm_test_inter");
static SIZE: KnownEntry = KnownEntry::new(c"PMPI_Comm_size");
static RANK: KnownEntry = KnownEntry::new(c"PMPI_Comm_rank");
static GROUP: KnownEntry = KnownEntry::new(c"PMPI_Comm_group");
static REMOTE_SIZE: KnownEntry = KnownEntry::new(c"PMPI_Comm_remote_size");
static REMOTE_GROUP: KnownEntry = KnownEntry::new(c"PMPI_Comm_remote_group");
static TRANSLATE_RANKS: KnownEntry = KnownEntry::new(c"PMPI_Group_translate_ranks");
static FREE_GROUP: KnownEntry = KnownEntry::new(c"PMPI_Group_free");

static REGISTRY: Lock<Option<Registry>> = Lock::new(None);

fn registry() -> Locked<'static, Option<Registry>> {
    REGISTRY.lock()
}

/// Prepares the registry. Called once, before recording begins. The predefined communicators are not
/// known yet, and neither is the group of all processes.
pub fn begin(library: &MpiLibrary) {
    let (Some(world), Some(comm_self), Some(null)) =
        (library.comm_world(), library.comm_self(), library.comm_null())
    else {
        return;
    };
    let new = Registry {
        library: Some(Constants { world, comm_self, null }),
        next_id: COMMUNICATOR_SELF + 1,
        ..Registry::default()
    };
    *registry() = Some(new);
}

/// Registers the predefined communicators, once MPI_Init has made them.
pub fn register_predefined() {
    let mut world_group = 0usize;
    // A handler that jumped out of the look-up would leave it unfinished for ever.
    let own = OwnWork::begin();
    let entry = GROUP.get();
    drop(own);
    let mut guard = registry();
    let Some(registry) = guard.as_mut() else { return };
    let Some(Constants { world, comm_self, .. }) = registry.library else { return };
    if let Some(entry) = entry {
        // SAFETY: the arguments of MPI_Comm_group.
        unsafe { entry.call([world, &raw mut world_group as usize]) };
    }
    registry.world_group = abi::handle(world_group);
    let (free, next_id) = (std::mem::take(&mut registry.free), registry.next_id);
    registry.next_id = COMMUNICATOR_WORLD;
    registry.register(world, world, 0, (COMMUNICATOR_UNKNOWN, 0), 0);
    registry.register(comm_self, comm_self, 0, (COMMUNICATOR_UNKNOWN, 0), 0);
    debug_assert_eq!(registry.next_id, COMMUNICATOR_SELF + 1);
    (registry.free, registry.next_id) = (free, next_id);
    drop(guard);
    forget_handles();
}

/// Takes a group as that of all processes, in the order of their ranks. 0: there is none.
pub fn set_world_group(group: usize) {
    if let Some(registry) = registry().as_mut() {
        registry.world_group = group;
    }
}

/// Codes the world ranks of a group as runs of (first, stride, count).
fn runs(ranks: &[i64]) -> Vec<(i64, i64, u32)> {
    let mut runs: Vec<(i64, i64, u32)> = Vec::new();
    for &rank in ranks {
        if let Some((first, stride, count)) = runs.last_mut() {
            let next = *first + *stride * i64::from(*count);
            if *count == 1 && *first >= 0 && rank >= 0 {
                *stride = rank - *first;
                *count = 2;
                continue;
            }
            if next == rank && (*first >= 0) == (rank >= 0) {
                *count += 1;
                continue;
            }
        }
        runs.push((rank, 0, 1));
    }
    runs
}

fn hash_of(ranks: &[i64], seed: u64) -> u64 {
    ranks.iter().fold(0xcbf2_9ce4_8422_2325u64 ^ seed, |hash, rank| {
        (hash ^ *rank as u64).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
    })
}

/// Seed for the hash of a communicator that all members made from one with this identity, by the
/// same function.
fn seed_from(identity: u64, made_by: u16, seed: u64) -> u64 {
    identity ^ seed ^ u64::from(made_by).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn identity_of(hash: u64, instance: u32) -> u64 {
    (hash ^ u64::from(instance)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}

impl Registry {
    /// World ranks of a communicator's local or remote group; −1 for ranks of another world.
    fn world_ranks(&self, handle: usize, group_of: &KnownEntry, size: i32) -> Option<Vec<i64>> {
        let mut group = 0usize;
        // SAFETY: the arguments of the inquiry.
        if !unsafe { group_of.get()?.call([handle, &raw mut group as usize]) } {
            return None;
        }
        let ranks = self.world_ranks_of(abi::handle(group), size);
        // SAFETY: the arguments of MPI_Group_free.
        let freed = unsafe { FREE_GROUP.get()?.call([&raw mut group as usize]) };
        ranks.filter(|_| freed)
    }

    /// World ranks of a group of this size; −1 for ranks of another world.
    fn world_ranks_of(&self, group: usize, size: i32) -> Option<Vec<i64>> {
        if self.world_group == 0 {
            return None;
        }
        let ranks: Vec<i32> = (0..size).collect();
        let mut world = vec![0i32; size as usize];
        // SAFETY: the arguments of MPI_Group_translate_ranks; the arrays hold `size` ints.
        let known = unsafe {
            TRANSLATE_RANKS.get()?.call([
                group,
                size as usize,
                ranks.as_ptr() as usize,
                self.world_group,
                world.as_mut_ptr() as usize,
            ])
        };
        known.then(|| world.iter().map(|rank| i64::from((*rank).max(-1))).collect())
    }

    /// Registers a communicator. `asked` is its handle, or that of one with the same members.
    /// `origin` is the handle of the communicator from which all its members made it, or 0 if there
    /// is none: members may make communicators from different parents in different orders, so those
    /// of each parent are counted separately. Likewise those of each function: MPI_Comm_create_group
    /// is not ordered with the collective calls on its communicator.
    fn register(
        &mut self,
        handle: usize,
        asked: usize,
        origin: usize,
        (parent, made_by): (u16, u16),
        seed: u64,
    ) -> Option<&'static CommunicatorFacts> {
        let inter = IS_INTER.ask(asked)? != 0;
        let size = SIZE.ask(asked)?;
        let rank = RANK.ask(asked)?;
        let members = self.world_ranks(asked, &GROUP, size)?;
        let remote_size = if inter { REMOTE_SIZE.ask(asked)? } else { 0 };
        let remote =
            if inter { self.world_ranks(asked, &REMOTE_GROUP, remote_size)? } else { Vec::new() };
        let seed = match self.communicators.get(&origin) {
            Some(parent) => seed_from(parent.identity, made_by, seed),
            None => seed,
        };
        // Both sides of an intercommunicator must compute the same hash, so order the two groups.
        let (own, other) = (hash_of(&members, seed), hash_of(&remote, seed));
        let hash = if inter { own.min(other) ^ own.max(other).rotate_left(17) } else { own };
        let instances = match self.communicators.get_mut(&origin) {
            Some(parent) => &mut parent.children,
            None => &mut self.instances,
        };
        let count = instances.entry(hash).or_insert(0);
        let instance = *count;
        *count += 1;
        let neighbours = topology::neighbours(asked);
        let recycled = self.free.pop();
        let id = match recycled {
            Some(old) => old.id,
            None if self.next_id == u16::MAX => COMMUNICATOR_UNKNOWN,
            None => {
                self.next_id += 1;
                self.next_id - 1
            }
        };
        let peers = if inter { remote_size } else { size };
        let facts = CommunicatorFacts {
            id,
            inter,
            rank,
            peers,
            size,
            in_neighbours: neighbours.as_ref().map_or(0, |of| of.sources.len() as i32),
            out_neighbours: neighbours.as_ref().map_or(0, |of| of.destinations.len() as i32),
            missing_neighbours: neighbours.as_ref().map_or(0, topology::Neighbours::missing),
        };
        // Facts that another thread may still point to are never overwritten. What is recycled is
        // the id, and with it the allocation of an earlier communicator with equal facts.
        let shared = self.leaked.get(&facts).copied().unwrap_or_else(|| {
            let shared: &'static CommunicatorFacts = Box::leak(Box::new(facts));
            self.leaked.insert(shared);
            shared
        });
        // The first member in this world writes the list: rank 0 may belong to another world, whose
        // files are elsewhere.
        let first = members.iter().position(|rank| *rank >= 0);
        let lists = first.is_some_and(|first| first as i32 == rank);
        peers::set_members(id, if inter { &remote } else { &members });
        let identity = identity_of(hash, instance);
        let registered = Registered { facts: shared, identity, children: HashMap::new() };
        self.communicators.insert(handle, registered);
        let definition = Definition::Communicator(Communicator {
            id,
            ticks: counter::now(),
            hash,
            instance,
            size: size as u32,
            rank: rank.max(0) as u32,
            inter,
            members: if lists { runs(&members) } else { Vec::new() },
            remote_members: if lists { runs(&remote) } else { Vec::new() },
            remote_size: remote_size as u32,
            parent,
            made_by,
        });
        if made_by == 0 {
            // Predefined communicators are never freed.
            let _ = define(&definition);
        } else {
            transient::define(Subject::Communicator(id), &definition);
        }
        if let Some(Neighbours { sources, destinations }) = neighbours {
            let ticks = counter::now();
            let topology = Topology { communicator: id, ticks, sources, destinations };
            transient::define(Subject::Communicator(id), &Definition::Topology(topology));
        }
        Some(shared)
    }

    /// Removes a communicator unless it is predefined. Its id may be reused.
    fn forget(&mut self, handle: usize) {
        if !self.is_predefined(handle)
            && let Some(registered) = self.communicators.remove(&handle)
        {
            self.give_back(registered.facts);
        }
    }

    /// Makes the id of a freed communicator available again.
    fn give_back(&mut self, facts: &'static CommunicatorFacts) {
        transient::freed(Subject::Communicator(facts.id));
        if facts.id != COMMUNICATOR_UNKNOWN {
            self.free.push(facts);
        }
    }

    fn is_null(&self, handle: usize) -> bool {
        self.library.is_none_or(|constants| constants.null == handle) || handle == 0
    }

    fn is_predefined(&self, handle: usize) -> bool {
        self.library.is_some_and(|c| c.world == handle || c.comm_self == handle)
    }
}

/// The facts of a communicator.
/// The caches were refreshed in this call.
#[inline(always)]
pub fn facts(block: &ThreadBlock, handle: usize) -> &'static CommunicatorFacts {
    let cached = &block.communicators[index_of(handle, CACHED_COMMUNICATORS)];
    if let (known, Some(facts)) = cached.get()
        && known == handle
    {
        return facts;
    }
    let facts = look_up(handle);
    cached.set((handle, Some(facts)));
    facts
}

#[cold]
#[inline(never)]
fn look_up(handle: usize) -> &'static CommunicatorFacts {
    let _own = OwnWork::begin();
    registry().as_ref().and_then(|r| r.communicators.get(&handle)).map_or(&UNKNOWN, |r| r.facts)
}

/// Registers a communicator that a call has just made from the one with handle `origin`, or 0 if
/// its members did not all make it from one.
#[cold]
#[inline(never)]
pub fn made(
    handle: usize,
    origin: usize,
    (parent, made_by): (u16, u16),
    seed: u64,
    asked: bool,
) -> u16 {
    let _own = OwnWork::begin();
    let mut guard = registry();
    let Some(registry) = guard.as_mut() else { return COMMUNICATOR_UNKNOWN };
    if registry.is_null(handle) {
        return COMMUNICATOR_UNKNOWN;
    }
    if let Some(known) = registry.communicators.get(&handle) {
        if asked {
            return known.facts.id;
        }
        // It was freed unnoticed, and its handle has been reused.
        registry.forget(handle);
    }
    let facts = registry.register(handle, handle, origin, (parent, made_by), seed);
    drop(guard);
    forget_handles();
    facts.map_or(COMMUNICATOR_UNKNOWN, |facts| facts.id)
}

/// Registers a duplicate that is still being made. It has its parent's members, and MPI must not be
/// queried about it before its request completes.
#[cold]
#[inline(never)]
pub fn made_like(handle: usize, parent_handle: usize, parent: u16, made_by: u16) -> u16 {
    let _own = OwnWork::begin();
    let mut guard = registry();
    let Some(registry) = guard.as_mut() else { return COMMUNICATOR_UNKNOWN };
    if registry.is_null(handle) {
        return COMMUNICATOR_UNKNOWN;
    }
    // The members of an unknown parent are unknown.
    if !registry.communicators.contains_key(&parent_handle) {
        return COMMUNICATOR_UNKNOWN;
    }
    let facts = registry.register(handle, parent_handle, parent_handle, (parent, made_by), 0);
    drop(guard);
    forget_handles();
    facts.map_or(COMMUNICATOR_UNKNOWN, |facts| facts.id)
}

/// Removes a communicator that the program is about to free. From then on another thread may get
/// the same handle for a new one.
#[cold]
#[inline(never)]
pub fn withdraw(handle: usize) -> Option<Registered> {
    let _own = OwnWork::begin();
    let withdrawn = registry().as_mut().and_then(|registry| {
        (!registry.is_predefined(handle)).then(|| registry.communicators.remove(&handle))?
    });
    forget_handles();
    withdrawn
}

/// Completes what [`withdraw`] began: makes the id available again or, if MPI did not free the
/// communicator, restores it.
#[cold]
#[inline(never)]
pub fn freed(handle: usize, withdrawn: Option<Registered>, success: bool) {
    let _own = OwnWork::begin();
    if let (Some(registered), Some(registry)) = (withdrawn, registry().as_mut()) {
        if success {
            registry.give_back(registered.facts);
        } else {
            registry.communicators.insert(handle, registered);
        }
    }
    forget_handles();
}

/// Writes a communicator's name to the trace.
#[cold]
#[inline(never)]
pub fn named(id: u16, name: &CStr) {
    let _own = OwnWork::begin();
    let name = name.to_string_lossy().into_owned();
    let definition = Definition::CommunicatorName { id, ticks: counter::now(), name };
    transient::define(Subject::Communicator(id), &definition);
}

/// World ranks of a group's members, as runs of (first, stride, count).
pub fn members_of_group(group: usize) -> Option<Vec<(i64, i64, u32)>> {
    let size = ask(c"PMPI_Group_size", group)?;
    let ranks = registry().as_ref()?.world_ranks_of(group, size)?;
    Some(runs(&ranks))
}

/// Registers a window or file that a call has just made.
#[cold]
#[inline(never)]
pub fn object_made(window: bool, handle: usize, communicator: u16, name: &CStr) -> u32 {
    let _own = OwnWork::begin();
    let mut guard = registry();
    let Some(registry) = guard.as_mut() else { return 0 };
    registry.next_object += 1;
    let id = registry.next_object;
    registry.objects.insert((window, handle), (id, communicator));
    drop(guard);
    let definition = Definition::Object {
        kind: if window { ObjectKind::Window } else { ObjectKind::File },
        id,
        ticks: counter::now(),
        communicator,
        name: name.to_string_lossy().into_owned(),
    };
    transient::define(Subject::Object(id), &definition);
    id
}

/// Local ids of a window or file and of its communicator; zeros if unknown.
/// The caches were refreshed in this call.
#[inline(always)]
pub fn object(block: &ThreadBlock, window: bool, handle: usize) -> (u32, u16) {
    let key = (handle, window);
    if block.object.get().0 != key {
        block.object.set((key, look_up_object(window, handle)));
    }
    block.object.get().1
}

#[cold]
#[inline(never)]
fn look_up_object(window: bool, handle: usize) -> (u32, u16) {
    let _own = OwnWork::begin();
    let found = registry().as_ref().and_then(|r| r.objects.get(&(window, handle)).copied());
    found.unwrap_or((0, COMMUNICATOR_UNKNOWN))
}

/// Removes a window or file that the program has freed.
#[cold]
pub fn object_freed(window: bool, handle: usize) {
    let _own = OwnWork::begin();
    let forgotten =
        registry().as_mut().and_then(|registry| registry.objects.remove(&(window, handle)));
    if let Some((id, _)) = forgotten {
        transient::freed(Subject::Object(id));
    }
    forget_handles();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ranks_as_strides() {
        assert_eq!(runs(&[]), []);
        assert_eq!(runs(&[5]), [(5, 0, 1)]);
        assert_eq!(runs(&[0, 1, 2, 3]), [(0, 1, 4)]);
        assert_eq!(runs(&[1, 3, 5, 6, 7]), [(1, 2, 3), (6, 1, 2)]);
        assert_eq!(runs(&[9, 6, 3]), [(9, -3, 3)]);
        // Ranks of another world belong to no stride.
        assert_eq!(runs(&[-1, -1, 2]), [(-1, 0, 2), (2, 0, 1)]);
        assert_eq!(runs(&[2, 1, 0, -1]), [(2, -1, 3), (-1, 0, 1)]);
    }

    #[test]
    fn identity_depends_on_members_their_order_and_instance() {
        let hash = hash_of(&[0, 1, 2], 0);
        for other in [hash_of(&[0, 2, 1], 0), hash_of(&[0, 1], 0), hash_of(&[0, 1, 2], 7)] {
            assert_ne!(other, hash);
        }
        assert_eq!(hash_of(&[0, 1, 2], 0), hash);
        assert_ne!(identity_of(hash, 0), identity_of(hash, 1));
        assert_ne!(seed_from(hash, 60, 0), seed_from(hash, 61, 0));
        assert_ne!(seed_from(hash, 60, 0), seed_from(hash, 60, 1));
    }
}
