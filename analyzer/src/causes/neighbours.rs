//! The neighbours that ranks exchange with in neighbourhood collectives.

use rustc_hash::FxHashMap;
use trace_format::header::Definition;

use crate::timeline::communicators::{CommunicatorTable, Peer};
use crate::trace::Run;

/// World ranks that each rank receives from, by communicator and the rank's position in the run.
#[derive(Debug, Default)]
pub(super) struct Neighbours(FxHashMap<(u32, usize), Vec<u32>>);

impl Neighbours {
    /// The neighbours that the recorder wrote down. A rank with a neighbour that cannot be
    /// identified has none.
    pub fn new(run: &Run, communicators: &CommunicatorTable) -> Self {
        let mut all = FxHashMap::default();
        for (position, trace) in run.ranks.iter().enumerate() {
            for definition in &trace.file.definitions {
                let Definition::Topology(of) = definition else { continue };
                let membership = communicators.resolve(position, of.communicator, of.ticks);
                let Some(membership) = membership else { continue };
                let there = of.sources.iter().filter(|source| **source >= 0);
                let world = there.map(|source| match communicators.peer(membership, *source) {
                    Peer::World(rank) => Some(rank),
                    _ => None,
                });
                if let Some(world) = world.collect() {
                    all.insert((membership.communicator, position), world);
                }
            }
        }
        Self(all)
    }

    /// World ranks that the rank at a position receives from; `None` if that is not known.
    pub fn sources(&self, communicator: u32, position: usize) -> Option<&[u32]> {
        self.0.get(&(communicator, position)).map(Vec::as_slice)
    }
}
