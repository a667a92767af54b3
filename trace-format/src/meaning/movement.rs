//! Determines where collective operations move data.
//!
//! What an operation costs depends on this, on its size and on the number of ranks, whatever
//! algorithm a library chooses. Source: MPI 5.0, chapter 6.

use super::class::{Class, collective_stem};

/// Where a collective operation moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Movement {
    /// Nothing is moved: barrier.
    Nothing,
    /// The same data from one rank to all.
    FromRoot,
    /// Data of all ranks, combined to as much as each of them has.
    Combined,
    /// Between one rank and the others or among all, put together to as much as all of them have.
    Collected,
    /// Other data from every rank to every other.
    Exchanged,
    /// To and from the neighbours in the topology.
    Neighbours,
}

pub(super) fn movement(name: &str, class: Class) -> Option<Movement> {
    let stem = collective_stem(name).filter(|_| class == Class::Collective)?;
    Some(match stem.as_str() {
        "barrier" => Movement::Nothing,
        "bcast" => Movement::FromRoot,
        "gather" | "gatherv" | "scatter" | "scatterv" | "allgather" | "allgatherv" => {
            Movement::Collected
        }
        "alltoall" | "alltoallv" | "alltoallw" => Movement::Exchanged,
        stem if stem.starts_with("neighbor_") => Movement::Neighbours,
        // Reductions and scans.
        _ => Movement::Combined,
    })
}

#[cfg(test)]
mod tests {
    use crate::meaning::{Meaning, Movement};

    #[test]
    fn knows_where_collective_operations_move_data() {
        for (name, moves) in [
            ("MPI_Ibarrier", Some(Movement::Nothing)),
            ("MPI_Bcast_init", Some(Movement::FromRoot)),
            ("MPI_Iscatterv", Some(Movement::Collected)),
            ("MPI_Allgather", Some(Movement::Collected)),
            ("MPI_Alltoallw", Some(Movement::Exchanged)),
            ("MPI_Ineighbor_alltoall", Some(Movement::Neighbours)),
            ("MPI_Allreduce", Some(Movement::Combined)),
            ("MPI_Ireduce_scatter_block", Some(Movement::Combined)),
            ("MPI_Exscan", Some(Movement::Combined)),
            ("MPI_Reduce_local", None),
            ("MPI_Send", None),
            ("MPI_Comm_dup", None),
        ] {
            assert_eq!(Meaning::by_name(name).movement, moves, "{name}");
        }
    }
}
