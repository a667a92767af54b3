//! What the members of a collective operation need of each other, and what moves between them.

/// Which contributions the members of a collective operation need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Needs {
    /// All need all, and all send: in rounds.
    Everybody,
    /// All need all that send.
    All,
    /// All need the root.
    Root,
    /// The root needs all that send.
    AtRoot,
    /// Each needs lower ranks and itself.
    Lower,
}

/// How data moves in a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Movement {
    /// No data: a barrier.
    Nothing,
    /// No data, and the time after the last member's entry stays as recorded: operations that
    /// create communicators, windows and files, and fences.
    Meeting,
    /// The same data to or from all: broadcast, reduce, allreduce, scan.
    Same,
    /// Different data for each member: gather, scatter, allgather, reduce_scatter.
    Parts,
    /// Different data for each pair: alltoall.
    Pairs,
}
