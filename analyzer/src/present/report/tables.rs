//! Tables of the screen: ranks, threads and functions.

use crate::diagnosis::CodePart;
use crate::metrics::{CallMetrics, RankMetrics, RankState, ThreadMetrics};
use crate::present::context::{number_list, plural};
use crate::present::quantity::{TimeUnit, count, percent, seconds};
use crate::present::shown::Report;
use crate::present::table::{self, Table};
use crate::tables::calls::{self, lies_outside, time_of_threads};
use crate::tables::code::CodeTable;
use crate::tables::ranks::{RankGroup, Ranks};
use crate::tables::{self as data, code_parts, delay_costs, parts, waits};
use crate::timeline::Ending;

/// Up to this many ranks, all are shown; more are shown as groups of similar ranks.
const MAX_SINGLE_RANKS: usize = 20;
/// Maximum number of threads shown.
const MAX_THREADS: usize = 16;
/// Maximum number of functions shown.
const MAX_CALLS: usize = 12;
/// Share of p·τ below which functions and call sites have no row of their own.
pub(super) const NEGLIGIBLE_SHARE: f64 = 1e-5;
/// Maximum number of functions without a row that are named.
const MAX_NAMED: usize = 4;

/// Maximum number of groups of similar ranks shown.
const MAX_GROUPS: usize = 16;

/// What the table of ranks is made from.
pub(in crate::present) fn ranks_of<'a>(report: &Report<'a>) -> Ranks<'a> {
    Ranks::new(report.metrics, report.causes, report.diagnosis, state)
}

/// All tables of a run, each with all its rows, and their names.
pub(crate) fn tables(of: &Report) -> Vec<(&'static str, data::Table)> {
    let (run, metrics) = (of.run, of.metrics);
    let every: Vec<usize> = (0..metrics.ranks.len()).collect();
    let functions: Vec<&CallMetrics> = metrics.calls.iter().collect();
    let mut all = vec![
        ("report_ranks", ranks_of(of).table(&every)),
        ("report_calls", calls::calls(metrics, &functions)),
    ];
    if let Some(sites) = &metrics.sites {
        all.push(("report_sites", calls::sites(metrics, &sites.rows)));
        all.push(("report_paths", calls::paths(metrics, &sites.paths)));
    }
    if let Some(openmp) = &metrics.openmp {
        all.push(("report_threads", data::openmp::threads(&openmp.ranks)));
        all.push(("report_parallel_regions", data::openmp::regions(openmp, &openmp.regions)));
    }
    if let Some(files) = &metrics.files {
        all.push(("report_files", data::files::files(&files.files)));
        all.push(("report_rank_files", data::files::ranks(&files.ranks)));
    }
    if let Some(code) = CodeTable::new(of.diagnosis) {
        all.push(("report_code", code.table(None, code.rows(None))));
        all.push(("report_code_lines", code.lines(&code.code.by_line)));
        let parts = CodePart::all(&of.diagnosis.of);
        all.push(("report_code_parts", code_parts::all(code.code, &parts)));
    }
    if let Some(why) = of.why() {
        let causes = why.causes;
        all.push(("report_regions", parts::regions(run, causes, &causes.regions.all)));
        all.push(("report_phases", parts::phases(run, causes)));
        all.push(("report_waits", waits::wait_states(&why, &waits::groups(&why))));
        let costs = delay_costs::costliest(&why);
        all.push(("report_delays", delay_costs::delay_costs(&why, &costs)));
        all.push(("report_path", delay_costs::critical_path(&why, &causes.imbalance())));
    }
    all
}

/// The unit of time, and the table of ranks or, if there are many, of groups of similar ranks.
pub(super) fn rank_table(report: &Report) -> (&'static str, Vec<String>) {
    let (ranks, elapsed_s) = (ranks_of(report), report.metrics.elapsed_s);
    let number = report.metrics.ranks.len();
    let mut table = Table::default();
    let lines = match number > MAX_SINGLE_RANKS {
        true => group_lines(&ranks, elapsed_s),
        false => {
            table.add_all(&ranks.table(&Vec::from_iter(0..number)), elapsed_s);
            table.lines()
        }
    };
    (TimeUnit::for_seconds(elapsed_s).name, lines)
}

fn group_lines(ranks: &Ranks, elapsed_s: f64) -> Vec<String> {
    let groups = ranks.groups();
    let (shown, left) = groups.split_at(groups.len().min(MAX_GROUPS));
    let mut table = Table::default();
    table.right("count", shown.iter().map(|group| group.members.len().to_string()));
    let list = |group: &RankGroup| number_list(group.members.iter().map(|(_, rank)| rank.rank));
    table.left("similar ranks (means)", shown.iter().map(list));
    table.add_all(&ranks.table_of_groups(shown), elapsed_s);
    let mut lines = table.lines();
    if !left.is_empty() {
        lines.push(format!(
            "… {} of {} that lose less (--json lists all ranks) …",
            plural(left.len(), "more group"),
            plural(left.iter().map(|group| group.members.len()).sum(), "rank")
        ));
    }
    lines
}

/// Threads of ranks with several; if there are many, only those with most time in MPI.
pub(super) fn thread_table(report: &Report) -> Vec<String> {
    let several = report.metrics.ranks.iter().filter(|rank| rank.threads > 1);
    let mut threads: Vec<(u32, &ThreadMetrics)> =
        several.flat_map(|rank| rank.by_thread.iter().map(|thread| (rank.rank, thread))).collect();
    if threads.is_empty() {
        return Vec::new();
    }
    let left_out = threads.len().saturating_sub(MAX_THREADS);
    if left_out > 0 {
        threads.sort_by(|a, b| b.1.mpi_s.total_cmp(&a.1.mpi_s));
        threads.truncate(MAX_THREADS);
        threads.sort_by_key(|(rank, thread)| (*rank, thread.number));
    }
    let elapsed_s = report.metrics.elapsed_s;
    let unit = TimeUnit::for_seconds(elapsed_s);
    let time = |seconds: f64| unit.column(seconds, elapsed_s);
    let mut table = Table::default();
    table.right("rank", threads.iter().map(|(rank, _)| rank.to_string()));
    table.right("thread", threads.iter().map(|(_, thread)| thread.number.to_string()));
    table.right("calls", threads.iter().map(|(_, thread)| count(thread.calls)));
    table.right(&format!("MPI/{}", unit.name), threads.iter().map(|(_, t)| time(t.mpi_s)));
    table.right("computing", threads.iter().map(|(_, thread)| time(thread.compute_s)));
    table.right("recorder", threads.iter().map(|(_, thread)| time(thread.recorder_s)));
    let mut lines = table.lines();
    lines.extend(table::more(left_out, "thread"));
    lines
}

/// What is unusual about a rank; empty if nothing is.
fn state(rank: &RankMetrics) -> String {
    let mut state = match (&rank.state, rank.ending) {
        (_, Ending::Damaged) => "cut: damaged".to_owned(),
        (_, Ending::Stopped) => "cut: recording stopped".to_owned(),
        (RankState::Finalized, _) => String::new(),
        (RankState::Unfinished { inside: Some((function, since_s)), .. }, _) => {
            format!("in {function} since {}", seconds(*since_s))
        }
        (RankState::Unfinished { last_call: Some(call), .. }, _) => format!("ended after {call}"),
        (RankState::Unfinished { last_call: None, .. }, _) => "no calls".to_owned(),
    };
    if !rank.takes_part {
        state = format!("takes no part {state}").trim_end().to_owned();
    }
    state
}

/// Functions that have no row, because they took next to no time.
fn negligible_line(calls: &[&CallMetrics]) -> String {
    let below = format!("below {} each", percent(NEGLIGIBLE_SHARE));
    match calls.len() {
        1..=MAX_NAMED => {
            let names: Vec<&str> = calls.iter().map(|call| call.function.as_str()).collect();
            format!("{below}: {}", names.join(", "))
        }
        more => format!("{below}: {} (--json lists all)", plural(more, "function")),
    }
}

/// The table of functions, those inside τ_i first.
pub(super) fn call_table(report: &Report) -> Vec<String> {
    let (total_s, _) = time_of_threads(report.metrics);
    let is_negligible =
        |call: &&CallMetrics| !lies_outside(call) && call.time_s < NEGLIGIBLE_SHARE * total_s;
    let (negligible, mut calls): (Vec<&CallMetrics>, Vec<&CallMetrics>) =
        report.metrics.calls.iter().partition(is_negligible);
    if calls.is_empty() {
        return match negligible.is_empty() {
            true => vec!["none in this selection".into()],
            false => vec![negligible_line(&negligible)],
        };
    }
    calls.sort_by_key(|call| lies_outside(call));
    let shown = &calls[..calls.len().min(MAX_CALLS)];
    let mut lines = table::brief_lines(&calls::calls(report.metrics, shown));
    let polls = report.metrics.ranks.iter().map(|rank| rank.polls);
    let (polls, runs) = polls.fold((0, 0), |sum, of| (sum.0 + of.calls, sum.1 + of.runs));
    if polls > 0 {
        lines.push(format!(
            "{} polls that found nothing are kept as {}",
            count(polls),
            plural(runs as usize, "record")
        ));
    }
    lines.extend(table::more(calls.len() - shown.len(), "function"));
    if !negligible.is_empty() {
        lines.push(negligible_line(&negligible));
    }
    lines
}
