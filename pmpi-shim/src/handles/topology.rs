//! The neighbours of a rank in a communicator's topology (MPI 5.0, chapter 8).

use crate::mpi::abi;
use crate::mpi::library::{Entry, KnownEntry, ask};

/// The ranks of a communicator that a rank exchanges with in neighbourhood collectives, in the
/// order of their blocks; −1 for MPI_PROC_NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// Received from.
    pub sources: Vec<i32>,
    /// Sent to.
    pub destinations: Vec<i32>,
}

impl Neighbours {
    /// A bit for each of the first 64 sources that is MPI_PROC_NULL, as at the edges of a Cartesian
    /// topology.
    pub fn missing(&self) -> u64 {
        let bits = self.sources.iter().take(64).enumerate();
        bits.fold(0, |bits, (at, rank)| bits | u64::from(*rank < 0) << at)
    }
}

/// The neighbours of this rank in a communicator; `None` if it has no topology.
pub fn neighbours(communicator: usize) -> Option<Neighbours> {
    // Asked of every communicator, so it is looked up once.
    static TEST: KnownEntry = KnownEntry::new(c"PMPI_Topo_test");
    let topology = TEST.ask(communicator)?;
    match abi::topology(topology)? {
        abi::Topology::Cartesian => cartesian(communicator),
        abi::Topology::Graph => graph(communicator),
        abi::Topology::DistributedGraph => distributed_graph(communicator),
    }
}

fn cartesian(communicator: usize) -> Option<Neighbours> {
    let dimensions = ask(c"PMPI_Cartdim_get", communicator)?;
    let mut ranks = Vec::new();
    for dimension in 0..dimensions.max(0) {
        let (mut source, mut destination) = (0i32, 0i32);
        // SAFETY: the arguments of MPI_Cart_shift.
        let known = unsafe {
            Entry::find(c"PMPI_Cart_shift")?.call([
                communicator,
                dimension as usize,
                1,
                &raw mut source as usize,
                &raw mut destination as usize,
            ])
        };
        if !known {
            return None;
        }
        let or_none = |rank: i32| if rank == abi::proc_null() { -1 } else { rank };
        ranks.extend([or_none(source), or_none(destination)]);
    }
    Some(Neighbours { sources: ranks.clone(), destinations: ranks })
}

fn graph(communicator: usize) -> Option<Neighbours> {
    let rank = ask(c"PMPI_Comm_rank", communicator)?;
    let mut count = 0i32;
    // SAFETY: the arguments of MPI_Graph_neighbors_count.
    let known = unsafe {
        Entry::find(c"PMPI_Graph_neighbors_count")?.call([
            communicator,
            rank as usize,
            &raw mut count as usize,
        ])
    };
    let mut ranks = vec![0i32; usize::try_from(count).ok().filter(|_| known)?];
    // SAFETY: the arguments of MPI_Graph_neighbors; the array has room for all of them.
    let known = unsafe {
        Entry::find(c"PMPI_Graph_neighbors")?.call([
            communicator,
            rank as usize,
            ranks.len(),
            ranks.as_mut_ptr() as usize,
        ])
    };
    known.then(|| Neighbours { sources: ranks.clone(), destinations: ranks })
}

fn distributed_graph(communicator: usize) -> Option<Neighbours> {
    let (mut inward, mut outward, mut weighted) = (0i32, 0i32, 0i32);
    // SAFETY: the arguments of MPI_Dist_graph_neighbors_count.
    let known = unsafe {
        Entry::find(c"PMPI_Dist_graph_neighbors_count")?.call([
            communicator,
            &raw mut inward as usize,
            &raw mut outward as usize,
            &raw mut weighted as usize,
        ])
    };
    let ranks = |count: i32| Some(vec![0i32; usize::try_from(count).ok().filter(|_| known)?]);
    let (mut sources, mut destinations) = (ranks(inward)?, ranks(outward)?);
    let mut weights = [ranks(inward)?, ranks(outward)?];
    // SAFETY: the arguments of MPI_Dist_graph_neighbors; the arrays have room for all of them.
    let known = unsafe {
        Entry::find(c"PMPI_Dist_graph_neighbors")?.call([
            communicator,
            sources.len(),
            sources.as_mut_ptr() as usize,
            weights[0].as_mut_ptr() as usize,
            destinations.len(),
            destinations.as_mut_ptr() as usize,
            weights[1].as_mut_ptr() as usize,
        ])
    };
    known.then_some(Neighbours { sources, destinations })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_neighbours_beyond_the_edge() {
        let of = |sources: &[i32]| Neighbours { sources: sources.to_vec(), destinations: vec![] };
        assert_eq!(of(&[]).missing(), 0);
        assert_eq!(of(&[-1, 3, 0, -1]).missing(), 0b1001);
        assert_eq!(of(&[-1; 70]).missing(), u64::MAX);
    }
}
