//! Threads of ranks and parallel regions (OpenMP).

use crate::metrics::{Hybrid, OpenMpMetrics, ParallelRegion, RankTeams};

use super::table::{Cell, Table};

/// The threads of ranks, a row each.
pub fn threads(ranks: &[RankTeams]) -> Table {
    let mut table = Table::default();
    let mut add = |key, title, cell: fn(&RankTeams) -> Cell| {
        table.add(key, title, ranks.iter().map(cell));
    };
    add("rank", "rank", |of| Cell::Count(of.rank.into()));
    add("threads", "threads", |of| Cell::Count(of.threads.into()));
    add("parallel_regions", "regions", |of| Cell::Count(of.parallel_regions));
    add("work_s", "work", |of| Cell::Seconds(of.work_s));
    add("serial_s", "serial", |of| Cell::Seconds(of.serial_s));
    add("barriers_s", "barriers", |of| Cell::Seconds(of.idle.barriers_s));
    add("locks_s", "locks", |of| Cell::Seconds(of.idle.locks_s));
    add("ends_s", "ends", |of| Cell::Seconds(of.idle.ends_s));
    add("tasks_s", "tasks", |of| Cell::Seconds(of.tasks_s));
    add("mpi_s", "MPI", |of| Cell::Seconds(of.mpi_s));
    table
}

/// The efficiency of all threads and its factors, each with the seconds of threads that belong to it.
pub fn hybrid(of: &Hybrid) -> Table {
    let Hybrid { parallel, mpi, openmp, .. } = of;
    let idle_s = openmp.idle.seconds();
    let rows = [
        ("all threads", *parallel, mpi.lost_s + openmp.serial_s + idle_s),
        ("MPI (of all)", mpi.efficiency, mpi.lost_s),
        ("OpenMP (of all)", openmp.efficiency, openmp.serial_s + idle_s),
        ("serial parts (of OpenMP)", openmp.serial, openmp.serial_s),
        ("parallel regions (of OpenMP)", openmp.regions, idle_s),
    ];
    let mut table = Table::default();
    table.add("factor", "factor", rows.iter().map(|(name, ..)| Cell::Text((*name).to_owned())));
    table.add("efficiency", "efficiency", rows.iter().map(|(_, of, _)| Cell::Factor(*of)));
    table.add("lost_s", "lost", rows.iter().map(|(.., lost_s)| Cell::Seconds(*lost_s)));
    table
}

/// Parallel regions, a row each.
pub fn regions(openmp: &OpenMpMetrics, rows: &[ParallelRegion]) -> Table {
    let all_s: f64 = openmp.regions.iter().map(|of| of.idle.seconds()).sum();
    let mut table = Table::default();
    let mut add = |key, title, cell: &dyn Fn(&ParallelRegion) -> Cell| {
        table.add(key, title, rows.iter().map(cell));
    };
    add("count", "count", &|of| Cell::Count(of.count));
    add("ranks", "ranks", &|of| Cell::Count(of.ranks as u64));
    add("threads", "threads", &|of| Cell::Count(of.threads.into()));
    add("work_s", "work", &|of| Cell::Seconds(of.work_s));
    add("tasks_s", "tasks", &|of| Cell::Seconds(of.tasks_s));
    add("idle_s", "idle", &|of| Cell::Seconds(of.idle.seconds()));
    add("share", "of idle time", &|of| Cell::share(of.idle.seconds(), all_s));
    add("load_balance", "balance", &|of| Cell::or_nothing(of.load_balance, Cell::Factor));
    add("slowest_rank", "slowest rank", &|of| {
        Cell::or_nothing(of.slowest, |of| Cell::Count(of.rank.into()))
    });
    add("slowest_thread", "thread", &|of| {
        Cell::or_nothing(of.slowest, |of| Cell::Count(of.thread.into()))
    });
    add("place", "begins at", &|of| Cell::Code(of.begins_at.clone()));
    table
}
