//! CALLS by function, SITES (by the place in the code that made them) and CALL PATHS.

use crate::metrics::{CallMetrics, Frame, Metrics, PathRow, SiteRow};

use super::table::{Cell, Table};

/// Whether a call's time lies before or after τ_i; such calls come last and have no share.
pub fn lies_outside(call: &CallMetrics) -> bool {
    matches!(
        call.function.as_str(),
        "MPI_Init"
            | "MPI_Init_thread"
            | "MPI_Finalize"
            | "MPI_Session_init"
            | "MPI_Session_finalize"
    )
}

/// The time of all threads that call MPI, which calls are shares of, and what it is called: threads of one rank are in
/// calls at the same time.
pub fn time_of_threads(metrics: &Metrics) -> (f64, &'static str) {
    let threads: usize = metrics.participants().map(|rank| rank.threads).sum();
    let title = match metrics.participants().any(|rank| rank.threads > 1) {
        true => "of thread time",
        false => "of run time",
    };
    (metrics.elapsed_s * threads as f64, title)
}

/// Functions, a row each.
pub fn calls(metrics: &Metrics, rows: &[&CallMetrics]) -> Table {
    let (total_s, of_total) = time_of_threads(metrics);
    let share = |call: &CallMetrics| match lies_outside(call) {
        true => Cell::Nothing,
        false => Cell::share(call.time_s, total_s),
    };
    let bytes =
        |call: &CallMetrics| call.bytes.map_or(Cell::Nothing, |bytes| Cell::Bytes(bytes as f64));
    let rows = || rows.iter().copied();
    let mut table = Table::default();
    table.add("function", "function", rows().map(|call| Cell::Text(call.function.clone())));
    table.detail("class", "class", rows().map(|call| Cell::Text(call.class.name().to_owned())));
    table.add("count", "count", rows().map(|call| Cell::Count(call.count)));
    table.add("time_s", "time", rows().map(|call| Cell::Seconds(call.time_s)));
    table.add("share", of_total, rows().map(share));
    table.add("mean_s", "mean", rows().map(|call| Cell::Seconds(call.mean_s())));
    table.add("max_s", "max", rows().map(|call| Cell::Seconds(call.max_s)));
    table.add("max_rank", "on rank", rows().map(|call| Cell::Count(call.max_rank.into())));
    if rows().any(|call| call.bytes.is_some()) {
        table.add("bytes", "bytes", rows().map(bytes));
    }
    table.mark("function", rows().map(|call| Cell::Text(call.function.clone())));
    table
}

/// Call sites, a row each.
pub fn sites(metrics: &Metrics, rows: &[SiteRow]) -> Table {
    let (total_s, of_total) = time_of_threads(metrics);
    let place = |row: &SiteRow| {
        let SiteRow { module, address, place, .. } = row.clone();
        Cell::Code(Frame { module, address, place })
    };
    let rows = || rows.iter();
    let mut table = Table::default();
    table.add("function", "function", rows().map(|row| Cell::Text(row.function.clone())));
    table.add("count", "count", rows().map(|row| Cell::Count(row.count)));
    table.add("time_s", "time", rows().map(|row| Cell::Seconds(row.time_s)));
    table.add("share", of_total, rows().map(|row| Cell::share(row.time_s, total_s)));
    table.add("max_s", "max", rows().map(|row| Cell::Seconds(row.max_s)));
    table.add("ranks", "ranks", rows().map(|row| Cell::Count(row.ranks as u64)));
    table.add("place", "called from", rows().map(place));
    table.mark("function", rows().map(|row| Cell::Text(row.function.clone())));
    table
}

/// Call paths, a row each.
pub fn paths(metrics: &Metrics, rows: &[PathRow]) -> Table {
    let (total_s, of_total) = time_of_threads(metrics);
    let rows = || rows.iter();
    let mut table = Table::default();
    table.add("function", "function", rows().map(|row| Cell::Text(row.function.clone())));
    table.add("count", "count", rows().map(|row| Cell::Count(row.count)));
    table.add("time_s", "time", rows().map(|row| Cell::Seconds(row.time_s)));
    table.add("share", of_total, rows().map(|row| Cell::share(row.time_s, total_s)));
    table.add("ranks", "ranks", rows().map(|row| Cell::Count(row.ranks as u64)));
    table.add("frames", "call path (long calls)", rows().map(|row| Cell::Path(row.frames.clone())));
    table
}
