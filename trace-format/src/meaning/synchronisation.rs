//! Determines which ranks a call's result depends on.
//!
//! The standard lets most collective operations return early. What matters here is which ranks the
//! result depends on, and therefore which ranks a call that does not return waits for. Sources: MPI
//! 5.0, chapters 6 (collective operations), 7 (communicators), 11 (processes), 12 (one-sided), 14
//! (files).

use super::class::{Class, collective_stem, lists};

/// The ranks that a call's result depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Synchronises {
    /// None: the call is local, or its partner is a single rank named by its arguments.
    Nobody,
    /// All ranks of the communicator (the other group of an intercommunicator): barrier, allreduce,
    /// making and freeing communicators, windows and files, fences.
    All,
    /// The root: broadcast, scatter.
    FromRoot,
    /// All ranks, but only for the root's result: gather, reduce.
    ToRoot,
    /// Lower ranks: scan, exscan.
    Prefix,
    /// The ranks whose data it receives: counts are per peer.
    Exchanging,
    /// The neighbours in the topology.
    Neighbours,
    /// A group that is not part of its record: start, complete, post and wait; making communicators
    /// from groups.
    Group,
    /// The rank that holds the target's lock.
    Target,
}

/// Calls that make or free a communicator together with all its members (MPI 5.0, chapters 7, 8,
/// 11).
const MAKES_TOGETHER: &str = "\
    MPI_Cart_create MPI_Cart_sub MPI_Comm_accept MPI_Comm_connect MPI_Comm_create \
    MPI_Comm_disconnect MPI_Comm_dup MPI_Comm_dup_with_info MPI_Comm_free MPI_Comm_spawn \
    MPI_Comm_spawn_multiple MPI_Comm_split MPI_Comm_split_type MPI_Dist_graph_create \
    MPI_Dist_graph_create_adjacent MPI_Graph_create MPI_Intercomm_create MPI_Intercomm_merge";

/// Calls on windows that all ranks of the window make together.
const WINDOWS_TOGETHER: &str = "\
    MPI_Win_allocate MPI_Win_allocate_shared MPI_Win_create MPI_Win_create_dynamic MPI_Win_fence \
    MPI_Win_free";

/// Calls on files that all ranks of the file make together, in addition to those that end in `_all`
/// or `_ordered` and their halves.
const FILES_TOGETHER: &str = "\
    MPI_File_close MPI_File_open MPI_File_preallocate MPI_File_seek_shared \
    MPI_File_set_atomicity MPI_File_set_info MPI_File_set_size MPI_File_set_view MPI_File_sync";

pub(super) fn synchronises(name: &str, class: Class) -> Synchronises {
    match class {
        Class::Collective => match collective_stem(name).as_deref() {
            Some("bcast" | "scatter" | "scatterv") => Synchronises::FromRoot,
            Some("gather" | "gatherv" | "reduce") => Synchronises::ToRoot,
            Some("scan" | "exscan") => Synchronises::Prefix,
            Some("allgatherv" | "alltoallv" | "alltoallw") => Synchronises::Exchanging,
            Some(stem) if stem.starts_with("neighbor_") => Synchronises::Neighbours,
            _ => Synchronises::All,
        },
        Class::Communicators if lists(MAKES_TOGETHER, name) => Synchronises::All,
        Class::Communicators
            if matches!(
                name,
                "MPI_Comm_create_group"
                    | "MPI_Comm_create_from_group"
                    | "MPI_Intercomm_create_from_groups"
            ) =>
        {
            Synchronises::Group
        }
        Class::OneSided if lists(WINDOWS_TOGETHER, name) => Synchronises::All,
        Class::OneSided => match name {
            "MPI_Win_start" | "MPI_Win_complete" | "MPI_Win_post" | "MPI_Win_wait"
            | "MPI_Win_test" => Synchronises::Group,
            _ if name.starts_with("MPI_Win_lock")
                || name.starts_with("MPI_Win_unlock")
                || name.starts_with("MPI_Win_flush") =>
            {
                Synchronises::Target
            }
            _ => Synchronises::Nobody,
        },
        Class::Io if lists(FILES_TOGETHER, name) => Synchronises::All,
        // For non-blocking ones (MPI_File_iwrite_all), the completion waits and not the call.
        Class::Io
            if !name.starts_with("MPI_File_i")
                && ["_all", "_ordered"].iter().any(|together| {
                    let halves = ["", "_begin", "_end"];
                    halves.iter().any(|half| name.ends_with(&format!("{together}{half}")))
                }) =>
        {
            Synchronises::All
        }
        _ => Synchronises::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use crate::meaning::{Meaning, Synchronises};

    #[test]
    fn knows_ranks_that_calls_wait_for() {
        for (name, whom) in [
            ("MPI_Barrier", Synchronises::All),
            ("MPI_Ireduce_scatter", Synchronises::All),
            ("MPI_Scatterv", Synchronises::FromRoot),
            ("MPI_Reduce_init", Synchronises::ToRoot),
            ("MPI_Exscan", Synchronises::Prefix),
            ("MPI_Alltoallv", Synchronises::Exchanging),
            ("MPI_Ineighbor_allgather", Synchronises::Neighbours),
            ("MPI_Win_fence", Synchronises::All),
            ("MPI_Win_lock_all", Synchronises::Target),
            ("MPI_Win_post", Synchronises::Group),
            ("MPI_Put", Synchronises::Nobody),
            ("MPI_File_close", Synchronises::All),
            ("MPI_File_write_at_all", Synchronises::All),
            ("MPI_File_read_ordered_end", Synchronises::All),
            ("MPI_File_iwrite_all", Synchronises::Nobody),
            ("MPI_File_write", Synchronises::Nobody),
            ("MPI_Comm_split", Synchronises::All),
            ("MPI_Comm_rank", Synchronises::Nobody),
            ("MPI_Send", Synchronises::Nobody),
            ("cblas_dgemm", Synchronises::Nobody),
        ] {
            assert_eq!(Meaning::by_name(name).synchronises, whom, "{name}");
        }
    }
}
