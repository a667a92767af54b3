//! The first screen: a report comes in, text for a terminal of 80 columns and more goes out.

use super::tables::{call_table, rank_table, thread_table};
use super::trust::{causal_line, trust_parts};
use super::{counters, job, messages, sites, totals, verdict};
use crate::metrics::{ComputeMode, RankMetrics, Selection};
use crate::plain_text::printable;
use crate::present::causes::{phase_lines, region_lines, wait_rows};
use crate::present::context::{mpi_library, number_list, placement, plural, program_line};
use crate::present::quantity::{count, percent, seconds, with_prefix};
use crate::present::table::Table;
use crate::present::whatif::Saving;
use crate::present::{Report, unfinished};
use crate::shell_word::shell_word;
use crate::timeline::Ending;

/// Columns that sentences are wrapped to.
const WIDTH: usize = 88;
/// Columns before the text of a labelled line.
const INDENT: usize = 8;
/// Diagnoses shown.
const MOST_DIAGNOSES: usize = 8;
/// Kinds of waits shown.
const MOST_WAITS: usize = 3;

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
    screen.labelled_block("WAITS", &wait_lines(report));
    screen.lines(&job::program_lines(report));
    screen.lines(&rank_table(report));
    if let Some(causes) = report.causes {
        screen.labelled_block("REGIONS", &region_lines(report.run, causes));
        screen.labelled_block("PHASES", &phase_lines(report.run, causes));
    }
    screen.labelled_block("THREADS", &thread_table(report));
    screen.labelled_block("CALLS", &call_table(report));
    if let Some(sites) = &report.metrics.sites {
        let total_s = report.metrics.elapsed_s * report.metrics.participants().count() as f64;
        screen.labelled_block("SITES", &sites::lines(sites, total_s));
        screen.labelled_block("PATHS", &sites::path_lines(sites, total_s));
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
    screen.labelled(Some(("TRUST", trust_parts(report).join(" | "))));
    screen.labelled(causal_line(report));
    for note in report.notes() {
        screen.labelled(Some(("NOTE", printable(&note))));
    }
    screen.labelled_block("WHAT IF", &saving_lines(report));
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

/// The waits that cost most, with what made their culprits late.
fn wait_lines(report: &Report) -> Vec<String> {
    let Some(why) = report.why() else { return Vec::new() };
    let (rows, left_out) = wait_rows(&why, MOST_WAITS);
    if rows.is_empty() {
        return Vec::new();
    }
    let mut table = Table::default();
    table.left("state", rows.iter().map(|row| row.state.to_owned()));
    table.left("where", rows.iter().map(|row| row.place.clone()));
    table.left("for", rows.iter().map(|row| row.culprit.clone()));
    table.right("time", rows.iter().map(|row| seconds(row.seconds)));
    table.left("made late by", rows.iter().map(|row| row.late_by.clone()));
    let mut lines: Vec<String> = table.lines().iter().map(|line| printable(line)).collect();
    if left_out > 0 {
        let directory = shell_word(&report.run.directory.display().to_string());
        let kinds = plural(left_out, "kind");
        lines.push(format!("{kinds} more of less time: gammachi why {directory}"));
    }
    lines
}

/// What changes would save, the most first.
fn saving_lines(report: &Report) -> Vec<String> {
    if report.savings.is_empty() {
        return Vec::new();
    }
    let rows = report.savings.iter();
    let give_or_take = |row: &Saving| format!("± {}", seconds(row.uncertain_s));
    let mut table = Table::default();
    table.right("saves", rows.clone().map(|row| percent(row.part)));
    table.right("time", rows.clone().map(|row| seconds(row.seconds)));
    table.left("90 %", rows.clone().map(give_or_take));
    table.left("if", rows.map(|row| row.sentence.clone()));
    table.lines().iter().map(|line| printable(line)).collect()
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
    let whole = report.metrics.selection == Selection::Whole;
    let regions = report.run.region_names();
    match regions.first().filter(|_| whole) {
        Some(name) => {
            format!("gammachi report {directory} --region {}", shell_word(&printable(name)))
        }
        None if whole && report.metrics.messages.is_some() => format!("gammachi why {directory}"),
        None => format!("gammachi report {directory} --json"),
    }
}
