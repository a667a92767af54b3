//! Renders a report as a JSON document, whose keys `docs/reference/report-json.md` describes.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::{
    CallMetrics, FailedCalls, FileUse, Hybrid, Metrics, RankFiles, RankMetrics, RankTeams,
    Selection, TotalsMetrics, Unfinished, Unseen,
};
use crate::present::causes::{Summary, counted_note, summary};
use crate::present::clock::{ClockPart, ExchangeDocument, exchanges};
use crate::present::context;
use crate::present::document::{Head, text};
use crate::present::findings::{self, FindingPart};
use crate::present::shown::Report;
use crate::present::whatif::Saving;
use crate::timeline::{Alignment, ElapsedScope};

use super::code::{CodeDocument, LineDocument, PartDocument, ThreadDocument};
use super::counters::CounterDocument;
use super::job;
use super::messages::{MAX_RANKS, MessagesPart};
use super::openmp::RegionDocument;
use super::sites::{PathDocument, SiteDocument};
use super::trust::recorder_share;

/// Maximum number of causes of waiting; `gammachi why --json` has all.
const MAX_CAUSES: usize = 3;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    head: Head,
    /// The run directory.
    run: String,
    /// All programs, joined by ` : `.
    program: String,
    /// Arguments of the lowest rank.
    arguments: &'a [String],
    /// `--param` pairs, as in [run.json](run-json.md).
    params: BTreeMap<String, String>,
    mpi_library: &'a str,
    /// The batch job.
    job: job::Job,
    /// Ranks that run the same; several if MPMD.
    programs: Vec<job::ProgramGroup>,
    /// Number of all ranks.
    world_size: u32,
    /// First and last of each range of ranks without a readable file, or that never returned from MPI_Init.
    missing_ranks: Vec<[u32; 2]>,
    /// The part of the run that the figures describe.
    selection: SelectionDocument,
    /// Times are those of processes, from start to exit.
    from_start: bool,
    /// What counts as computing, as in [run.json](run-json.md).
    compute: &'static str,
    /// τ of the selection.
    elapsed_s: f64,
    /// τ of the whole run.
    run_elapsed_s: f64,
    /// Parallel efficiency and its factors.
    efficiency: EfficiencyDocument,
    /// Floating-point operations of compute calls and declared work, a lower bound.
    flops: Option<f64>,
    /// `flops` divided by `elapsed_s`.
    flops_per_s: Option<f64>,
    /// Counters of the processor and the kernel.
    counters: Vec<CounterDocument<'a>>,
    /// One for each readable rank.
    ranks: Vec<RankDocument<'a>>,
    /// Calls by function, most time first.
    calls: Vec<CallDocument<'a>>,
    /// Calls that returned an error.
    failed_calls: &'a [FailedCalls],
    /// Calls by call site, equal ones of all ranks together, most time first; null at level 0.
    sites: Option<Vec<SiteDocument<'a>>>,
    /// Long calls by call path, equal ones of all ranks together, most time first; only at level 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<PathDocument<'a>>>,
    /// Functions of the program, of all ranks together and of each, most time first; absent if the code was not
    /// sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    code: Vec<CodeDocument<'a>>,
    /// The same of each thread of ranks of which several threads were sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    code_threads: Vec<ThreadDocument<'a>>,
    /// The same of regions, phases and slow iterations; of whole runs. Time in the kernel is not known of parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    code_parts: Vec<PartDocument<'a>>,
    /// Lines of functions, most own time first; absent if the code was not sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    code_lines: Vec<LineDocument<'a>>,
    /// Efficiency of all threads (OpenMP) and its factors; absent if parallel regions were not recorded, null if it is
    /// not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    hybrid: Option<Option<&'a Hybrid>>,
    /// The threads of each rank; absent without `hybrid`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    threads: Vec<&'a RankTeams>,
    /// Parallel regions by place, the most idle time first; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parallel_regions: Vec<RegionDocument<'a>>,
    /// Parallel regions of the whole run that are not recorded, because more than 256 threads of a rank began some, or
    /// a team had more than 1,024; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    missed_parallel_regions: Option<u64>,
    /// Files that the program works on, most time first; absent if calls on files were not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<&'a [FileUse]>,
    /// What each rank does with files; absent without `files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_files: Option<&'a [RankFiles]>,
    /// Bytes that were read and written by calls that are not recorded, such as `fprintf`; absent without `files`,
    /// null if they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    files_unseen: Option<Option<Unseen>>,
    /// [Calls kept as sums](../guide/record.md#how-large-traces-become). All figures but messages include them.
    totals: Option<&'a TotalsMetrics>,
    #[serde(flatten)]
    messages: MessagesPart<'a>,
    /// Ranks that did not finish and whom they wait for ([how to read
    /// it](../guide/read.md#a-job-that-hangs-or-was-killed)); null: all finished.
    unfinished: Option<&'a Unfinished>,
    /// How well times of different ranks compare.
    clock: ClockPart,
    /// How far the figures can be trusted.
    trust: Trust,
    /// The findings as sentences.
    verdict: Vec<String>,
    /// What the figures mean, the gravest first.
    findings: Vec<FindingPart<'a>>,
    /// Causes of waiting, of the selection but for `regions` and `phases`. Null with `--no-messages`, `--from-start`,
    /// or more than 2·10⁷ calls.
    causes: Option<Summary<'a>>,
    /// What changes would save ([WHAT IF](../guide/read.md#the-report)); empty without a replay, or where predictions
    /// are invalid.
    what_if: &'a [Saving],
    /// Damage of files.
    diagnoses: Vec<DiagnosisDocument>,
    /// Other sentences, also why keys are null.
    notes: Vec<String>,
}

/// The part of a run that figures describe.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SelectionDocument {
    /// `whole`, `window`, `region`, `iteration`, or `several` of these: what they have in common.
    kind: &'static str,
    /// Name of the region; of nested occurrences the outermost counts.
    region: Option<String>,
    /// Begin of the window as given; of a call its end.
    from: Option<String>,
    /// End of the window as given; of a call its begin.
    to: Option<String>,
    /// Number of the iteration, from 0.
    iteration: Option<usize>,
    /// Occurrences of each rank, if equally many, whose times add up; null: τ is from first begin to last end.
    occurrences: Option<usize>,
}

/// Efficiency and its factors, null if the selection has no length.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EfficiencyDocument {
    /// ε_p = Σγ/(p·τ) = `load_balance` × `communication`.
    parallel: Option<f64>,
    /// Mean γ over the largest; null: no rank computes.
    load_balance: Option<f64>,
    /// Largest γ over τ.
    communication: Option<f64>,
}

/// A rank. Times are seconds in the selection unless said otherwise.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RankDocument<'a> {
    #[serde(flatten)]
    metrics: &'a RankMetrics,
    /// When MPI_Init returns.
    begin_s: f64,
    /// Cores that it may run on.
    affinity: &'a [u32],
    /// Largest error bound of its clock; null: not measured.
    clock_bound_ns: Option<f64>,
    /// How its clock was compared with others.
    clock_exchanges: Vec<ExchangeDocument>,
    /// How its counter was aligned with the common clock.
    clock_alignment: Alignment,
}

/// Calls of a function, of all ranks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CallDocument<'a> {
    #[serde(flatten)]
    metrics: &'a CallMetrics,
    /// Mean seconds of a call.
    mean_s: f64,
}

/// How far figures can be trusted.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Trust {
    /// Σ`recorder_s` / (p·τ).
    recorder_share: Option<f64>,
    /// Events that finalized ranks could not write.
    lost_events: u64,
    /// Number of ranks that did not finalize MPI.
    unfinalized_ranks: usize,
    /// Number of files with a diagnosis.
    damaged_files: usize,
    /// Counter of the lowest rank.
    counter: Option<&'static str>,
    /// Its rate.
    counter_hz: Option<f64>,
    /// 1: no spread is known.
    runs: u32,
    /// Ranks share cores, or one waited for a core over 2 % of its time.
    oversubscribed: bool,
}

/// Damage of a file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DiagnosisDocument {
    file: String,
    /// What is wrong with it.
    what: String,
}

/// The document as indented text with a line feed at the end.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    text(&document(report))
}

/// The document as a value, for other documents that contain it.
pub(in crate::present) fn value(report: &Report) -> serde_json::Value {
    // These types always serialise.
    serde_json::to_value(document(report)).unwrap_or_default()
}

fn document<'a>(report: &Report<'a>) -> Document<'a> {
    let Report { run, timeline, metrics, .. } = *report;
    let header = run.ranks.first().map(|rank| &rank.file.header);
    let flops = metrics.flops;
    let diagnoses: Vec<_> = report.diagnoses().collect();
    Document {
        head: Head::default(),
        run: run.directory.display().to_string(),
        program: context::program(run),
        arguments: header.map_or(&[], |header| &header.arguments),
        params: run.parameters().into_iter().collect(),
        job: job::job(report),
        programs: job::program_groups(report),
        mpi_library: header.map_or("", |header| &header.mpi_library),
        world_size: run.world_size,
        missing_ranks: run.missing.iter().map(|range| [*range.start(), *range.end()]).collect(),
        selection: selection(metrics),
        from_start: report.timeline.scope == ElapsedScope::Process,
        compute: metrics.compute.name(),
        elapsed_s: metrics.elapsed_s,
        run_elapsed_s: metrics.run_elapsed_s,
        efficiency: EfficiencyDocument {
            parallel: metrics.efficiency.map(|e| e.parallel),
            load_balance: metrics.efficiency.and_then(|e| e.load_balance),
            communication: metrics.efficiency.map(|e| e.communication),
        },
        flops,
        flops_per_s: flops.filter(|_| metrics.elapsed_s > 0.0).map(|f| f / metrics.elapsed_s),
        counters: metrics.counters.iter().map(CounterDocument::new).collect(),
        ranks: (0..metrics.ranks.len()).map(|index| rank(report, index)).collect(),
        failed_calls: &metrics.failed,
        calls: metrics
            .calls
            .iter()
            .map(|metrics| CallDocument { metrics, mean_s: metrics.mean_s() })
            .collect(),
        sites: metrics.sites.as_ref().map(|s| s.rows.iter().map(SiteDocument::new).collect()),
        paths: (metrics.sites.as_ref().filter(|sites| !sites.paths.is_empty()))
            .map(|sites| sites.paths.iter().map(PathDocument::new).collect()),
        code: CodeDocument::all(report.diagnosis),
        code_threads: CodeDocument::of_threads(report.diagnosis),
        code_parts: PartDocument::all(report.diagnosis),
        code_lines: LineDocument::all(report.diagnosis),
        hybrid: metrics.openmp.as_ref().map(|openmp| openmp.hybrid.as_ref()),
        threads: metrics.openmp.iter().flat_map(|openmp| &openmp.ranks).collect(),
        parallel_regions: metrics.openmp.as_ref().map(RegionDocument::all).unwrap_or_default(),
        missed_parallel_regions: metrics.openmp.as_ref().map(|of| of.missed).filter(|of| *of > 0),
        files: metrics.files.as_ref().map(|of| of.files.as_slice()),
        rank_files: metrics.files.as_ref().map(|of| of.ranks.as_slice()),
        files_unseen: metrics.files.as_ref().map(|of| of.unseen),
        totals: metrics.totals.as_ref(),
        messages: MessagesPart::new(report),
        unfinished: metrics.unfinished.as_ref(),
        clock: ClockPart::new(timeline),
        trust: Trust {
            recorder_share: recorder_share(report),
            lost_events: metrics.lost_events,
            unfinalized_ranks: run.ranks.iter().filter(|r| !r.facts.finalized()).count(),
            damaged_files: {
                let files = report.damage().map(|diagnosis| diagnosis.file);
                files.collect::<std::collections::BTreeSet<_>>().len()
            },
            counter: run.ranks.first().map(|rank| rank.file.counter.name()),
            counter_hz: timeline.ranks.first().map(|rank| rank.frequency.ticks_per_s),
            runs: 1,
            oversubscribed: !metrics.oversubscription.is_empty(),
        },
        verdict: findings::sentences(report.diagnosis),
        findings: FindingPart::all(report.diagnosis),
        causes: report.why().map(|why| summary(&why, MAX_CAUSES)),
        what_if: report.savings,
        diagnoses: diagnoses
            .into_iter()
            .map(|d| DiagnosisDocument { file: d.file.display().to_string(), what: d.what })
            .collect(),
        notes: report
            .notes()
            .chain(reasons_for_nulls(report))
            .chain(report.causes.and_then(counted_note))
            .collect(),
    }
}

fn selection(metrics: &Metrics) -> SelectionDocument {
    let kind = match &metrics.selection {
        Selection::Whole => "whole",
        Selection::Window { .. } => "window",
        Selection::Region(_) => "region",
        Selection::Iteration(_) => "iteration",
        Selection::All(_) => "several",
    };
    let occurrences = metrics.occurrences;
    let (region, from, to, iteration) = Default::default();
    let mut document = SelectionDocument { kind, region, from, to, iteration, occurrences };
    for part in metrics.selection.parts() {
        match part {
            Selection::Window { from, to } => {
                (document.from, document.to) = (Some(from.to_string()), Some(to.to_string()));
            }
            Selection::Region(name) => document.region = Some(name.clone()),
            Selection::Iteration(of) => document.iteration = Some(of.number),
            Selection::Whole | Selection::All(_) => {}
        }
    }
    document
}

fn rank<'a>(report: &Report<'a>, index: usize) -> RankDocument<'a> {
    let Report { run, timeline, metrics, .. } = *report;
    let time = &timeline.ranks[index];
    RankDocument {
        metrics: &metrics.ranks[index],
        begin_s: time.begin_s(),
        affinity: &run.ranks[index].file.header.affinity,
        clock_bound_ns: time.clock.bound_ns,
        clock_exchanges: exchanges(report, index),
        clock_alignment: time.clock.alignment,
    }
}

/// Notes on keys that are null for a reason that is not obvious.
fn reasons_for_nulls(report: &Report) -> Vec<String> {
    let Report { timeline, metrics, .. } = *report;
    let mut reasons = Vec::new();
    let mut reason = |applies: bool, text: &str| {
        if applies {
            reasons.push(text.to_owned());
        }
    };
    reason(metrics.efficiency.is_none(), "efficiency is null: the selection has no length");
    let balance = metrics.efficiency.is_some_and(|efficiency| efficiency.load_balance.is_none());
    reason(balance, "efficiency.load_balance is null: no rank computes");
    reason(
        metrics.flops.is_none(),
        "flops is null: no compute function or declared work was recorded (record with --flops)",
    );
    reason(
        metrics.messages.is_none(),
        "messages and matrix are null, communicators and sizes empty: the run was recorded at level \
         0, function and times",
    );
    let unknown = metrics.openmp.as_ref().and_then(|openmp| openmp.unknown);
    reason(unknown.is_some(), &format!("hybrid is null: {}", unknown.unwrap_or_default()));
    reason(
        metrics.files.as_ref().is_some_and(|files| files.is_partial),
        "files and rank_files lack calls of the part of the run that was kept as totals",
    );
    reason(
        metrics.unfinished.is_none(),
        "unfinished is null: all ranks returned from MPI_Finalize",
    );
    reason(
        metrics.calls.iter().any(|call| call.bytes.is_none()),
        "calls[].bytes is null where a call itself moves nothing (it posts, starts, waits, probes) \
         or was recorded at level 0",
    );
    reason(
        metrics.messages.is_some() && report.run.world_size > MAX_RANKS,
        "matrix is null: more than 256 ranks",
    );
    let unknown = metrics.ranks.iter().any(|rank| rank.off_cpu_s.is_none());
    let whole = metrics.selection == Selection::Whole;
    reason(
        unknown && !whole,
        "ranks[].off_cpu_s is null: it is known for the whole run only, not for a part",
    );
    reason(
        unknown && whole,
        "ranks[].off_cpu_s is null where a reading at the start, or a later one, is missing",
    );
    reason(
        timeline.bound_ns.is_none() || !timeline.aligned,
        "clock bounds are null where the rank's clock was not measured",
    );
    reasons
}
