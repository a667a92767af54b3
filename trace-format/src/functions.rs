//! Numbers and classes of the functions that a trace can name.
//!
//! In: [`crate::procedures`] and [`crate::compute`]. Out: the names in the order that
//! numbers them from [`crate::layout::FIRST_FUNCTION`] on, and each name's class.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::compute::{self, Group};
use crate::procedures;

/// Name under which work that the program declares is recorded: an event without length.
pub const DECLARED_WORK: &str = "gammachi_work";

/// What a function is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Sends and receives.
    PointToPoint,
    /// Waits and tests for requests.
    Completion,
    /// Probes.
    Probe,
    /// Collective operations, blocking or not.
    Collective,
    /// Windows and remote memory access.
    OneSided,
    /// Files.
    Io,
    /// Making and freeing communicators, groups, topologies, processes, sessions.
    Communicators,
    /// Datatypes, packing.
    Datatypes,
    /// MPI_Init, MPI_Finalize, MPI_Abort.
    Lifetime,
    /// Everything else in MPI.
    Other,
    /// Work: interposed compute functions.
    Compute,
}

impl Class {
    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::PointToPoint => "point-to-point",
            Self::Completion => "completion",
            Self::Probe => "probe",
            Self::Collective => "collective",
            Self::OneSided => "one-sided",
            Self::Io => "I/O",
            Self::Communicators => "communicators",
            Self::Datatypes => "datatypes",
            Self::Lifetime => "lifetime",
            Self::Other => "other",
            Self::Compute => "compute",
        }
    }
}

/// Names of all functions in numbering order: MPI's procedures, then [`compute_names`].
pub fn names() -> Vec<String> {
    procedures::all().into_iter().map(|p| p.name).chain(compute_names()).collect()
}

/// Names of interposed compute functions and of declared work, in numbering order.
pub fn compute_names() -> Vec<String> {
    let table = compute::all().into_iter().map(|function| function.name);
    table.chain(compute::fftw()).chain([DECLARED_WORK.to_owned()]).collect()
}

/// Whether a compute function is one of the small ones (BLAS 1 and 2, but for trsv): its operations
/// count, but it is the program's own code to `--compute blas`, which means the larger calls.
pub fn is_light(name: &str) -> bool {
    static LIGHT: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let all = compute::all().into_iter();
        all.filter(|function| function.group == Group::Light)
            .map(|function| function.name)
            .collect()
    });
    LIGHT.contains(name)
}

const COLLECTIVES: &[&str] = &[
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "barrier",
    "bcast",
    "exscan",
    "gather",
    "gatherv",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "scatter",
    "scatterv",
];

const POINT_TO_POINT: &[&str] = &[
    "bsend",
    "ibsend",
    "imrecv",
    "irecv",
    "irsend",
    "isend",
    "isendrecv",
    "isendrecv_replace",
    "issend",
    "mrecv",
    "pready",
    "pready_list",
    "pready_range",
    "parrived",
    "precv",
    "psend",
    "recv",
    "rsend",
    "send",
    "sendrecv",
    "sendrecv_replace",
    "ssend",
    "start",
    "startall",
    "cancel",
];

/// The class of a function by its name.
pub fn class_of(name: &str) -> Class {
    let Some(rest) = name.strip_prefix("MPI_") else { return Class::Compute };
    let lower = rest.to_ascii_lowercase();
    let stem = lower.strip_suffix("_init").unwrap_or(&lower);
    if matches!(lower.as_str(), "init" | "init_thread" | "finalize" | "abort") {
        return Class::Lifetime;
    }
    if COLLECTIVES.contains(&stem)
        || stem.strip_prefix('i').is_some_and(|stem| COLLECTIVES.contains(&stem))
    {
        return Class::Collective;
    }
    if POINT_TO_POINT.contains(&stem) {
        return Class::PointToPoint;
    }
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| lower.starts_with(prefix));
    if starts(&["wait", "test", "request_"]) {
        Class::Completion
    } else if matches!(stem, "probe" | "iprobe" | "mprobe" | "improbe") {
        Class::Probe
    } else if starts(&["win_"])
        || matches!(
            stem,
            "put"
                | "get"
                | "accumulate"
                | "get_accumulate"
                | "fetch_and_op"
                | "compare_and_swap"
                | "rput"
                | "rget"
                | "raccumulate"
                | "rget_accumulate"
        )
    {
        Class::OneSided
    } else if starts(&["file_"]) {
        Class::Io
    } else if starts(&["type_", "pack", "unpack"]) {
        Class::Datatypes
    } else if starts(&[
        "comm_",
        "group_",
        "cart_",
        "graph_",
        "dist_graph_",
        "intercomm_",
        "session_",
    ]) {
        Class::Communicators
    } else {
        Class::Other
    }
}

/// Whether a call's own event says how many bytes it moved. Where a call posts a receive or makes a
/// persistent request, the event has the buffer's size, and where it makes a communicator, a window
/// or a file, the number of that.
pub fn moves_bytes(name: &str, class: Class) -> bool {
    match class {
        Class::PointToPoint => {
            let posts = matches!(
                name,
                "MPI_Irecv" | "MPI_Imrecv" | "MPI_Start" | "MPI_Startall" | "MPI_Cancel"
            );
            let partitioned = ["MPI_Pready", "MPI_Parrived"].iter().any(|p| name.starts_with(p));
            !posts && !partitioned && !name.ends_with("_init")
        }
        Class::Collective => !name.ends_with("_init"),
        Class::OneSided => !name.starts_with("MPI_Win_"),
        Class::Io => name.contains("read") || name.contains("write"),
        Class::Datatypes => name.starts_with("MPI_Pack") || name.starts_with("MPI_Unpack"),
        Class::Compute => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_some_names() {
        for (name, class) in [
            ("MPI_Send", Class::PointToPoint),
            ("MPI_Recv_init", Class::PointToPoint),
            ("MPI_Iallreduce", Class::Collective),
            ("MPI_Barrier_init", Class::Collective),
            ("MPI_Ineighbor_alltoallw", Class::Collective),
            ("MPI_Waitall", Class::Completion),
            ("MPI_Init", Class::Lifetime),
            ("MPI_Improbe", Class::Probe),
            ("MPI_Get", Class::OneSided),
            ("MPI_Get_count", Class::Other),
            ("MPI_File_iwrite", Class::Io),
            ("MPI_Type_size", Class::Datatypes),
            ("MPI_Comm_rank", Class::Communicators),
            ("cblas_dgemm", Class::Compute),
        ] {
            assert_eq!(class_of(name), class, "{name}");
        }
    }

    #[test]
    fn numbers_fit_below_the_flags() {
        let last = usize::from(crate::layout::FIRST_FUNCTION) + names().len();
        assert!(last <= usize::from(crate::layout::FUNCTION_MASK));
    }
}
