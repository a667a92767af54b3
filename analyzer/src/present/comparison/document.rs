//! The JSON document of `gammachi compare`; `docs/reference/compare-json.md` explains its keys.

use serde::Serialize;

use crate::comparison::basis::{Basis, lacked_cores};
use crate::comparison::cause::{Cause, CauseKind, WhichRanks};
use crate::comparison::parts::{Group, Key};
use crate::comparison::place::Spot;
use crate::comparison::record::{Kind, Machine};
use crate::comparison::statistics::{CONFIDENCE, Estimate};
use crate::comparison::subject::Difference;
use crate::comparison::{Comparison, RunRecord};
use crate::present::findings::FindingPart;

use super::{verdict, words};

/// Version of the document's keys: a key never changes its meaning within one version.
pub(super) const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    version: u32,
    gammachi: &'static str,
    program: &'a str,
    complete: bool,
    missing: Vec<String>,
    clock: Option<()>,
    ticks_per_s: f64,
    confidence: f64,
    before: SidePart<'a>,
    after: SidePart<'a>,
    differs_in: Vec<&'static str>,
    verdict: &'static str,
    sentences: Vec<String>,
    elapsed: TimePart,
    iteration: Option<TimePart>,
    iteration_parts: Vec<NamedTime>,
    phases: Vec<PhasePart>,
    parts: Vec<PartPart>,
    unexplained_s: f64,
    unexplained_ticks: i64,
    tree: Vec<FactorPart>,
    shares: Vec<FactorPart>,
    tested: Vec<TestedPart>,
    counts: Vec<CountPart>,
    counts_varying: usize,
    machine_factor: Option<f64>,
    cause: Option<CausePart>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct SidePart<'a> {
    runs: Vec<&'a str>,
    ranks: u32,
    mpi: &'a str,
    build_id: &'a str,
    machine: &'a Machine,
    lacked_cores: Option<f64>,
    findings: Vec<Vec<FindingPart<'a>>>,
}

/// The means of a time before and after, their difference and its interval.
#[derive(Debug, Serialize)]
struct TimePart {
    before_s: f64,
    after_s: f64,
    difference_s: f64,
    lo_s: Option<f64>,
    hi_s: Option<f64>,
    relative: f64,
    p: f64,
    degrees_of_freedom: Option<f64>,
    spread: f64,
    spread_is_assumed: bool,
    runs_for_one_percent: Option<usize>,
}

/// One kind of time of the mean rank in an iteration.
#[derive(Debug, Serialize)]
struct NamedTime {
    name: &'static str,
    #[serde(flatten)]
    time: TimePart,
}

/// A loop.
#[derive(Debug, Serialize)]
struct PhasePart {
    anchor: String,
    iterations_before: u64,
    iterations_after: u64,
    #[serde(flatten)]
    time: TimePart,
}

/// A part of the difference of mean elapsed times.
#[derive(Debug, Serialize)]
struct PartPart {
    level: &'static str,
    name: String,
    kind: &'static str,
    before_s: f64,
    after_s: f64,
    difference_s: f64,
    difference_ticks: i64,
    lo_s: Option<f64>,
    hi_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct FactorPart {
    name: &'static str,
    before: f64,
    after: f64,
    difference: f64,
    lo: Option<f64>,
    hi: Option<f64>,
}

#[derive(Debug, Serialize)]
struct TestedPart {
    name: String,
    of: &'static str,
    per: &'static str,
    before_s: f64,
    after_s: f64,
    difference_s: f64,
    lo_s: Option<f64>,
    hi_s: Option<f64>,
    p: f64,
    found: bool,
}

#[derive(Debug, Serialize)]
struct CountPart {
    what: String,
    before: u64,
    after: u64,
}

#[derive(Debug, Serialize)]
struct CausePart {
    kind: &'static str,
    place: Option<String>,
    region: Option<String>,
    ranks: Option<Vec<(u32, u32)>>,
    all_ranks: bool,
    difference_s: Option<f64>,
    what: Option<String>,
    sentence: String,
}

/// The document of `gammachi compare --json`.
///
/// # Errors
/// If it cannot be serialised.
pub fn json(of: &Comparison) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&document(of)).map(|text| text + "\n")
}

pub(super) fn document<'a>(of: &'a Comparison) -> Document<'a> {
    let decisive = of.decisive();
    let verdict = match (of.relation.same_ranks, of.is_certain()) {
        (false, _) => "other_ranks",
        _ if matches!(of.basis, Basis::LackOfCores { .. }) => "cannot_tell",
        (true, true) if decisive.difference() > 0.0 => "slower",
        (true, true) => "faster",
        (true, false) => "no_difference",
    };
    let no_messages = of.before.iter().chain(&of.after).any(|record| record.partners.is_none());
    let missing = no_messages.then(|| {
        "messages and waits: a run was recorded at level 0, which keeps no peers (record with --level 1)".to_owned()
    });
    Document {
        version: VERSION,
        gammachi: env!("CARGO_PKG_VERSION"),
        program: &of.after[0].program,
        complete: missing.is_none(),
        missing: missing.into_iter().collect(),
        clock: None,
        ticks_per_s: 1e9,
        confidence: CONFIDENCE,
        before: side(&of.before),
        after: side(&of.after),
        differs_in: of.relation.differences.iter().map(|what| difference_key(*what)).collect(),
        verdict,
        sentences: verdict::sentences(of),
        elapsed: time(&of.elapsed),
        iteration: of.iteration.as_ref().map(time),
        iteration_parts: of
            .of_iteration
            .iter()
            .map(|(kind, estimate)| NamedTime { name: kind.key(), time: time(estimate) })
            .collect(),
        phases: of.phases.iter().map(phase).collect(),
        parts: parts(of),
        unexplained_s: of.differences.unexplained_ns as f64 * 1e-9,
        unexplained_ticks: of.differences.unexplained_ns,
        tree: of.tree.iter().map(|factor| factor_part(factor.name, &factor.estimate)).collect(),
        shares: crate::comparison::parts::shares(&of.before, &of.after)
            .iter()
            .map(|(kind, estimate)| factor_part(kind.key(), estimate))
            .collect(),
        tested: of.tested.iter().map(tested).collect(),
        counts: of.changes.iter().map(count).collect(),
        counts_varying: of.varying.len(),
        machine_factor: of.drift,
        cause: of.cause.as_ref().map(|cause| cause_part(of, cause)),
        notes: verdict::notes(of),
    }
}

fn side(records: &[RunRecord]) -> SidePart<'_> {
    let RunRecord { ranks, mpi, build_id, machine, .. } = &records[0];
    let runs = records.iter().map(|record| record.run.as_str()).collect();
    let lacked_cores = lacked_cores(records);
    let findings = records.iter().map(|record| FindingPart::of(&record.findings, None)).collect();
    SidePart { runs, ranks: *ranks, mpi, build_id, machine, lacked_cores, findings }
}

fn difference_key(what: Difference) -> &'static str {
    match what {
        Difference::Program => "program",
        Difference::Ranks => "ranks",
        Difference::Parameters => "parameters",
        Difference::Recording => "recording",
        Difference::Machine => "machine",
        Difference::Build => "build",
        Difference::Mpi => "mpi",
    }
}

fn ends(of: &Estimate) -> (Option<f64>, Option<f64>) {
    (of.interval.map(|(lo, _)| lo), of.interval.map(|(_, hi)| hi))
}

fn ends_s(of: &Estimate) -> (Option<f64>, Option<f64>) {
    let (lo, hi) = ends(of);
    (lo.map(|ns| ns * 1e-9), hi.map(|ns| ns * 1e-9))
}

fn time(of: &Estimate) -> TimePart {
    let (lo_s, hi_s) = ends_s(of);
    TimePart {
        before_s: of.before * 1e-9,
        after_s: of.after * 1e-9,
        difference_s: of.difference() * 1e-9,
        lo_s,
        hi_s,
        relative: of.relative(),
        p: of.p,
        degrees_of_freedom: Some(of.degrees).filter(|degrees| degrees.is_finite()),
        spread: of.spread,
        spread_is_assumed: of.is_assumed,
        runs_for_one_percent: of.runs_for(0.01),
    }
}

fn count(of: &crate::comparison::counts::Change) -> CountPart {
    CountPart { what: words::what(&of.what), before: of.before, after: of.after }
}

fn phase(of: &crate::comparison::quantities::PhaseTime) -> PhasePart {
    PhasePart {
        anchor: words::spot(&of.anchor),
        iterations_before: of.iterations.0,
        iterations_after: of.iterations.1,
        time: time(&of.estimate),
    }
}

fn factor_part(name: &'static str, of: &Estimate) -> FactorPart {
    let (lo, hi) = ends(of);
    FactorPart { name, before: of.before, after: of.after, difference: of.difference(), lo, hi }
}

/// Parts at all levels: kinds of time, states of waiting, regions, MPI functions, delaying ranks, and single places.
fn parts(of: &Comparison) -> Vec<PartPart> {
    let sides = of.sides();
    let mut all = Vec::new();
    let mut level = |level: &'static str, name: &dyn Fn(&Key) -> Option<(Kind, String)>| {
        let groups = of.differences.groups(sides, name);
        all.extend(groups.iter().map(|group| part(level, group)));
    };
    level("kind", &|key| Some((key.kind, key.kind.key().to_owned())));
    level("state", &|key| {
        let is_wait = matches!(key.kind, Kind::Waiting | Kind::StartAndEnd);
        is_wait
            .then(|| (key.kind, key.state.clone().unwrap_or_else(|| "not_told_apart".to_owned())))
    });
    level("region", &|key| match (&key.spot, key.kind) {
        (Spot::Region(name), Kind::Computing) => Some((key.kind, name.clone())),
        _ => None,
    });
    level("function", &|key| match (&key.spot, key.kind) {
        (Spot::Inside(site), Kind::Waiting | Kind::Transfer) => {
            Some((key.kind, site.function.clone()))
        }
        _ => None,
    });
    level("delayed_by", &|key| {
        let rank = key.delayed_by.map(|rank| format!("rank {rank}"));
        (key.kind == Kind::Waiting)
            .then(|| (key.kind, rank.unwrap_or_else(|| "not known".to_owned())))
    });
    all.extend(of.differences.parts.iter().map(|part| {
        let (lo_s, hi_s) = ends_s(&part.estimate);
        PartPart {
            level: "place",
            name: place_name(&part.key, &part.shown),
            kind: part.key.kind.key(),
            before_s: part.estimate.before * 1e-9,
            after_s: part.estimate.after * 1e-9,
            difference_s: part.ns as f64 * 1e-9,
            difference_ticks: part.ns,
            lo_s,
            hi_s,
        }
    }));
    all
}

fn part(level: &'static str, group: &Group<(Kind, String)>) -> PartPart {
    let (lo_s, hi_s) = ends_s(&group.estimate);
    PartPart {
        level,
        name: group.name.1.clone(),
        kind: group.name.0.key(),
        before_s: group.estimate.before * 1e-9,
        after_s: group.estimate.after * 1e-9,
        difference_s: group.ns as f64 * 1e-9,
        difference_ticks: group.ns,
        lo_s,
        hi_s,
    }
}

/// `late_sender at MPI_Recv heat.c:42 for rank 2`.
fn place_name(key: &Key, shown: &Spot) -> String {
    let mut words = Vec::new();
    words.extend(key.state.clone());
    match shown {
        Spot::None => {}
        spot if words.is_empty() => words.push(words::spot(spot)),
        spot => words.push(format!("at {}", words::spot(spot))),
    }
    words.extend(key.delayed_by.map(|rank| format!("for rank {rank}")));
    if words.is_empty() { key.kind.key().to_owned() } else { words.join(" ") }
}

fn tested(of: &crate::comparison::quantities::Tested) -> TestedPart {
    let (lo_s, hi_s) = ends_s(&of.estimate);
    TestedPart {
        name: words::spot(&of.spot),
        of: if of.most { "longest_rank" } else { "mean_rank" },
        per: if of.of_iteration { "iteration" } else { "run" },
        before_s: of.estimate.before * 1e-9,
        after_s: of.estimate.after * 1e-9,
        difference_s: of.estimate.difference() * 1e-9,
        lo_s,
        hi_s,
        p: of.estimate.p,
        found: of.is_significant,
    }
}

/// The name of a kind of cause in documents.
pub(super) fn cause_key(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::Partners => "partners",
        CauseKind::Calls => "calls",
        CauseKind::Bytes => "bytes",
        CauseKind::Computing => "computing",
        CauseKind::Waiting => "waiting",
        CauseKind::Transfer => "transfer",
        CauseKind::Recorder => "recorder",
        CauseKind::StartAndEnd => "start_and_end",
        CauseKind::Other => "other",
        CauseKind::Machine => "machine",
    }
}

fn cause_part(of: &Comparison, cause: &Cause) -> CausePart {
    let region = match &cause.spot {
        Some(Spot::Region(name)) => Some(name.clone()),
        _ => None,
    };
    let ranks = match &cause.ranks {
        Some(WhichRanks::Some(ranks)) => Some(ranks.clone()),
        _ => None,
    };
    CausePart {
        kind: cause_key(cause.kind),
        place: cause.spot.as_ref().map(words::spot),
        region,
        ranks,
        all_ranks: cause.ranks == Some(WhichRanks::All),
        difference_s: cause.ns.map(|ns| ns * 1e-9),
        what: cause.change.as_ref().map(|change| words::what(&change.what)),
        sentence: verdict::cause(of, cause),
    }
}
