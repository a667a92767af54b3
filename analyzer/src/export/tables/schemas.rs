//! Tables, their columns, and the trait that receives rows.

use Type::{Flag, Int, Long, Name, Real};

use crate::export::error::ExportError;

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A 32-bit integer.
    Int,
    /// A 64-bit integer.
    Long,
    /// A 64-bit floating-point number.
    Real,
    /// Text with few different values.
    Name,
    /// Yes or no.
    Flag,
}

/// A column: its name, its type, and whether it may be empty.
pub type Column = (&'static str, Type, bool);

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct Schema<'a> {
    /// Its name, and that of its file.
    pub name: &'a str,
    pub columns: &'a [Column],
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Empty,
    /// An integer of either width.
    Whole(i64),
    /// A floating-point number.
    Real(f64),
    /// Text.
    Name(&'a str),
    /// Yes or no.
    Flag(bool),
}

/// Receives tables.
pub trait Tables {
    /// Completes the current table and begins the next one.
    ///
    /// # Errors
    /// A file cannot be written.
    fn begin(&mut self, schema: &Schema) -> Result<(), ExportError>;
    /// Adds a row to the current table, with a cell per column.
    ///
    /// # Errors
    /// It cannot be written.
    fn row(&mut self, cells: &[Cell]) -> Result<(), ExportError>;
    /// Completes the last table.
    ///
    /// # Errors
    /// It cannot be written.
    fn finish(&mut self) -> Result<(), ExportError>;
}

/// Facts about the run.
pub const RUN: Schema =
    Schema { name: "run", columns: &[("key", Name, false), ("value", Name, true)] };
/// Ranks and their clocks.
pub const RANKS: Schema = Schema {
    name: "ranks",
    columns: &[
        ("rank", Int, false),
        ("host", Name, false),
        ("pid", Long, false),
        ("threads", Int, false),
        ("begin_ns", Long, false),
        ("end_ns", Long, false),
        ("finalized", Flag, false),
        ("clock", Name, false),
        ("clock_bound_ns", Real, true),
    ],
};
pub const COMMUNICATORS: Schema = Schema {
    name: "communicators",
    columns: &[
        ("communicator", Int, false),
        ("name", Name, false),
        ("made_by", Name, true),
        ("inter", Flag, false),
        ("size", Int, false),
    ],
};
/// Members of communicators.
pub const MEMBERS: Schema = Schema {
    name: "members",
    columns: &[
        ("communicator", Int, false),
        ("group", Int, false),
        ("position", Int, false),
        ("rank", Int, true),
    ],
};
pub const CALLS: Schema = Schema {
    name: "calls",
    columns: &[
        ("rank", Int, false),
        ("thread", Int, false),
        ("begin_ns", Long, false),
        ("end_ns", Long, true),
        ("function", Name, false),
        ("class", Name, false),
        ("communicator", Int, true),
        ("peer", Int, true),
        ("tag", Int, true),
        ("bytes", Long, true),
        ("received_bytes", Long, true),
        ("request", Long, true),
        ("polls", Long, true),
        ("polls_ns", Long, true),
        ("flops", Real, true),
        ("left", Flag, false),
        ("error", Name, true),
    ],
};
/// The recorder's own time.
pub const RECORDER: Schema = Schema {
    name: "recorder",
    columns: &[
        ("rank", Int, false),
        ("thread", Int, false),
        ("begin_ns", Long, false),
        ("end_ns", Long, true),
        ("reason", Name, false),
    ],
};
/// Regions that the program marked.
pub const REGIONS: Schema = Schema {
    name: "regions",
    columns: &[
        ("rank", Int, false),
        ("thread", Int, false),
        ("begin_ns", Long, false),
        ("end_ns", Long, false),
        ("region", Name, false),
    ],
};
/// OpenMP's parallel regions.
pub const PARALLEL_REGIONS: Schema = Schema {
    name: "parallel_regions",
    columns: &[
        ("rank", Int, false),
        ("thread", Int, false),
        ("begin_ns", Long, false),
        ("end_ns", Long, false),
        ("threads", Int, false),
        ("slowest_thread", Int, true),
        ("work_ns", Long, false),
        ("longest_ns", Long, false),
        ("barriers_ns", Long, false),
        ("locks_ns", Long, false),
        ("tasks_ns", Long, false),
        ("ends_ns", Long, false),
        ("function", Name, true),
        ("file", Name, true),
        ("line", Int, true),
    ],
};
/// Calls on files.
pub const FILE_CALLS: Schema = Schema {
    name: "file_calls",
    columns: &[
        ("rank", Int, false),
        ("thread", Int, false),
        ("begin_ns", Long, false),
        ("end_ns", Long, false),
        ("inside_mpi", Flag, false),
        ("kind", Name, false),
        ("file", Int, false),
        ("name", Name, true),
        ("calls", Long, false),
        ("bytes", Long, false),
        ("inside_ns", Long, false),
    ],
};
pub const MESSAGES: Schema = Schema {
    name: "messages",
    columns: &[
        ("source", Int, false),
        ("destination", Int, false),
        ("communicator", Int, false),
        ("tag", Int, false),
        ("bytes", Long, false),
        ("send_begin_ns", Long, false),
        ("send_end_ns", Long, true),
        ("receive_begin_ns", Long, false),
        ("receive_end_ns", Long, true),
        ("send_thread", Int, false),
        ("receive_thread", Int, false),
        ("wildcard", Flag, false),
        ("truncated", Flag, false),
    ],
};
/// Sends and receives without a partner.
pub const UNMATCHED: Schema = Schema {
    name: "unmatched",
    columns: &[
        ("side", Name, false),
        ("rank", Int, false),
        ("begin_ns", Long, false),
        ("partner", Int, true),
        ("communicator", Int, true),
        ("bytes", Long, true),
        ("reason", Name, false),
    ],
};
/// Collective operations, a row per member.
pub const COLLECTIVES: Schema = Schema {
    name: "collectives",
    columns: &[
        ("operation", Long, false),
        ("function", Name, false),
        ("communicator", Int, false),
        ("number", Long, false),
        ("rank", Int, false),
        ("thread", Int, false),
        ("begin_ns", Long, false),
        ("end_ns", Long, true),
        ("complete_ns", Long, true),
        ("sent_bytes", Long, false),
        ("received_bytes", Long, false),
        ("missing", Int, false),
        ("mismatched", Flag, false),
    ],
};
/// Waits, each with its delaying rank.
pub const WAITS: Schema = Schema {
    name: "waits",
    columns: &[
        ("wait", Long, false),
        ("rank", Int, false),
        ("thread", Int, false),
        ("begin_ns", Long, false),
        ("waited_ns", Long, false),
        ("state", Name, false),
        ("delayed_by", Int, true),
        ("delayed_by_thread", Int, true),
        ("function", Name, true),
        ("caller", Name, true),
        ("file", Name, true),
        ("line", Int, true),
        ("delayed_by_function", Name, true),
        ("region", Name, true),
        ("iteration", Int, true),
    ],
};
/// What made ranks wait, and the cost for the others.
pub const CAUSES: Schema = Schema {
    name: "causes",
    columns: &[
        ("rank", Int, false),
        ("thread", Int, false),
        ("kind", Name, false),
        ("region", Name, true),
        ("from_function", Name, true),
        ("from_file", Name, true),
        ("from_line", Int, true),
        ("to_function", Name, true),
        ("to_file", Name, true),
        ("to_line", Int, true),
        ("direct_ns", Long, false),
        ("indirect_ns", Long, false),
    ],
};
/// Iterations of all phases, over all ranks.
pub const ITERATIONS: Schema = Schema {
    name: "iterations",
    columns: &[
        ("phase", Int, false),
        ("iteration", Int, false),
        ("begin_ns", Long, false),
        ("duration_ns", Long, false),
        ("computing_ns", Long, false),
        ("waiting_ns", Long, false),
        ("slowest", Int, false),
        ("delayed_by", Int, true),
    ],
};
/// The critical path in order of time.
pub const CRITICAL_PATH: Schema = Schema {
    name: "critical_path",
    columns: &[
        ("rank", Int, false),
        ("thread", Int, false),
        ("begin_ns", Long, false),
        ("end_ns", Long, false),
    ],
};
/// What makes the critical path, most time on it first.
pub const PATH_LABELS: Schema = Schema {
    name: "path_labels",
    columns: &[
        ("label", Int, false),
        ("kind", Name, false),
        ("region", Name, true),
        ("from_function", Name, true),
        ("from_file", Name, true),
        ("from_line", Int, true),
        ("to_function", Name, true),
        ("to_file", Name, true),
        ("to_line", Int, true),
        ("communicator_ranks", Int, true),
        ("stride", Int, true),
        ("ranks_per_host", Int, true),
        ("first_use", Flag, false),
        ("path_count", Long, false),
        ("path_ns", Long, false),
        ("path_messages", Long, false),
        ("path_bytes", Long, false),
        ("count", Long, false),
        ("max_count", Long, false),
        ("time_ns", Long, false),
        ("messages", Long, false),
        ("bytes", Long, false),
        ("ranks", Int, false),
        ("min_rank_ns", Long, true),
        ("median_rank_ns", Long, true),
        ("max_rank_ns", Long, true),
    ],
};
/// The events of a label on all ranks by size.
pub const PATH_LABEL_SIZES: Schema = Schema {
    name: "path_label_sizes",
    columns: &[
        ("label", Int, false),
        ("from_bytes", Long, false),
        ("count", Long, false),
        ("bytes", Long, false),
    ],
};

/// All tables, in the order in which they are written.
pub const TABLES: [&Schema; 18] = [
    &RUN,
    &RANKS,
    &COMMUNICATORS,
    &MEMBERS,
    &CALLS,
    &RECORDER,
    &REGIONS,
    &PARALLEL_REGIONS,
    &FILE_CALLS,
    &MESSAGES,
    &UNMATCHED,
    &COLLECTIVES,
    &WAITS,
    &CAUSES,
    &ITERATIONS,
    &CRITICAL_PATH,
    &PATH_LABELS,
    &PATH_LABEL_SIZES,
];

pub(in crate::export) fn whole(value: impl TryInto<i64>) -> Cell<'static> {
    value.try_into().map_or(Cell::Empty, Cell::Whole)
}

pub(in crate::export) fn maybe<T: TryInto<i64>>(value: Option<T>) -> Cell<'static> {
    value.map_or(Cell::Empty, whole)
}
