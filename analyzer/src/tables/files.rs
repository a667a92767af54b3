//! Files, and what ranks do with them.

use crate::metrics::{FileUse, RankFiles};

use super::table::{Cell, Table};

/// Files, a row each.
pub fn files(rows: &[FileUse]) -> Table {
    let mut table = Table::default();
    let mut add = |key, title, cell: &dyn Fn(&FileUse) -> Cell| {
        table.add(key, title, rows.iter().map(cell));
    };
    add("number", "file", &|of| Cell::Count(of.number));
    add("ranks", "ranks", &|of| Cell::Count(of.ranks));
    add("opens", "opens", &|of| Cell::Count(of.opens));
    add("reads", "reads", &|of| Cell::Count(of.reads));
    add("read_bytes", "read", &|of| Cell::Bytes(of.read_bytes as f64));
    if rows.iter().any(|of| of.unaligned_reads > 0) {
        add("unaligned_reads", "unaligned", &|of| Cell::Count(of.unaligned_reads));
    }
    if rows.iter().any(|of| of.read_again_bytes > 0) {
        add("read_again_bytes", "read again", &|of| Cell::Bytes(of.read_again_bytes as f64));
    }
    add("writes", "writes", &|of| Cell::Count(of.writes));
    add("written_bytes", "written", &|of| Cell::Bytes(of.written_bytes as f64));
    if rows.iter().any(|of| of.mpi_calls > 0) {
        add("mpi_calls", "MPI calls", &|of| Cell::Count(of.mpi_calls));
        add("mpi_bytes", "moved", &|of| Cell::Bytes(of.mpi_bytes as f64));
    }
    if rows.iter().any(|of| of.mappings > 0) {
        add("mappings", "mapped", &|of| Cell::Count(of.mappings));
    }
    add("time_s", "time", &|of| Cell::Seconds(of.seconds));
    if rows.iter().any(|of| of.inside_mpi_s > 0.0) {
        add("inside_mpi_s", "in MPI", &|of| Cell::Seconds(of.inside_mpi_s));
    }
    add("slowest_rank", "slowest rank", &|of| {
        Cell::or_nothing(of.slowest, |of| Cell::Count(of.rank.into()))
    });
    add("slowest_s", "its time", &|of| {
        Cell::or_nothing(of.slowest, |of| Cell::Seconds(of.seconds))
    });
    if rows.iter().any(|of| of.name.is_some()) {
        add("name", "name", &|of| {
            Cell::or_nothing(of.name.as_ref(), |name| Cell::Text(name.clone()))
        });
    }
    table
}

/// Ranks, a row each.
pub fn ranks(rows: &[RankFiles]) -> Table {
    let mut table = Table::default();
    let mut add = |key, title, cell: fn(&RankFiles) -> Cell| {
        table.add(key, title, rows.iter().map(cell));
    };
    add("rank", "rank", |of| Cell::Count(of.rank.into()));
    add("files", "files", |of| Cell::Count(of.files));
    add("opens", "opens", |of| Cell::Count(of.opens));
    add("reads", "reads", |of| Cell::Count(of.reads));
    add("read_bytes", "read", |of| Cell::Bytes(of.read_bytes as f64));
    add("writes", "writes", |of| Cell::Count(of.writes));
    add("written_bytes", "written", |of| Cell::Bytes(of.written_bytes as f64));
    add("time_s", "time", |of| Cell::Seconds(of.seconds));
    add("inside_mpi_s", "in MPI", |of| Cell::Seconds(of.inside_mpi_s));
    add("other_threads_s", "other threads", |of| Cell::Seconds(of.other_threads_s));
    table
}
