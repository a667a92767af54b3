//! Renders a report as a JSON document, whose keys `docs/reference/report-json.md` describes.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::{
    CallMetrics, FailedCalls, Metrics, RankMetrics, Selection, TotalsMetrics, Unfinished,
};
use crate::present::causes::{Summary, summary};
use crate::present::clock::{ClockPart, ExchangeDocument, exchanges};
use crate::present::context;
use crate::present::findings::{self, FindingPart};
use crate::present::shown::Report;
use crate::present::whatif::Saving;
use crate::timeline::{Alignment, ElapsedScope};

use super::counters::CounterDocument;
use super::job;
use super::messages::{MAX_RANKS, MessagesPart};
use super::sites::{PathDocument, SiteDocument};
use super::trust::recorder_share;

/// Version of the document's keys: a key never changes its meaning within one version.
pub const VERSION: u32 = 1;
/// Maximum number of causes of waiting; `gammachi why --json` has all.
const MAX_CAUSES: usize = 3;

#[derive(Debug, Serialize)]
struct Document<'a> {
    version: u32,
    gammachi: &'static str,
    run: String,
    program: String,
    arguments: &'a [String],
    params: BTreeMap<String, String>,
    mpi_library: &'a str,
    job: job::Job,
    programs: Vec<job::ProgramGroup>,
    world_size: u32,
    missing_ranks: Vec<[u32; 2]>,
    selection: SelectionDocument,
    from_start: bool,
    compute: &'static str,
    elapsed_s: f64,
    run_elapsed_s: f64,
    efficiency: EfficiencyDocument,
    flops: Option<f64>,
    flops_per_s: Option<f64>,
    counters: Vec<CounterDocument<'a>>,
    ranks: Vec<RankDocument<'a>>,
    calls: Vec<CallDocument<'a>>,
    failed_calls: &'a [FailedCalls],
    sites: Option<Vec<SiteDocument<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<PathDocument<'a>>>,
    totals: Option<&'a TotalsMetrics>,
    #[serde(flatten)]
    messages: MessagesPart<'a>,
    unfinished: Option<&'a Unfinished>,
    clock: ClockPart,
    trust: Trust,
    verdict: Vec<String>,
    findings: Vec<FindingPart<'a>>,
    causes: Option<Summary<'a>>,
    what_if: &'a [Saving],
    diagnoses: Vec<DiagnosisDocument>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct SelectionDocument {
    kind: &'static str,
    region: Option<String>,
    from: Option<String>,
    to: Option<String>,
    iteration: Option<usize>,
    occurrences: Option<usize>,
}

#[derive(Debug, Serialize)]
struct EfficiencyDocument {
    parallel: Option<f64>,
    load_balance: Option<f64>,
    communication: Option<f64>,
}

#[derive(Debug, Serialize)]
struct RankDocument<'a> {
    #[serde(flatten)]
    metrics: &'a RankMetrics,
    begin_s: f64,
    affinity: &'a [u32],
    clock_bound_ns: Option<f64>,
    clock_exchanges: Vec<ExchangeDocument>,
    clock_alignment: Alignment,
}

#[derive(Debug, Serialize)]
struct CallDocument<'a> {
    #[serde(flatten)]
    metrics: &'a CallMetrics,
    mean_s: f64,
}

#[derive(Debug, Serialize)]
struct Trust {
    recorder_share: Option<f64>,
    lost_events: u64,
    unfinalized_ranks: usize,
    damaged_files: usize,
    counter: Option<&'static str>,
    counter_hz: Option<f64>,
    runs: u32,
    oversubscribed: bool,
}

#[derive(Debug, Serialize)]
struct DiagnosisDocument {
    file: String,
    what: String,
}

/// The document as indented text with a line feed at the end.
///
/// # Errors
/// Never with these types; the result is that of serde_json.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&document(report)).map(|text| text + "\n")
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
        version: VERSION,
        gammachi: env!("CARGO_PKG_VERSION"),
        run: run.directory.display().to_string(),
        program: context::program(run),
        arguments: header.map_or(&[], |header| &header.arguments),
        params: context::parameters(run).into_iter().collect(),
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
        notes: report.notes().chain(reasons_for_nulls(report)).collect(),
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
