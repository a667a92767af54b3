//! Classifies functions by name.

/// The purpose of a function.
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
    /// Making and freeing communicators, groups, topologies, processes and sessions.
    Communicators,
    /// Datatypes, packing.
    Datatypes,
    /// MPI_Init, MPI_Finalize, MPI_Abort.
    Lifetime,
    /// Everything else in MPI.
    Other,
    /// Interposed compute functions.
    Compute,
}

impl Class {
    /// Name shown to users.
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

/// Blocking forms of the collective operations (MPI 5.0, chapters 6 and 8), without `MPI_`.
const COLLECTIVES: &str = "\
    allgather allgatherv allreduce alltoall alltoallv alltoallw barrier bcast exscan gather \
    gatherv neighbor_allgather neighbor_allgatherv neighbor_alltoall neighbor_alltoallv \
    neighbor_alltoallw reduce reduce_scatter reduce_scatter_block scan scatter scatterv";

/// Sending, receiving, starting and cancelling (MPI 5.0, chapters 3 and 4), without `MPI_`.
const POINT_TO_POINT: &str = "\
    bsend ibsend imrecv irecv irsend isend isendrecv isendrecv_replace issend mrecv pready \
    pready_list pready_range parrived precv psend recv rsend send sendrecv sendrecv_replace \
    ssend start startall cancel";

/// Remote memory access (MPI 5.0, section 12.3), without `MPI_` and without the `r` of the forms
/// with a request.
const ACCESSES: &[&str] =
    &["put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"];

/// Whether a list of names separated by spaces has this one.
pub fn lists(names: &str, name: &str) -> bool {
    names.split(' ').any(|other| other == name)
}

/// Whether a procedure reads or writes another rank's memory.
pub(super) fn is_access(name: &str) -> bool {
    let lower = name.strip_prefix("MPI_").unwrap_or(name).to_ascii_lowercase();
    let with_request = lower.strip_prefix('r').filter(|stem| ACCESSES[..4].contains(stem));
    with_request.is_some() || ACCESSES.contains(&lower.as_str())
}

/// The name of a collective operation in lower case, without `MPI_`, `_init` and the `I` of the
/// non-blocking form. `None` if it is not a collective operation.
pub(super) fn collective_stem(name: &str) -> Option<String> {
    let lower = name.strip_prefix("MPI_")?.to_ascii_lowercase();
    let stem = lower.strip_suffix("_init").unwrap_or(&lower);
    let blocking = [Some(stem), stem.strip_prefix('i')].into_iter().flatten();
    blocking.into_iter().find(|stem| lists(COLLECTIVES, stem)).map(str::to_owned)
}

/// The class of a function by its name.
pub(super) fn class_of(name: &str) -> Class {
    let Some(rest) = name.strip_prefix("MPI_") else { return Class::Compute };
    let lower = rest.to_ascii_lowercase();
    let stem = lower.strip_suffix("_init").unwrap_or(&lower);
    if matches!(
        lower.as_str(),
        "init" | "init_thread" | "finalize" | "abort" | "session_init" | "session_finalize"
    ) {
        return Class::Lifetime;
    }
    if collective_stem(name).is_some() {
        return Class::Collective;
    }
    if lists(POINT_TO_POINT, stem) {
        return Class::PointToPoint;
    }
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| lower.starts_with(prefix));
    if starts(&["wait", "test", "request_"]) {
        Class::Completion
    } else if matches!(stem, "probe" | "iprobe" | "mprobe" | "improbe") {
        Class::Probe
    } else if starts(&["win_"]) || is_access(name) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_functions_by_name() {
        for (name, class) in [
            ("MPI_Send", Class::PointToPoint),
            ("MPI_Recv_init", Class::PointToPoint),
            ("MPI_Iallreduce", Class::Collective),
            ("MPI_Barrier_init", Class::Collective),
            ("MPI_Ineighbor_alltoallw", Class::Collective),
            ("MPI_Waitall", Class::Completion),
            ("MPI_Init", Class::Lifetime),
            ("MPI_Session_finalize", Class::Lifetime),
            ("MPI_Session_get_info", Class::Communicators),
            ("MPI_Improbe", Class::Probe),
            ("MPI_Get", Class::OneSided),
            ("MPI_Rget_accumulate", Class::OneSided),
            ("MPI_Get_count", Class::Other),
            ("MPI_File_iwrite", Class::Io),
            ("MPI_Type_size", Class::Datatypes),
            ("MPI_Comm_rank", Class::Communicators),
            ("cblas_dgemm", Class::Compute),
        ] {
            assert_eq!(class_of(name), class, "{name}");
        }
    }
}
