//! The first screen: a report comes in, text for a terminal of 80 columns and more goes out.

use crate::metrics::{CallMetrics, ComputeMode, RankMetrics, RankState, Selection, ThreadMetrics};
use crate::plain_text::printable;
use crate::shell_word::shell_word;
use crate::timeline::{Alignment, Ending, GlobalTimeline};

use super::Report;
use super::context::{mpi_library, number_list, placement, plural, program_line, shortened};
use super::counters;
use super::job;
use super::messages;
use super::quantity::{TimeUnit, count, nanoseconds, percent, seconds, with_prefix};
use super::rank_groups;
use super::sites;
use super::table::Table;
use super::totals;
use super::unfinished;
use super::verdict;

/// Columns that sentences are wrapped to.
const WIDTH: usize = 88;
/// Columns before the text of a labelled line.
const INDENT: usize = 8;
/// Ranks up to which all are shown; more are drawn together into groups of alike ranks.
const ALL_RANKS: usize = 20;
/// Threads shown.
const MOST_THREADS: usize = 16;
/// Functions shown.
const MOST_CALLS: usize = 12;
/// Diagnoses shown.
const MOST_DIAGNOSES: usize = 8;

/// The screen of a report. With `colour` labels are emphasised; nothing is said by colour alone.
pub fn screen(report: &Report, colour: bool) -> String {
    let mut screen = Screen { text: String::new(), colour };
    screen.line(&header(report));
    screen.labelled(job::job_line(report));
    screen.labelled(selection_line(report));
    screen.labelled_block("DAMAGE", &diagnosis_lines(report));
    screen.labelled(Some(("VERDICT", verdict::sentences(report).join(" "))));
    screen.labelled(cut_line(report));
    if let Some(unfinished) = &report.metrics.unfinished {
        screen.labelled_block("STANDS", &unfinished::position_lines(unfinished));
        for sentence in unfinished::sentences(unfinished) {
            screen.labelled(Some(("WAITS", sentence)));
        }
        screen.labelled_block("LAST", &unfinished::last_call_lines(unfinished));
    }
    screen.line(&efficiency_line(report));
    screen.lines(&job::program_lines(report));
    screen.lines(&rank_table(report));
    screen.labelled_block("THREADS", &thread_table(report));
    screen.labelled_block("CALLS", &call_table(report));
    if let Some(sites) = &report.metrics.sites {
        let total_s = report.metrics.elapsed_s * report.metrics.participants().count() as f64;
        screen.labelled_block("SITES", &sites::lines(sites, total_s));
    }
    if let Some(totals) = &report.metrics.totals {
        screen.labelled_block("TOTALS", &totals::lines(totals));
    }
    if let Some(metrics) = &report.metrics.messages {
        screen.labelled(Some(("TRAFFIC", messages::summary_line(metrics))));
        screen.continued(&messages::traffic_lines(report.run, metrics));
        screen.labelled_block("COMMS", &messages::communicator_lines(metrics));
    }
    screen.labelled(flops_line(report));
    screen.labelled_block("COUNTED", &counters::lines(&report.metrics.counters));
    for sentence in counters::sentences(&report.metrics.counters) {
        screen.continued(&wrapped(&printable(&sentence)));
    }
    screen.labelled(Some(("TRUST", trust_line(report))));
    screen.labelled(causal_line(report));
    for note in report.notes() {
        screen.labelled(Some(("NOTE", printable(note))));
    }
    screen.labelled(Some(("NEXT", next_command(report))));
    screen.text
}

struct Screen {
    text: String,
    colour: bool,
}

impl Screen {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn lines(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| self.line(line));
    }

    fn label(&self, label: &str) -> String {
        let padding = " ".repeat(INDENT.saturating_sub(label.len()));
        match self.colour {
            true => format!("\x1b[1m{label}\x1b[0m{padding}"),
            false => format!("{label}{padding}"),
        }
    }

    /// A label and a text wrapped beside it.
    fn labelled(&mut self, line: Option<(&str, String)>) {
        let Some((label, text)) = line else { return };
        let mut start = self.label(label);
        for part in wrapped(&text) {
            self.line(&format!("{start}{part}"));
            start = " ".repeat(INDENT);
        }
    }

    /// A label before the first line of a block.
    fn labelled_block(&mut self, label: &str, lines: &[String]) {
        let mut start = self.label(label);
        for line in lines {
            self.line(&format!("{start}{line}"));
            start = " ".repeat(INDENT);
        }
    }

    fn continued(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| self.line(&format!("{}{line}", " ".repeat(INDENT))));
    }
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > WIDTH - INDENT {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

fn header(report: &Report) -> String {
    let run = report.run;
    let name = run.directory.file_name().map_or_else(
        || run.directory.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    let parts = [program_line(run), mpi_library(run), placement(run), name];
    printable(&parts.join(" | "))
}

fn selection_line(report: &Report) -> Option<(&'static str, String)> {
    let metrics = report.metrics;
    let lengths =
        format!("{} of {} elapsed", seconds(metrics.elapsed_s), seconds(metrics.run_elapsed_s));
    match &metrics.selection {
        Selection::Whole => None,
        Selection::Window { from, to } => Some(("WINDOW", format!("{from} to {to}: {lengths}"))),
        Selection::Region(name) => {
            let times = match metrics.occurrences {
                Some(1) | None => String::new(),
                Some(times) => format!(", in {} occurrences a rank", count(times as u64)),
            };
            Some(("REGION", format!("{}: {lengths}{times}", printable(name))))
        }
    }
}

fn cut_line(report: &Report) -> Option<(&'static str, String)> {
    let left_out = |rank: &&RankMetrics| matches!(rank.ending, Ending::Damaged | Ending::Stopped);
    let cut: Vec<u32> =
        report.metrics.ranks.iter().filter(left_out).map(|rank| rank.rank).collect();
    (!cut.is_empty()).then(|| {
        let text = format!(
            "{} ({}) known only up to where recording or valid data end; the rest of tau counts as \
             overhead, outside",
            plural(cut.len(), "rank"),
            number_list(cut)
        );
        ("CUT", text)
    })
}

fn efficiency_line(report: &Report) -> String {
    let metrics = report.metrics;
    let compute = match metrics.compute {
        ComputeMode::Outside => "outside MPI",
        ComputeMode::Blas => "BLAS",
        ComputeMode::Regions => "regions",
    };
    let tail = format!("tau {}   computation = {compute}", seconds(metrics.elapsed_s));
    match metrics.efficiency {
        Some(efficiency) => {
            let balance = efficiency.load_balance.map_or("?".into(), |b| format!("{b:.2}"));
            format!(
                "eps_p {:.2} = load balance {balance} x communication {:.2}   {tail}",
                efficiency.parallel, efficiency.communication
            )
        }
        None => format!("eps_p ?   {tail}"),
    }
}

fn rank_table(report: &Report) -> Vec<String> {
    let metrics = report.metrics;
    if metrics.ranks.len() > ALL_RANKS {
        return rank_groups::lines(metrics, state);
    }
    let ranks: Vec<&RankMetrics> = metrics.ranks.iter().collect();
    let unit = TimeUnit::of(metrics.elapsed_s);
    let time = |seconds: f64| unit.column(seconds, metrics.elapsed_s);
    let mut table = Table::default();
    table.right("rank", ranks.iter().map(|r| r.rank.to_string()));
    let hosts: std::collections::BTreeSet<&str> =
        metrics.ranks.iter().map(|r| r.host.as_str()).collect();
    if hosts.len() > 1 {
        table.left("host", ranks.iter().map(|r| shortened(&printable(&r.host))));
    }
    table.right(&format!("gamma/{}", unit.name), ranks.iter().map(|r| time(r.compute_s)));
    let sums = if ranks.iter().any(|r| r.threads > 1) { "chi" } else { "chi =" };
    let shift = if sums == "chi" { "" } else { "  " };
    table.right(sums, ranks.iter().map(|r| time(r.overhead_s) + shift));
    table.right("MPI", ranks.iter().map(|r| time(r.mpi_s)));
    table.right("+ tool", ranks.iter().map(|r| time(r.tool_s)));
    if metrics.compute != ComputeMode::Outside {
        table.right("+ other", ranks.iter().map(|r| time(r.other_s)));
    }
    table.right("+ outside", ranks.iter().map(|r| time(r.outside_s)));
    if ranks.iter().any(|r| r.polls.calls > 0) {
        let merged = |r: &&RankMetrics| messages::polls_cell(r.polls);
        table.right("polls merged", ranks.iter().map(merged));
    }
    if ranks.iter().any(|r| r.threads > 1) {
        table.right("threads", ranks.iter().map(|r| r.threads.to_string()));
    }
    if ranks.iter().any(|r| r.core.is_some()) {
        let core = |r: &&RankMetrics| r.core.map_or("?".into(), |core| core.to_string());
        table.right("core", ranks.iter().map(core));
    }
    if ranks.iter().any(|r| r.off_cpu_s.is_some()) {
        table.right("off-cpu", ranks.iter().map(|r| r.off_cpu_s.map_or("?".into(), time)));
    }
    let states: Vec<String> = ranks.iter().map(|rank| state(rank)).collect();
    if states.iter().any(|state| !state.is_empty()) {
        table.left("state", states);
    }
    table.lines()
}

/// Threads of ranks that have several, those with most time in MPI where there are many.
fn thread_table(report: &Report) -> Vec<String> {
    let several = report.metrics.ranks.iter().filter(|rank| rank.threads > 1);
    let mut threads: Vec<(u32, &ThreadMetrics)> =
        several.flat_map(|rank| rank.by_thread.iter().map(|thread| (rank.rank, thread))).collect();
    if threads.is_empty() {
        return Vec::new();
    }
    let left_out = threads.len().saturating_sub(MOST_THREADS);
    if left_out > 0 {
        threads.sort_by(|a, b| b.1.mpi_s.total_cmp(&a.1.mpi_s));
        threads.truncate(MOST_THREADS);
        threads.sort_by_key(|(rank, thread)| (*rank, thread.number));
    }
    let elapsed_s = report.metrics.elapsed_s;
    let unit = TimeUnit::of(elapsed_s);
    let time = |seconds: f64| unit.column(seconds, elapsed_s);
    let mut table = Table::default();
    table.right("rank", threads.iter().map(|(rank, _)| rank.to_string()));
    table.right("thread", threads.iter().map(|(_, thread)| thread.number.to_string()));
    table.right("calls", threads.iter().map(|(_, thread)| count(thread.calls)));
    table.right(&format!("MPI/{}", unit.name), threads.iter().map(|(_, t)| time(t.mpi_s)));
    table.right("useful", threads.iter().map(|(_, thread)| time(thread.compute_s)));
    table.right("tool", threads.iter().map(|(_, thread)| time(thread.tool_s)));
    let mut lines = table.lines();
    if left_out > 0 {
        lines.push(format!("{} (--json lists all)", plural(left_out, "more thread")));
    }
    lines
}

/// What is not as it should be with a rank.
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

/// Whether a call's time lies before or after τ_i: it comes last and has no share.
fn lies_outside(call: &CallMetrics) -> bool {
    matches!(call.function.as_str(), "MPI_Init" | "MPI_Init_thread" | "MPI_Finalize")
}

fn call_table(report: &Report) -> Vec<String> {
    let mut calls: Vec<&CallMetrics> = report.metrics.calls.iter().collect();
    calls.sort_by_key(|call| lies_outside(call));
    let shown = &calls[..calls.len().min(MOST_CALLS)];
    if shown.is_empty() {
        return vec!["none in this stretch".into()];
    }
    let total_s = report.metrics.elapsed_s * report.metrics.participants().count() as f64;
    let share = |call: &CallMetrics| {
        if lies_outside(call) || total_s <= 0.0 {
            "-".to_owned()
        } else {
            percent(call.time_s / total_s)
        }
    };
    let mut table = Table::default();
    table.left("function", shown.iter().map(|call| call.function.clone()));
    table.right("count", shown.iter().map(|call| count(call.count)));
    table.right("time", shown.iter().map(|call| seconds(call.time_s)));
    table.right("of p*tau", shown.iter().map(|call| share(call)));
    table.right("mean", shown.iter().map(|call| seconds(call.mean_s())));
    table.right("max", shown.iter().map(|call| seconds(call.max_s)));
    table.right("on rank", shown.iter().map(|call| call.max_rank.to_string()));
    if shown.iter().any(|call| call.bytes.is_some()) {
        let bytes = |call: &&CallMetrics| {
            call.bytes.map_or("-".into(), |bytes| with_prefix(bytes as f64) + "B")
        };
        table.right("bytes", shown.iter().map(bytes));
    }
    let mut lines = table.lines();
    if calls.len() > shown.len() {
        let more = plural(calls.len() - shown.len(), "more function");
        lines.push(format!("{more} (--json lists all)"));
    }
    lines
}

fn flops_line(report: &Report) -> Option<(&'static str, String)> {
    let flops = report.metrics.flops?;
    let rate = match report.metrics.elapsed_s > 0.0 {
        true => format!("{}flop/s", with_prefix(flops / report.metrics.elapsed_s)),
        false => "? flop/s".into(),
    };
    let total = with_prefix(flops);
    Some((
        "FLOPS",
        format!(
            "{} | {rate} | lower bound: BLAS, LAPACK, FFTW calls, declared work",
            total.trim_end()
        ),
    ))
}

fn trust_line(report: &Report) -> String {
    trust_parts(report).join(" | ")
}

/// What a reader may trust, part by part.
pub(super) fn trust_parts(report: &Report) -> Vec<String> {
    let (metrics, timeline) = (report.metrics, report.timeline);
    let unaligned =
        timeline.ranks.iter().filter(|r| r.clock.alignment == Alignment::Unaligned).count();
    let bound = clock_bound(timeline);
    let mut parts = vec![match unaligned {
        0 => bound,
        count => format!("{bound}, but {} not aligned", plural(count, "rank")),
    }];
    if let Some(share) = tool_share(report) {
        parts.push(format!("tool {}", percent(share)));
    }
    parts.push(format!("events lost {}", count(metrics.lost_events)));
    let finalized = metrics.ranks.iter().filter(|rank| rank.state == RankState::Finalized).count();
    parts.push(format!("{finalized}/{} ranks finalized", report.run.world_size));
    let abandoned: u64 = metrics.ranks.iter().map(|rank| rank.abandoned).sum();
    if abandoned > 0 {
        parts.push(plural(abandoned as usize, "abandoned call"));
    }
    let failed: u64 = metrics.ranks.iter().map(|rank| rank.failed).sum();
    if failed > 0 {
        parts.push(plural(failed as usize, "failed call"));
    }
    if let (Some(trace), Some(time)) = (report.run.ranks.first(), timeline.ranks.first()) {
        let tick = nanoseconds_fine(1e9 / time.frequency.ticks_per_s);
        parts.push(format!("{}, {tick} a tick", trace.file.counter.name()));
    }
    parts.push("1 run: no spread known".into());
    parts
}

/// What `--causal` changed.
fn causal_line(report: &Report) -> Option<(&'static str, String)> {
    let causal = report.timeline.causal?;
    let text = match causal.early_before {
        0 => "no message arrives before it is sent; no time was changed".to_owned(),
        early => format!(
            "{} of {} messages arrived before they were sent, {} still do; {} receives were moved \
             (by {} at most), and with them times on {}, by {} at most",
            count(early),
            count(causal.messages),
            count(causal.early_after),
            count(causal.moved_receives),
            nanoseconds(causal.largest_jump_ns),
            plural(causal.changed_ranks as usize, "rank"),
            nanoseconds(causal.largest_shift_ns)
        ),
    };
    Some(("CAUSAL", text))
}

/// The bound, and where drift makes it wider in between, that of begin and end, too.
fn clock_bound(timeline: &GlobalTimeline) -> String {
    match (timeline.bound_ns, timeline.ends_bound_ns) {
        (Some(between), Some(ends)) if between > 1.1 * ends => format!(
            "clock ±{} at begin and end, ±{} between",
            nanoseconds(ends),
            nanoseconds(between)
        ),
        (Some(bound_ns), _) => format!("clock ±{}", nanoseconds(bound_ns)),
        (None, _) => "clock unknown".into(),
    }
}

fn nanoseconds_fine(value_ns: f64) -> String {
    format!("{} ns", super::quantity::significant(value_ns, 2))
}

/// The recorder's share of p·τ.
pub(super) fn tool_share(report: &Report) -> Option<f64> {
    let metrics = report.metrics;
    let total_s = metrics.elapsed_s * metrics.participants().count() as f64;
    let tool_s: f64 = metrics.participants().map(|rank| rank.tool_s).sum();
    (total_s > 0.0).then(|| tool_s / total_s)
}

fn diagnosis_lines(report: &Report) -> Vec<String> {
    let all: Vec<_> = report.diagnoses().collect();
    let mut lines: Vec<String> = all
        .iter()
        .take(MOST_DIAGNOSES)
        .flat_map(|diagnosis| wrapped(&printable(&diagnosis.to_string())))
        .collect();
    if all.len() > MOST_DIAGNOSES {
        lines.push(format!("… {} more (--json lists all)", all.len() - MOST_DIAGNOSES));
    }
    lines
}

fn next_command(report: &Report) -> String {
    let directory = shell_word(&report.run.directory.display().to_string());
    let regions = report.run.region_names();
    match (&report.metrics.selection, regions.first()) {
        (Selection::Whole, Some(name)) => {
            format!("gammachi report {directory} --region {}", shell_word(&printable(name)))
        }
        _ => format!("gammachi report {directory} --json"),
    }
}
