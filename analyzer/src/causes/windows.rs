//! What the ranks did on windows: calls of epochs, and accesses inside them.
//!
//! Each rank numbers its windows itself. All members of a communicator make its windows in the same
//! order, so the n-th window of a communicator is the same on all of them.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use trace_format::header::{Definition, ObjectKind};
use trace_format::meaning::EpochCall;

use crate::timeline::communicators::{CommunicatorTable, Members, Peer};
use crate::trace::Run;

use super::side::Side;

/// The windows of a run, and the groups named by calls on them.
#[derive(Debug, Default)]
pub(super) struct Windows {
    /// By the rank's position, the run's number of each window of the rank.
    numbers: Vec<FxHashMap<u32, u32>>,
    /// By the rank's position, the world ranks of each of its groups.
    groups: Vec<FxHashMap<u32, Vec<u32>>>,
}

impl Windows {
    /// The windows that the ranks defined. Those of a rank that left out definitions are unknown.
    pub fn new(run: &Run, communicators: &CommunicatorTable) -> Self {
        let mut windows = Self::default();
        let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for (position, trace) in run.ranks.iter().enumerate() {
            let (mut made, mut groups) = (Vec::new(), FxHashMap::default());
            let mut left_out = 0;
            for definition in &trace.file.definitions {
                match definition {
                    Definition::Object {
                        kind: ObjectKind::Window,
                        id,
                        ticks,
                        communicator,
                        ..
                    } => {
                        let of = communicators.resolve(position, *communicator, *ticks);
                        made.extend(of.map(|of| (*id, of.communicator)));
                    }
                    Definition::LeftOut { objects, .. } => left_out = left_out.max(*objects),
                    Definition::Group { number, members } => {
                        groups.extend(world_ranks(members).map(|ranks| (*number, ranks)));
                    }
                    _ => {}
                }
            }
            made.sort_unstable();
            made.dedup();
            if left_out > 0 {
                made.clear();
            }
            let mut counts: FxHashMap<u32, u32> = FxHashMap::default();
            let numbers = made.into_iter().map(|(id, communicator)| {
                let count = counts.entry(communicator).or_default();
                *count += 1;
                let next = known.len() as u32;
                (id, *known.entry((communicator, *count)).or_insert(next))
            });
            windows.numbers.push(numbers.collect());
            windows.groups.push(groups);
        }
        windows
    }

    pub(super) fn number(&self, rank: usize, id: u32) -> Option<u32> {
        self.numbers.get(rank)?.get(&id).copied()
    }

    /// World ranks of a group of the rank at a position.
    pub fn group(&self, rank: usize, number: u32) -> Option<&[u32]> {
        self.groups.get(rank)?.get(&number).map(Vec::as_slice)
    }
}

/// World ranks of a group; `None` if some are not of this world.
fn world_ranks(runs: &[(i64, i64, u32)]) -> Option<Vec<u32>> {
    let size = runs.iter().map(|(.., count)| *count).fold(0, u32::saturating_add);
    let members = Members::from_runs(runs, size);
    let ranks = (0..size as i32).map(|at| match members.peer(at) {
        Peer::World(rank) => Some(rank),
        _ => None,
    });
    ranks.collect()
}

/// A call of an epoch.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct EpochPart {
    pub side: Side,
    pub what: EpochCall,
    /// The run's number of the window.
    pub window: u32,
    /// The group's number on the rank.
    pub group: u32,
    /// World rank of the target, if the call names one.
    pub target: Option<u32>,
    /// Whether a lock is exclusive, if known.
    pub exclusive: Option<bool>,
}

/// An access inside an epoch that MPI_Win_start began.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct AccessPart {
    pub side: Side,
    /// The run's number of the window.
    pub window: u32,
    /// World rank of the target.
    pub target: u32,
}

/// What matching found on windows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct WindowCalls {
    pub epochs: Vec<EpochPart>,
    pub accesses: Vec<AccessPart>,
    /// Ranks, by position, and their windows on which an access epoch for a group is open.
    pub(super) started: FxHashSet<(usize, u32)>,
    /// Calls whose partners are not known.
    pub unknown: u64,
}

impl WindowCalls {
    pub fn merge(&mut self, other: Self) {
        self.epochs.extend(other.epochs);
        self.accesses.extend(other.accesses);
        self.unknown += other.unknown;
    }
}
