//! Names and numbers in Paraver's files: Extrae's event types, functions and states, and our own
//! event types.
//!
//! Taken from Extrae's sources: `src/merger/paraver/MPI_EventEncoding.h` (functions),
//! `src/common/events.h` (types, states), `mpi_prv_semantics.c` and `paraver_generator.c` (contents
//! of records).

use std::ops::RangeInclusive;

/// Name of the files without suffix.
pub const STEM: &str = "trace";
/// Suffixes of the files; a reader opens the last one.
pub const ENDINGS: [&str; 3] = ["pcf", "row", "prv"];

/// Point-to-point calls, waits and probes.
pub const POINT_TO_POINT: u32 = 50_000_001;
/// Collective operations.
pub const COLLECTIVE: u32 = 50_000_002;
/// All other MPI calls.
pub const OTHER: u32 = 50_000_003;
/// One-sided calls.
pub const ONE_SIDED: u32 = 50_000_004;
/// File operations.
pub const FILES: u32 = 50_000_005;
/// Types of MPI calls; the value is the function's number, or 0 at its end.
pub const MPI_TYPES: RangeInclusive<u32> = POINT_TO_POINT..=50_000_009;
/// Bytes that a rank sends in a collective operation.
pub const SENT_BYTES: u32 = 50_100_001;
pub const RECEIVED_BYTES: u32 = 50_100_002;
/// 1 on the root of a collective operation; the other ranks have no such event.
pub const IS_ROOT: u32 = 50_100_003;
/// Communicator of a collective operation, by its number in the file's head.
pub const COMMUNICATOR: u32 = 50_100_004;
/// User functions.
pub const USER: u32 = 60_000_019;

/// First of our own event types: "gamm" in ASCII, far from the ranges of other tools.
const OWN_TYPES: u32 = 0x6761_6d6d;
/// First event of every file that we write: our other types have a meaning only in such a file.
pub const MARK: u32 = OWN_TYPES;
/// Time of the recorder.
pub const RECORDER: u32 = OWN_TYPES + 1;
/// Number of polls in a run, at its beginning.
pub const POLLS: u32 = OWN_TYPES + 2;
/// Bound of a rank's clock, nanoseconds, at the rank's beginning.
pub const CLOCK_BOUND: u32 = OWN_TYPES + 3;
/// Root of a collective operation: its rank in the communicator, plus 1.
pub const ROOT: u32 = OWN_TYPES + 4;
/// Version of our types: value of [`MARK`].
pub const MARK_VERSION: u32 = 1;

/// State of a thread that computes.
pub const RUNNING: u32 = 1;
/// State of a thread before its process begins and after it has ended.
pub const NOT_CREATED: u32 = 2;
/// State of a thread while the program has switched tracing off.
pub const NOT_TRACING: u32 = 14;

/// Paraver's states that exports use: number, name and colour.
pub const STATES: [(u32, &str, &str); 14] = [
    (0, "Idle", "117,195,255"),
    (RUNNING, "Running", "0,0,255"),
    (2, "Not created", "255,255,255"),
    (3, "Waiting a message", "255,0,0"),
    (4, "Blocking Send", "255,0,174"),
    (5, "Synchronization", "179,0,0"),
    (6, "Test/Probe", "0,255,0"),
    (8, "Wait/WaitAll", "235,0,0"),
    (10, "Immediate Send", "255,0,255"),
    (11, "Immediate Receive", "100,100,177"),
    (12, "I/O", "172,174,41"),
    (13, "Group Communication", "255,144,26"),
    (15, "Others", "192,224,0"),
    (16, "Send Receive", "66,66,66"),
];

/// MPI's functions in the order of Extrae's numbers, which begin at 1.
#[rustfmt::skip]
const FUNCTIONS: [&str; 167] = [
    "Send", "Recv", "Isend", "Irecv", "Wait", "Waitall", "Bcast", "Barrier", "Reduce", "Allreduce",
    "Alltoall", "Alltoallv", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv",
    "Comm_rank", "Comm_size", "Comm_create", "Comm_dup", "Comm_split", "Comm_group", "Comm_free",
    "Comm_remote_group", "Comm_remote_size", "Comm_test_inter", "Comm_compare", "Scan", "Init",
    "Finalize", "Bsend", "Ssend", "Rsend", "Ibsend", "Issend", "Irsend", "Test", "Cancel", "Sendrecv",
    "Sendrecv_replace", "Cart_create", "Cart_shift", "Cart_coords", "Cart_get", "Cart_map", "Cart_rank",
    "Cart_sub", "Cartdim_get", "Dims_create", "Graph_get", "Graph_map", "Graph_create",
    "Graph_neighbors", "Graphdims_get", "Graph_neighbors_count", "Topo_test", "Waitany", "Waitsome",
    "Probe", "Iprobe", "Win_create", "Win_free", "Put", "Get", "Accumulate", "Win_fence", "Win_start",
    "Win_complete", "Win_post", "Win_wait", "Win_test", "Win_lock", "Win_unlock", "Pack", "Unpack",
    "Op_create", "Op_free", "Reduce_scatter", "Attr_delete", "Attr_get", "Attr_put", "Group_difference",
    "Group_excl", "Group_free", "Group_incl", "Group_intersection", "Group_rank", "Group_range_excl",
    "Group_range_incl", "Group_size", "Group_translate_ranks", "Group_union", "Group_compare",
    "Intercomm_create", "Intercomm_merge", "Keyval_free", "Keyval_create", "Abort", "Error_class",
    "Errhandler_create", "Errhandler_free", "Errhandler_get", "Error_string", "Errhandler_set",
    "Get_processor_name", "Initialized", "Wtick", "Wtime", "Address", "Bsend_init", "Buffer_attach",
    "Buffer_detach", "Request_free", "Recv_init", "Send_init", "Get_count", "Get_elements", "Pack_size",
    "Rsend_init", "Ssend_init", "Start", "Startall", "Testall", "Testany", "Test_cancelled", "Testsome",
    "Type_commit", "Type_contiguous", "Type_extent", "Type_free", "Type_hindexed", "Type_hvector",
    "Type_indexed", "Type_lb", "Type_size", "Type_struct", "Type_ub", "Type_vector", "File_open",
    "File_close", "File_read", "File_read_all", "File_write", "File_write_all", "File_read_at",
    "File_read_at_all", "File_write_at", "File_write_at_all", "Comm_spawn", "Comm_spawn_multiple",
    "Request_get_status", "Ireduce", "Iallreduce", "Ibarrier", "Ibcast", "Ialltoall", "Ialltoallv",
    "Iallgather", "Iallgatherv", "Igather", "Igatherv", "Iscatter", "Iscatterv", "Ireduce_scatter",
    "Iscan",
];

/// First number for functions that Extrae does not number.
pub const OWN_NUMBERS: u32 = 1000;

/// MPI's functions and their numbers.
pub fn functions() -> impl Iterator<Item = (String, u32)> {
    FUNCTIONS.iter().map(|name| format!("MPI_{name}")).zip(1..)
}

/// Extrae's number of a function.
pub fn number_of(function: &str) -> Option<u32> {
    let name = function.strip_prefix("MPI_")?;
    FUNCTIONS.iter().zip(1..).find(|(known, _)| **known == name).map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_extrae() {
        // Values that Extrae's header gives in comments.
        for (name, number) in [
            ("MPI_Allreduce", 10),
            ("MPI_Comm_size", 20),
            ("MPI_Scan", 30),
            ("MPI_Cancel", 40),
            ("MPI_Cartdim_get", 50),
            ("MPI_Waitsome", 60),
            ("MPI_Win_complete", 70),
            ("MPI_Reduce_scatter", 80),
            ("MPI_Group_range_excl", 90),
            ("MPI_Abort", 100),
            ("MPI_Wtime", 110),
            ("MPI_Pack_size", 120),
            ("MPI_Type_contiguous", 130),
            ("MPI_Type_vector", 140),
            ("MPI_File_write_at_all", 150),
            ("MPI_Iallreduce", 155),
            ("MPI_Iscatterv", 165),
        ] {
            assert_eq!(number_of(name), Some(number), "{name}");
        }
        assert_eq!(number_of("MPI_Mprobe"), None);
        assert_eq!(functions().last(), Some(("MPI_Iscan".to_owned(), 167)));
    }
}
