//! Adds windows, groups and topologies to [`SyntheticRank`].

use trace_format::header::{Definition, ObjectKind, Topology};
use trace_format::layout::COMMUNICATOR_WORLD;

use crate::synthetic_messages::{Attributes, on_world};
use crate::synthetic_trace::SyntheticRank;

/// Open MPI's MPI_LOCK_EXCLUSIVE and MPI_LOCK_SHARED.
pub const EXCLUSIVE: u32 = 1;
pub const SHARED: u32 = 2;

/// Attributes of a call on a window.
pub fn on_window(window: u32) -> Attributes {
    on_world(0, window as i32, 0)
}

/// Attributes of a call that names a group by its number.
pub fn for_group(window: u32, group: u32) -> Attributes {
    on_world(0, window as i32, group)
}

/// Attributes of a call that names a target. MPI_Win_lock has the type of the lock as bytes.
pub fn for_target(window: u32, target: u32, bytes: u32) -> Attributes {
    on_world(target as i32, window as i32, bytes)
}

impl SyntheticRank {
    /// Defines a window on MPI_COMM_WORLD.
    pub fn window(&mut self, id: u32) -> &mut Self {
        self.definitions.push(Definition::Object {
            kind: ObjectKind::Window,
            id,
            ticks: 1,
            communicator: COMMUNICATOR_WORLD,
            name: String::new(),
        });
        self
    }

    /// Defines a group of ranks of the world.
    pub fn group(&mut self, number: u32, ranks: &[u32]) -> &mut Self {
        let members = ranks.iter().map(|rank| (i64::from(*rank), 0, 1)).collect();
        self.definitions.push(Definition::Group { number, members });
        self
    }

    /// Defines the neighbours in a communicator's topology, the same in both directions.
    pub fn neighbours(&mut self, communicator: u16, ranks: &[i32]) -> &mut Self {
        self.definitions.push(Definition::Topology(Topology {
            communicator,
            ticks: 1,
            sources: ranks.to_vec(),
            destinations: ranks.to_vec(),
        }));
        self
    }
}
