//! The JSON document of `gammachi compare`; `docs/reference/compare-json.md` explains its keys.

use serde::Serialize;

use crate::comparison::basis::{Basis, lacked_cores};
use crate::comparison::beside::{BesideDifference, FilePlace, What};
use crate::comparison::cause::{Cause, CauseKind, WhichRanks};
use crate::comparison::code::FunctionDifference;
use crate::comparison::parts::Key;
use crate::comparison::place::CodeLocation;
use crate::comparison::record::{Kind, Machine};
use crate::comparison::sampled::SampledKind;
use crate::comparison::statistics::{CONFIDENCE, Estimate};
use crate::comparison::subject::Difference;
use crate::comparison::{Comparison, RunRecord};
use crate::present::document::{Head, text};
use crate::present::findings::FindingPart;

use super::{verdict, words};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    head: Head,
    /// Name of the program.
    program: &'a str,
    /// `missing` is empty.
    complete: bool,
    /// What cannot be said, and why.
    missing: Vec<String>,
    /// Null: clocks of runs are not compared.
    clock: Option<()>,
    /// 1e9: `_ticks` are nanoseconds.
    ticks_per_s: f64,
    /// 0.98: `lo` and `hi` are each passed one time in a hundred.
    confidence: f64,
    /// The runs before the change.
    before: SidePart<'a>,
    /// The runs after it.
    after: SidePart<'a>,
    /// In what the runs of both sides differ.
    differs_in: &'a [Difference],
    /// `slower`, `faster`, `no_difference`, `cannot_tell` (ranks lacked cores) or `other_ranks`.
    verdict: &'static str,
    /// Those of the screen.
    sentences: Vec<String>,
    /// Elapsed time.
    elapsed: TimePart,
    /// The median of iterations.
    iteration: Option<TimePart>,
    /// `computing` and `waiting` of the mean rank in an iteration.
    iteration_parts: Vec<NamedTime>,
    /// Loops in all runs, all their iterations.
    phases: Vec<PhasePart>,
    /// Parts of the difference, of the mean rank and run; empty if rank counts differ. Those of level `kind` add up
    /// to `elapsed.difference_s` less `unexplained_s`, as do those of `place`.
    parts: Vec<PartPart>,
    /// What the parts leave of `elapsed.difference_s`.
    unexplained_s: f64,
    unexplained_ticks: i64,
    /// Factors of the [efficiency](../causes.md#efficiency).
    tree: Vec<FactorPart>,
    /// Kinds of time as parts of all.
    shares: Vec<FactorPart>,
    /// Computing of the program's parts.
    tested: Vec<TestedPart>,
    /// Own CPU time of functions over all ranks, from samples; empty if runs were not sampled or rank counts differ.
    code: Vec<CodePart<'a>>,
    /// Times of parallel regions and of calls on files, of the mean rank; empty if they were not recorded in all runs.
    threads_and_files: Vec<BesidePart<'a>>,
    /// What differs without varying.
    counts: Vec<CountPart>,
    /// How many counts vary.
    counts_varying: usize,
    /// By which all computing changed alike.
    machine_factor: Option<f64>,
    /// What changed first of all.
    cause: Option<CausePart>,
    notes: Vec<String>,
}

/// Runs of a side.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SidePart<'a> {
    /// Names of the runs.
    runs: Vec<&'a str>,
    ranks: u32,
    mpi: &'a str,
    /// Build id of the program; empty: none.
    build_id: &'a str,
    machine: &'a Machine,
    /// Share of the ranks' time without a core; null: unknown.
    lacked_cores: Option<f64>,
    /// A list for each run, as in the report; from a baseline only those that make figures invalid.
    findings: Vec<Vec<FindingPart<'a>>>,
}

/// The means of a time before and after, their difference and its interval.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Change {
    /// Mean before.
    before_s: f64,
    /// Mean after.
    after_s: f64,
    /// After less before.
    difference_s: f64,
    /// Lower end of its interval; null: one run of each.
    lo_s: Option<f64>,
    /// Upper end.
    hi_s: Option<f64>,
}

impl Change {
    fn new(of: &Estimate) -> Self {
        let (lo_s, hi_s) = of.interval.map(|(lo, hi)| (lo * 1e-9, hi * 1e-9)).unzip();
        let difference_s = of.difference() * 1e-9;
        Self { before_s: of.before * 1e-9, after_s: of.after * 1e-9, difference_s, lo_s, hi_s }
    }
}

/// A time before and after.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TimePart {
    #[serde(flatten)]
    change: Change,
    /// Difference relative to before.
    relative: f64,
    /// Two-sided.
    p: f64,
    /// Null: the spread is assumed.
    degrees_of_freedom: Option<f64>,
    /// Relative standard deviation of a run.
    spread: f64,
    /// It is not known from the runs.
    spread_is_assumed: bool,
    /// Runs of each side that would show a difference of 1 %; null: over 100.
    runs_for_one_percent: Option<usize>,
}

/// One kind of time of the mean rank in an iteration.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NamedTime {
    /// `computing` or `waiting`.
    name: &'static str,
    #[serde(flatten)]
    time: TimePart,
}

/// A loop.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PhasePart {
    /// The call that begins an iteration.
    anchor: String,
    /// Number of iterations before.
    iterations_before: u64,
    /// Number of iterations after.
    iterations_after: u64,
    #[serde(flatten)]
    time: TimePart,
}

/// A part of the difference of mean elapsed times.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PartPart {
    /// `kind`; `place`; `state` (divides waiting, start and end by wait state), `delayed_by` (waiting by the rank
    /// waited for), `region` (computing by marked region), `function` (waiting and transfer by MPI function).
    level: &'static str,
    name: String,
    /// Kind of time.
    kind: &'static str,
    #[serde(flatten)]
    change: Change,
    /// The same difference.
    difference_ticks: i64,
}

/// A factor before and after.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FactorPart {
    name: &'static str,
    /// Mean before.
    before: f64,
    /// Mean after.
    after: f64,
    /// After less before.
    difference: f64,
    /// Lower end of its interval; null: one run of each.
    lo: Option<f64>,
    /// Upper end.
    hi: Option<f64>,
}

/// Computing of a part of the program.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TestedPart {
    /// The part of the program.
    name: String,
    /// `mean_rank` or `longest_rank`.
    of: &'static str,
    /// `iteration` or `run`.
    per: &'static str,
    #[serde(flatten)]
    change: Change,
    /// Two-sided.
    p: f64,
    /// It is significant among all.
    found: bool,
}

/// Own time of a function.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CodePart<'a> {
    /// `function`, or `kernel` (or signals held off; also inside MPI).
    kind: SampledKind,
    /// Name; null: unknown, or no function.
    function: Option<&'a str>,
    /// Program or library, without its path; null: unknown code, or no function.
    module: Option<&'a str>,
    /// Source file, without its path.
    file: Option<&'a str>,
    /// The line in it with most time.
    line: Option<u32>,
    #[serde(flatten)]
    change: Change,
    /// Two-sided, over all ranks.
    p: f64,
    /// It is significant among all functions (Holm, 1 %), over all ranks or on some.
    found: bool,
    /// First and last of each range of ranks that certainly changed; null: no single one, or not found.
    ranks: Option<Vec<(u32, u32)>>,
    /// All ranks changed.
    all_ranks: bool,
    /// Of a rank that changed.
    rank_difference_s: Option<f64>,
    /// It explains at least half of the difference of elapsed times.
    explains: bool,
}

/// Time of parallel regions or of calls on files.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BesidePart<'a> {
    /// `parallel_region` (of the thread that begins it), `idle_threads` (in it), `files` (all), or `file` (one of several
    /// that all runs have).
    what: &'static str,
    /// Where regions begin: function; null: not known, or files.
    function: Option<&'a str>,
    /// Source file, without its path.
    file: Option<&'a str>,
    /// Line.
    line: Option<u32>,
    /// Path of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// Its number, if names were not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(flatten)]
    change: Change,
    /// Two-sided; 1 if nothing tells how much it varies.
    p: f64,
    /// It is significant among all.
    found: bool,
}

/// A count that differs.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CountPart {
    /// What is counted.
    what: String,
    /// Before.
    before: u64,
    /// After.
    after: u64,
}

/// What changed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CausePart {
    /// What changed.
    kind: CauseKind,
    /// Where.
    place: Option<String>,
    /// In which region.
    region: Option<String>,
    /// First and last of each range of ranks that changed.
    ranks: Option<Vec<(u32, u32)>>,
    /// All ranks changed.
    all_ranks: bool,
    /// Of a rank that changed.
    difference_s: Option<f64>,
    /// The count that changed.
    what: Option<String>,
    /// The same in words.
    sentence: String,
}

/// The document of `gammachi compare --json`.
pub fn json(of: &Comparison) -> Result<String, serde_json::Error> {
    text(&document(of))
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
        head: Head::default(),
        program: &of.after[0].program,
        complete: missing.is_none(),
        missing: missing.into_iter().collect(),
        clock: None,
        ticks_per_s: 1e9,
        confidence: CONFIDENCE,
        before: side(&of.before),
        after: side(&of.after),
        differs_in: &of.relation.differences,
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
        code: of.code.functions.iter().map(|function| code_part(of, function)).collect(),
        threads_and_files: of.beside.iter().map(beside_part).collect(),
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
    let findings =
        records.iter().map(|record| FindingPart::from_findings(&record.findings, None)).collect();
    SidePart { runs, ranks: *ranks, mpi, build_id, machine, lacked_cores, findings }
}

fn time(of: &Estimate) -> TimePart {
    TimePart {
        change: Change::new(of),
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
    let (lo, hi) = of.interval.unzip();
    FactorPart { name, before: of.before, after: of.after, difference: of.difference(), lo, hi }
}

/// Parts at all levels: kinds of time, states of waiting, regions, MPI functions, delaying ranks, and single places.
fn parts(of: &Comparison) -> Vec<PartPart> {
    let sides = of.sides();
    let mut all = Vec::new();
    let mut level = |level: &'static str, name: &dyn Fn(&Key) -> Option<(Kind, String)>| {
        let groups = of.differences.groups(sides, name);
        let parts = groups.into_iter().map(|of| part(level, of.name, &of.estimate, of.ns));
        all.extend(parts);
    };
    level("kind", &|key| Some((key.kind, key.kind.key().to_owned())));
    level("state", &|key| {
        let is_wait = matches!(key.kind, Kind::Waiting | Kind::StartAndEnd);
        is_wait
            .then(|| (key.kind, key.state.clone().unwrap_or_else(|| "not_told_apart".to_owned())))
    });
    level("region", &|key| match (&key.spot, key.kind) {
        (CodeLocation::Region(name), Kind::Computing) => Some((key.kind, name.clone())),
        _ => None,
    });
    level("function", &|key| match (&key.spot, key.kind) {
        (CodeLocation::Inside(site), Kind::Waiting | Kind::Transfer) => {
            Some((key.kind, site.function.clone()))
        }
        _ => None,
    });
    level("delayed_by", &|key| {
        let rank = key.delayed_by.map(|rank| format!("rank {rank}"));
        (key.kind == Kind::Waiting)
            .then(|| (key.kind, rank.unwrap_or_else(|| "not known".to_owned())))
    });
    all.extend(of.differences.parts.iter().map(|of| {
        let name = place_name(&of.key, &of.shown);
        part("place", (of.key.kind, name), &of.estimate, of.ns)
    }));
    all
}

/// A part whose difference is whole nanoseconds, so that the differences add up.
fn part(
    level: &'static str,
    (kind, name): (Kind, String),
    estimate: &Estimate,
    ns: i64,
) -> PartPart {
    let change = Change { difference_s: ns as f64 * 1e-9, ..Change::new(estimate) };
    PartPart { level, name, kind: kind.key(), change, difference_ticks: ns }
}

/// `late_sender at MPI_Recv heat.c:42 for rank 2`.
fn place_name(key: &Key, shown: &CodeLocation) -> String {
    let mut words = Vec::new();
    words.extend(key.state.clone());
    match shown {
        CodeLocation::None => {}
        spot if words.is_empty() => words.push(words::spot(spot)),
        spot => words.push(format!("at {}", words::spot(spot))),
    }
    words.extend(key.delayed_by.map(|rank| format!("for rank {rank}")));
    if words.is_empty() { key.kind.key().to_owned() } else { words.join(" ") }
}

fn tested(of: &crate::comparison::quantities::Tested) -> TestedPart {
    TestedPart {
        name: words::spot(&of.spot),
        of: if of.most { "longest_rank" } else { "mean_rank" },
        per: if of.of_iteration { "iteration" } else { "run" },
        change: Change::new(&of.estimate),
        p: of.estimate.p,
        found: of.is_significant,
    }
}

fn beside_part(of: &BesideDifference) -> BesidePart<'_> {
    let (what, place) = match &of.what {
        What::Region(place) => ("parallel_region", Some(place)),
        What::Idle(place) => ("idle_threads", Some(place)),
        What::Files => ("files", None),
        What::File(_) => ("file", None),
    };
    let (name, number) = match &of.what {
        What::File(FilePlace::Named(name)) => (Some(name.as_str()), None),
        What::File(FilePlace::Numbered(number)) => (None, Some(*number)),
        _ => (None, None),
    };
    BesidePart {
        what,
        function: place.and_then(|of| of.function.as_deref()),
        file: place.and_then(|of| of.file.as_deref()),
        line: place.and_then(|of| of.line),
        name,
        number,
        change: Change::new(&of.estimate),
        p: of.estimate.p,
        found: of.is_significant,
    }
}

fn code_part<'a>(of: &'a Comparison, function: &'a FunctionDifference) -> CodePart<'a> {
    let FunctionDifference { shown, estimate, is_significant, on, .. } = function;
    let explains = of.explaining_function().is_some_and(|found| std::ptr::eq(found, function));
    CodePart {
        kind: shown.kind,
        function: shown.function.as_deref(),
        module: Some(shown.module.as_str()).filter(|module| !module.is_empty()),
        file: shown.file.as_deref(),
        line: shown.line,
        change: Change::new(estimate),
        p: estimate.p,
        found: *is_significant,
        ranks: on.as_ref().and_then(|(which, _)| ranks_of(which)),
        all_ranks: on.as_ref().is_some_and(|(which, _)| *which == WhichRanks::All),
        rank_difference_s: on.as_ref().map(|(_, ns)| ns * 1e-9),
        explains,
    }
}

/// `None`: all of them.
fn ranks_of(which: &WhichRanks) -> Option<Vec<(u32, u32)>> {
    match which {
        WhichRanks::Some(ranks) => Some(ranks.clone()),
        WhichRanks::All => None,
    }
}

fn cause_part(of: &Comparison, cause: &Cause) -> CausePart {
    let region = match &cause.spot {
        Some(CodeLocation::Region(name)) => Some(name.clone()),
        _ => None,
    };
    CausePart {
        kind: cause.kind,
        place: cause.spot.as_ref().map(words::spot),
        region,
        ranks: cause.ranks.as_ref().and_then(ranks_of),
        all_ranks: cause.ranks == Some(WhichRanks::All),
        difference_s: cause.ns.map(|ns| ns * 1e-9),
        what: cause.change.as_ref().map(|change| words::what(&change.what)),
        sentence: verdict::cause(of, cause),
    }
}
