//! Participants of a run, and the meaning of numbers.

use std::collections::HashMap;

use trace_format::meaning::{Class, Meaning, Operation};

use crate::timeline::Alignment;
use crate::timeline::communicators::{CommunicatorTable, Peer};

/// A function that events name.
#[derive(Debug, Clone)]
pub struct Function {
    /// Name in C.
    pub name: String,
    pub class: Class,
    /// Its effect on messages and requests.
    pub operation: Operation,
}

/// An exported rank.
#[derive(Debug, Clone)]
pub struct HeadRank {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Position in the run.
    pub position: usize,
    /// Host name.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Threads that made calls; 0 is the one that initialised MPI.
    pub threads: Vec<u32>,
    /// When τ_i begins.
    pub begin_ns: i64,
    /// When τ_i ends.
    pub end_ns: i64,
    /// Latest timestamp of any thread, or the end of τ_i if that is later.
    pub last_ns: i64,
    /// Bound of its clock's error against the reference, if measured.
    pub bound_ns: Option<f64>,
    /// How its clock was aligned to the global timeline.
    pub alignment: Alignment,
    /// Whether MPI_Finalize returned.
    pub finalized: bool,
    /// Number among [`Head::functions`] of each function of its file.
    pub(super) functions: Vec<u32>,
    /// Number among [`Head::regions`] of each region id of its file.
    pub(super) regions: HashMap<u32, u32>,
}

#[derive(Debug, Clone)]
pub struct HeadCommunicator {
    /// Its name or, without one, how it was made and its number.
    pub name: String,
    /// Function that made it; `None` for the predefined ones.
    pub made_by: Option<String>,
    /// Whether it has two groups.
    pub inter: bool,
    /// Whether it is a rank's own MPI_COMM_SELF.
    pub own: bool,
    /// World rank of each member of each group; `None` if it is unknown or in another world.
    pub groups: [Vec<Option<u32>>; 2],
}

/// Participants, and the meaning of numbers in calls and messages.
#[derive(Debug, Clone)]
pub struct Head {
    /// Name of the run.
    pub title: String,
    /// The program's path.
    pub program: String,
    /// The MPI library's own version text.
    pub mpi_library: String,
    /// Ranks of MPI_COMM_WORLD, exported or not.
    pub world_size: u32,
    /// The exported ranks, ascending.
    pub ranks: Vec<HeadRank>,
    pub functions: Vec<Function>,
    /// Names of regions.
    pub regions: Vec<String>,
    /// Communicators, in the order of the table.
    pub communicators: Vec<HeadCommunicator>,
    /// Earliest and latest timestamp of the exported ranks.
    pub first_ns: i64,
    /// See [`Head::first_ns`].
    pub last_ns: i64,
    /// Nanoseconds since 1970 at time 0, by the reference rank's system clock.
    pub zero_unix_ns: Option<i64>,
    /// Bound of the clocks' error over all ranks.
    pub bound_ns: Option<f64>,
    /// The user's parameters.
    pub parameters: Vec<(String, String)>,
    /// Detail level of the recording.
    pub level: u8,
    /// What counts as computation.
    pub compute: String,
}

pub(super) fn functions(names: Vec<String>) -> Vec<Function> {
    let function = |name: String| {
        let Meaning { class, operation, .. } = *Meaning::by_name(&name);
        Function { class, operation, name }
    };
    names.into_iter().map(function).collect()
}

pub(super) fn head_communicators(table: &CommunicatorTable) -> Vec<HeadCommunicator> {
    let entries = table.entries().iter().zip(0u32..);
    let communicators = entries.map(|(entry, number)| {
        let members = |group: usize| {
            let positions = 0..entry.groups[group].size() as i32;
            let peers = positions.map(|position| entry.groups[group].peer(position));
            peers.map(|peer| if let Peer::World(rank) = peer { Some(rank) } else { None }).collect()
        };
        HeadCommunicator {
            name: table.label(number),
            made_by: entry.made_by.clone(),
            inter: entry.inter,
            own: entry.own,
            groups: [members(0), if entry.inter { members(1) } else { Vec::new() }],
        }
    });
    communicators.collect()
}
