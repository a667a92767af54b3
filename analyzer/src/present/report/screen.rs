//! Renders a report for the terminal.
//!
//! The first screen holds what a reader wants to know in ten seconds: is the run efficient, what is the cause and
//! where is it, can the figures be trusted, what to do next. The tables follow below.

use crate::diagnosis::{Figures, Finding};
use crate::metrics::{ComputeMode, RankMetrics, Selection};
use crate::plain_text::printable;
use crate::present::blocks::{Blocks, INDENT};
use crate::present::causes::{self, iteration_summary, phase_lines, region_lines};
use crate::present::context::{mpi_library, number_list, placement, plural, program_line};
use crate::present::paragraph::wrapped_after;
use crate::present::quantity::{count, percent, seconds, with_prefix};
use crate::present::shown::Report;
use crate::present::table::{self, Table};
use crate::present::whatif::Saving;
use crate::present::{findings, unfinished, width};
use crate::shell_word::shell_word;
use crate::tables::waits;
use crate::timeline::Ending;

use super::tables::{call_table, rank_table, thread_table};
use super::trust::{causal_line, trust_parts};
use super::{code, counters, files, job, messages, openmp, sites, totals};

/// Maximum number of diagnoses shown.
const MAX_DIAGNOSES: usize = 8;
/// Maximum number of kinds of waits shown.
const MAX_WAITS: usize = 3;

/// The screen of a report. With `colour`, labels are emphasised; colour alone never carries information.
pub fn screen(report: &Report, colour: bool) -> String {
    let mut blocks =
        Blocks::headed(&header(report), &findings::sentences(report.diagnosis).join(" "), colour);
    summary(report, &mut blocks);
    let mut details = Blocks::continued(colour);
    tables(report, &mut details);
    let details = details.finish();
    if !details.is_empty() {
        blocks.gap();
    }
    blocks.finish() + &details
}

/// What is meant to fit on the first screen.
fn summary(report: &Report, blocks: &mut Blocks) {
    labelled(blocks, selection_line(report));
    labelled(blocks, job::job_line(report));
    for diagnosis in diagnosis_sentences(report) {
        blocks.sentence("DAMAGE", &diagnosis);
    }
    labelled(blocks, cut_line(report));
    if let Some(unfinished) = &report.metrics.unfinished {
        blocks.block("POSITIONS", unfinished::position_lines(unfinished));
        for sentence in unfinished::sentences(unfinished) {
            blocks.sentence("", &sentence);
        }
        unfinished::add_stacks(blocks, unfinished);
        let mut label = "LAST CALLS";
        for line in unfinished::last_call_lines(unfinished) {
            blocks.sentence(label, &line);
            label = "";
        }
    }
    let diagnosis = report.diagnosis;
    let mut block = |label, figures, lines| {
        blocks.block(label, findings::marked(diagnosis, figures, lines));
    };
    if !diagnosis.findings.contains(&Finding::Stuck) {
        block("EFFICIENCY", Figures::Efficiency, efficiency_lines(report));
        if !diagnosis.of.hides_waiting() {
            block("WAIT STATES", Figures::Waits, wait_lines(report));
        }
    }
    if let Some(of) = &report.metrics.openmp {
        let sentences = openmp::sentences(of, report.metrics.elapsed_s);
        let lines = sentences.iter().flat_map(|line| wrapped_after(INDENT, &printable(line)));
        block("OPENMP", Figures::Efficiency, lines.collect());
    }
    if let Some(of) = &report.metrics.files {
        let sentences = files::sentences(of, report.metrics);
        let lines = sentences.iter().flat_map(|line| wrapped_after(INDENT, &printable(line)));
        block("I/O", Figures::Efficiency, lines.collect());
    }
    // These tables are of the whole run.
    if let Some(causes) = report.causes.filter(|causes| causes.part.is_none()) {
        block("REGIONS", Figures::Efficiency, region_lines(report.run, causes));
        // The figures of a single phase are those of the iterations below.
        if causes.phases.len() > 1 {
            block("PHASES", Figures::Efficiency, phase_lines(report.run, causes));
        }
        let iterations = iteration_summary(causes);
        let lines = iterations.map(|line| wrapped_after(INDENT, &printable(&line)));
        block("ITERATIONS", Figures::Efficiency, lines.unwrap_or_default());
    }
    let (unit, ranks) = rank_table(report);
    blocks.block(&format!("RANKS ({unit})"), ranks);
    blocks.block("WHAT IF", saving_lines(report));
    blocks.sentence("TRUST", &trust_parts(report).join(" | "));
    labelled(blocks, causal_line(report));
    for note in report.notes() {
        blocks.note(&note);
    }
    blocks.block("NEXT", findings::next_lines(findings::next_step(report.diagnosis)));
}

/// The tables below the summary.
fn tables(report: &Report, blocks: &mut Blocks) {
    blocks.block("PROGRAMS", job::program_lines(report));
    blocks.block("THREADS", thread_table(report));
    if let Some(of) = &report.metrics.openmp {
        blocks.block("OPENMP THREADS", openmp::thread_lines(of));
        blocks.block("PARALLEL REGIONS", openmp::region_lines(of));
    }
    if let Some(of) = &report.metrics.files {
        blocks.block("FILES", files::file_lines(of));
        blocks.block("FILES BY RANK", files::rank_lines(of));
    }
    blocks.block("CODE", code::lines(report.diagnosis, None));
    blocks.block("CODE PARTS", code::part_lines(report.diagnosis));
    blocks.block("CALLS", call_table(report));
    if let Some(sites) = &report.metrics.sites {
        blocks.block("SITES", sites::lines(report.metrics, sites));
        blocks.block("CALL PATHS", sites::path_lines(report.metrics, sites));
    }
    if let Some(totals) = &report.metrics.totals {
        blocks.block("TOTALS", totals::lines(totals));
    }
    let only_totals = report.metrics.totals.as_ref().is_some_and(|totals| totals.kept_calls == 0);
    if only_totals {
        blocks.sentence("MESSAGES", "not known: calls are kept only as totals");
    } else if let Some(metrics) = &report.metrics.messages {
        blocks.sentence("MESSAGES", &messages::summary_line(metrics));
        blocks.block("", messages::traffic_lines(report.run, metrics));
        blocks.block("COMMS", messages::communicator_lines(metrics));
    }
    labelled(blocks, flops_line(report));
    blocks.block("COUNTED", counters::lines(&report.metrics.counters));
    for sentence in counters::sentences(&report.metrics.counters) {
        blocks.sentence("", &sentence);
    }
}

fn labelled(blocks: &mut Blocks, line: Option<(&str, String)>) {
    if let Some((label, text)) = line {
        blocks.sentence(label, &text);
    }
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
    let [part, run] = [metrics.elapsed_s, metrics.run_elapsed_s].map(seconds);
    let lengths = match metrics.elapsed_s > metrics.run_elapsed_s {
        // Each occurrence counts from its first begin to its last end.
        true => format!("{part}, as occurrences overlap; the run takes {run}"),
        false => format!("{part} of {run} elapsed"),
    };
    let times = match metrics.occurrences {
        Some(1) | None => String::new(),
        Some(times) => format!(", in {} occurrences per rank", count(times as u64)),
    };
    let label = match &metrics.selection {
        Selection::Whole => return None,
        Selection::Window { .. } => "WINDOW",
        Selection::Region(_) => "REGION",
        Selection::Iteration(_) => "ITERATION",
        Selection::All(_) => "SELECTION",
    };
    let what = match &metrics.selection {
        Selection::All(_) => metrics.selection.to_string(),
        one => one.value(),
    };
    Some((label, format!("{}: {lengths}{times}", printable(&what))))
}

fn cut_line(report: &Report) -> Option<(&'static str, String)> {
    let is_cut = |rank: &&RankMetrics| matches!(rank.ending, Ending::Damaged | Ending::Stopped);
    let cut: Vec<u32> = report.metrics.ranks.iter().filter(is_cut).map(|rank| rank.rank).collect();
    (!cut.is_empty()).then(|| {
        let text = format!(
            "{} ({}): trace truncated; time after its last valid record counts as lost",
            plural(cut.len(), "rank"),
            number_list(cut)
        );
        ("CUT", text)
    })
}

fn efficiency_lines(report: &Report) -> Vec<String> {
    let metrics = report.metrics;
    let elapsed = format!("elapsed (τ) {}", seconds(metrics.elapsed_s));
    let first = match metrics.efficiency {
        None => "unknown".to_owned(),
        Some(efficiency) => {
            let balance = efficiency.load_balance.map_or("unknown".into(), |b| format!("{b:.2}"));
            let communication = match report.diagnosis.of.serialisation_and_transfer() {
                Some((serialisation, transfer)) => {
                    format!("serialisation {serialisation:.2} x transfer {transfer:.2}")
                }
                None => format!("communication {:.2}", efficiency.communication),
            };
            let parallel = efficiency.parallel;
            format!("{parallel:.2} = load balance {balance} x {communication}")
        }
    };
    let counted = match metrics.compute {
        ComputeMode::Outside => None,
        ComputeMode::Blas => Some("only BLAS, LAPACK and FFTW calls count as computing"),
        ComputeMode::Regions => Some("only the program's regions count as computing"),
    };
    let both = format!("{first}      {elapsed}");
    let first = match width::fits(INDENT + both.chars().count()) {
        true => vec![both],
        false => vec![first, elapsed],
    };
    let undivided = report.diagnosis.of.undivided().and_then(causes::undivided);
    let undivided =
        undivided.iter().flat_map(|why| wrapped_after(INDENT, &format!("unknown: {why}")));
    first.into_iter().chain(counted.map(str::to_owned)).chain(undivided).collect()
}

/// Share of all waiting below which a kind of waits is left to `gammachi why`.
const NOTABLE_WAITS: f64 = 0.001;

/// The waits that cost most, with what made their delaying ranks late, if known.
fn wait_lines(report: &Report) -> Vec<String> {
    let Some(why) = report.why() else { return Vec::new() };
    let groups = waits::groups(&why);
    let all_s = why.seconds(why.causes.waiting());
    let is_small = |seconds: f64| seconds < NOTABLE_WAITS * all_s;
    let few = groups.iter().take(MAX_WAITS).skip(1);
    let notable = few.take_while(|(_, group)| !is_small(why.seconds(group.ticks))).count() + 1;
    let (shown, left_out) = groups.split_at(groups.len().min(notable));
    let mut lines = table::brief_lines(&waits::wait_states(&why, shown));
    let shown_s = why.seconds(shown.iter().map(|(_, group)| group.ticks).sum());
    let left_out = left_out.len();
    if left_out > 0 && !is_small(all_s - shown_s) {
        let words = report.metrics.selection.options();
        let words = [report.run.directory.display().to_string()].into_iter().chain(words);
        let words: Vec<String> = words.map(|word| shell_word(&word)).collect();
        lines.push(format!(
            "{}, {} of the waiting: gammachi why {}",
            plural(left_out, "smaller kind"),
            percent((1.0 - shown_s / all_s).max(0.0)),
            words.join(" ")
        ));
    }
    lines
}

/// What changes would save, the largest saving first.
fn saving_lines(report: &Report) -> Vec<String> {
    if report.savings.is_empty() {
        return Vec::new();
    }
    let rows = report.savings.iter();
    let interval = |row: &Saving| format!("{} to {}", seconds(row.lo_s), seconds(row.hi_s));
    let mut table = Table::default();
    table.right("saves", rows.clone().map(|row| percent(row.part)));
    table.right("time", rows.clone().map(|row| seconds(row.saves_s)));
    table.left("90 % interval", rows.clone().map(interval));
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

fn diagnosis_sentences(report: &Report) -> Vec<String> {
    let all: Vec<_> = report.damage().collect();
    let shown = all.iter().take(MAX_DIAGNOSES);
    let mut lines: Vec<String> = shown.map(|diagnosis| diagnosis.to_string()).collect();
    if all.len() > MAX_DIAGNOSES {
        lines.push(format!("… {} more (--json lists all)", all.len() - MAX_DIAGNOSES));
    }
    lines
}
