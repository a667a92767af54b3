//! The JSON document of `gammachi why`; `docs/reference/why-json.md` explains its keys.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::causes::{
    CallSite, Causes, Context, DELAYED_BY_UNKNOWN, NO_CONTEXT, PathLabel, State, Tree,
};
use crate::diagnosis::{Diagnosis, Why};
use crate::metrics::OwnTime;
use crate::present::context::{self, Omitted};
use crate::present::document::text;
use crate::present::judged_run::JudgedRun;
use crate::tables::delay_costs::{self, DelayCost};
use crate::trace::symbols::SourceLocation;

use super::labels_document::{self, LabelPart};
use super::length::Length;
use super::stretches_document::{
    IterationsPart, PhasePart, RegionPart, iterations, phases, regions,
};
use super::{places, words};

/// Maximum lengths of lists.
const MAX_WAITS: usize = 200;
const MAX_CAUSES: usize = 1_000;
const MAX_CONTEXTS: usize = 1_000;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    judged: JudgedRun<'a>,
    /// Rate of the reference counter.
    ticks_per_s: f64,
    /// Latest end less earliest begin.
    elapsed_s: f64,
    elapsed_ticks: i64,
    /// Factors of the efficiency.
    tree: Option<Tree>,
    /// Sums of all waiting.
    waiting: WaitingPart,
    /// Waiting by state.
    states: Vec<StatePart>,
    /// Time of each thread without a core, in the whole run.
    off_cpu: Vec<OffCpuPart>,
    /// The 200 longest.
    waits: Vec<WaitPart<'a>>,
    /// The others.
    waits_omitted: Omitted,
    /// The 1,000 costliest.
    causes: Vec<CausePart<'a>>,
    /// The others.
    causes_omitted: Omitted,
    /// The chain of work and waits that determines the elapsed time.
    critical_path: PathPart<'a>,
    /// Iterations of the longest phase; null: none found.
    iterations: Option<IterationsPart>,
    /// The longest first.
    regions: Vec<RegionPart<'a>>,
    /// The longest first.
    phases: Vec<PhasePart>,
    notes: Vec<String>,
}

/// Sums of waiting.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WaitingPart {
    /// All waiting.
    total_s: f64,
    total_ticks: i64,
    /// Beside the total: waits shorter than the clocks' error.
    uncertain_s: f64,
    uncertain_ticks: i64,
    /// Beside the total: waits for a thread of the same rank.
    own_threads_s: f64,
    own_threads_ticks: i64,
    /// Of the total: without a known cause.
    unattributed_s: f64,
    unattributed_ticks: i64,
    /// Of the total: polls, without delaying rank.
    polling_s: f64,
    polling_ticks: i64,
    /// Calls that returned before what they needed had happened, by the clocks.
    violations: u64,
}

/// Waits of a kind.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StatePart {
    /// `late_sender`, `late_sender_wrong_order`, `late_receiver`, `wait_at_barrier`, `wait_at_nxn`, `late_broadcast`,
    /// `early_reduce`, `early_scan`, `one_sided` (fences, posts, completes), `lock`, `late_progress`,
    /// `wait_at_finalize`, `start_skew`, `polling` or `open_at_end`.
    state: &'static str,
    count: u64,
    #[serde(flatten)]
    length: Length,
    /// How much of it the waiting threads can have been ready without a core; null: not known.
    off_cpu_at_most_s: Option<f64>,
    off_cpu_at_most_ticks: Option<i64>,
}

/// Time of a thread without a core, in the whole run; null where it is not known.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OffCpuPart {
    rank: u32,
    thread: u32,
    /// That time; null: not known.
    seconds: Option<f64>,
    ticks: Option<i64>,
}

/// A wait.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WaitPart<'a> {
    /// Its number.
    id: u32,
    /// The rank that waits.
    rank: u32,
    thread: u32,
    /// The rank that it waits for; null: not known.
    delayed_by: Option<u32>,
    delayed_by_thread: Option<u32>,
    /// As in `states`.
    state: &'static str,
    /// When it begins.
    begin_s: f64,
    #[serde(flatten)]
    length: Length,
    /// The waiting MPI function.
    function: Option<String>,
    /// Where it is called.
    place: Option<String>,
    /// Of a place in a library: the place in the program that called it ([which](../causes.md#places)); null:
    /// unknown.
    called_from: Option<PlacePart<'a>>,
    /// Of a place in a library: the place; else null.
    library: Option<PlacePart<'a>>,
    /// The innermost region.
    region: Option<&'a str>,
    /// Number of the iteration, from 0.
    iteration: Option<usize>,
    /// The call of the delaying rank that ends the wait.
    delayed_by_place: Option<String>,
    /// What made the delaying rank late, at most 20.
    caused_by: Vec<ReasonPart>,
}

/// A place in the code.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlacePart<'a> {
    /// Program or library.
    module: &'a str,
    #[serde(flatten)]
    place: &'a SourceLocation,
}

/// What made a delaying rank late: time in a context, or a wait of its own.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ReasonPart {
    /// What took the delaying rank longer, in words.
    context: Option<String>,
    /// `id` of its own wait.
    wait: Option<u32>,
    #[serde(flatten)]
    length: Length,
}

/// A cause of waiting, with what it costs together.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CausePart<'a> {
    /// The rank that makes others wait.
    rank: u32,
    thread: u32,
    /// Its host.
    host: &'a str,
    /// `computation` (also in a BLAS, LAPACK or FFTW call, which `context` names), `asleep` (nearly all of its own
    /// time was sleep), `transfer` or `recorder`.
    kind: &'static str,
    /// What it does, in words.
    context: String,
    /// The call, if it is one.
    place: Option<String>,
    region: Option<&'a str>,
    /// Waiting caused at once.
    direct_s: f64,
    direct_ticks: i64,
    /// Waiting caused along chains.
    indirect_s: f64,
    indirect_ticks: i64,
    #[serde(flatten)]
    length: Length,
}

/// The critical path.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PathPart<'a> {
    #[serde(flatten)]
    length: Length,
    /// How often it changes to another rank.
    switches: u64,
    /// Time before the first begin.
    skew_s: f64,
    ranks: Vec<OnRank>,
    hosts: Vec<OnHost<'a>>,
    /// By what is done, at most 1,000.
    contexts: Vec<OnContext<'a>>,
    /// By place and kind of communicator, at most 1,000; null: the run has more than 20 million calls.
    labels: Option<Vec<LabelPart>>,
}

/// The critical path on a rank.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OnRank {
    rank: u32,
    #[serde(flatten)]
    length: Length,
}

/// The critical path on a host.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OnHost<'a> {
    host: &'a str,
    #[serde(flatten)]
    length: Length,
}

/// What is done on the critical path.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OnContext<'a> {
    /// What is done, in words.
    context: String,
    region: Option<&'a str>,
    #[serde(flatten)]
    length: Length,
    /// Its time on the path less its time on the mean rank.
    imbalance_s: f64,
    imbalance_ticks: i64,
}

/// The document of `gammachi why --json`.
pub fn json<'a>(
    why: &Why<'a>,
    diagnosis: &'a Diagnosis,
    labels: Option<&[PathLabel]>,
) -> Result<String, serde_json::Error> {
    let Why { run, timeline, causes, .. } = *why;
    let s = |ticks: i64| causes.clock.seconds(ticks);
    let (waits, waits_omitted) = waits(why);
    let (costliest, causes_omitted) = costliest_causes(why, MAX_CAUSES);
    let document = Document {
        judged: JudgedRun::new(
            run,
            context::program(run),
            words::missing(why),
            diagnosis,
            timeline,
        ),
        ticks_per_s: causes.clock.ticks_per_s,
        elapsed_s: s(causes.whole.1 - causes.whole.0),
        elapsed_ticks: causes.whole.1 - causes.whole.0,
        tree: why.tree(),
        waiting: waiting(causes),
        states: states(causes),
        off_cpu: off_cpu(why),
        waits,
        waits_omitted,
        causes: costliest,
        causes_omitted,
        critical_path: path(why, labels),
        iterations: iterations(causes),
        regions: regions(why),
        phases: phases(why),
        notes: words::counted_note(causes).into_iter().collect(),
    };
    text(&document)
}

/// Causes of waiting.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Summary<'a> {
    /// Sums of all waiting.
    waiting: WaitingPart,
    /// Waiting by state.
    states: Vec<StatePart>,
    /// The three costliest.
    costliest: Vec<CausePart<'a>>,
    /// The others.
    omitted: Omitted,
    /// The longest first, of the whole run.
    regions: Vec<RegionPart<'a>>,
    /// The longest first, of the whole run.
    phases: Vec<PhasePart>,
    /// What is not known, and why.
    missing: Vec<String>,
}

/// The states and the costliest causes, as in the document of `gammachi why`.
pub(crate) fn summary<'a>(why: &Why<'a>, most: usize) -> Summary<'a> {
    let (costliest, omitted) = costliest_causes(why, most);
    let (waiting, states) = (waiting(why.causes), states(why.causes));
    let (regions, phases) = (regions(why), phases(why));
    Summary { waiting, states, costliest, omitted, regions, phases, missing: words::missing(why) }
}

fn waiting(causes: &Causes) -> WaitingPart {
    let s = |ticks: i64| causes.clock.seconds(ticks);
    let total = causes.waiting();
    let states = causes.states();
    let polling = states.iter().find(|(state, ..)| *state == State::Polling);
    let polling = polling.map_or(0, |(.., ticks)| *ticks);
    WaitingPart {
        total_s: s(total),
        total_ticks: total,
        uncertain_s: s(causes.uncertain),
        uncertain_ticks: causes.uncertain,
        own_threads_s: s(causes.for_own_threads),
        own_threads_ticks: causes.for_own_threads,
        unattributed_s: s(causes.charges.unattributed),
        unattributed_ticks: causes.charges.unattributed,
        polling_s: s(polling),
        polling_ticks: polling,
        violations: causes.violations,
    }
}

fn states(causes: &Causes) -> Vec<StatePart> {
    let mut sums: Vec<(&'static str, u64, i64, Option<i64>)> = Vec::new();
    for (state, count, ticks) in causes.states() {
        let off_cpu = causes.off_cpu.at_most.get(&state).copied().flatten();
        match sums.iter_mut().find(|(key, ..)| *key == state.key()) {
            Some((_, of_count, of_ticks, of_off_cpu)) => {
                (*of_count, *of_ticks) = (*of_count + count, *of_ticks + ticks);
                *of_off_cpu = of_off_cpu.zip(off_cpu).map(|(one, other)| one + other);
            }
            None => sums.push((state.key(), count, ticks, off_cpu)),
        }
    }
    let part = |(state, count, ticks, off_cpu): (&'static str, u64, i64, Option<i64>)| StatePart {
        state,
        count,
        length: Length::new(causes, ticks),
        off_cpu_at_most_s: off_cpu.map(|ticks| causes.clock.seconds(ticks)),
        off_cpu_at_most_ticks: off_cpu,
    };
    sums.into_iter().map(part).collect()
}

fn off_cpu(why: &Why) -> Vec<OffCpuPart> {
    let causes = why.causes;
    let lines = (0u32..).zip(causes.lines.all.iter().zip(&causes.off_cpu.of_line));
    let of_rank = lines.filter(|(number, _)| why.concerns(*number));
    let part = of_rank.map(|(_, (line, ticks))| OffCpuPart {
        rank: line.rank,
        thread: line.thread,
        seconds: ticks.map(|ticks| causes.clock.seconds(ticks)),
        ticks: *ticks,
    });
    part.collect()
}

/// The MPI function of a place, and its call site.
fn place_of(causes: &Causes, place: u32) -> (Option<String>, Option<String>) {
    match causes.contexts.all.get(place as usize).filter(|_| place != NO_CONTEXT) {
        Some(Context::Transfer(site) | Context::InCall(site, _)) => {
            (Some(site.function.clone()), Some(places::call_site(site)))
        }
        _ => (None, None),
    }
}

/// The call site of a place in a library.
fn in_library<'c>(causes: &'c Causes, place: u32) -> Option<&'c CallSite> {
    match causes.contexts.all.get(place as usize).filter(|_| place != NO_CONTEXT)? {
        Context::Transfer(site) => Some(site).filter(|site| site.is_in_library),
        _ => None,
    }
}

fn waits<'a>(why: &Why<'a>) -> (Vec<WaitPart<'a>>, Omitted) {
    let causes = why.causes;
    let s = |ticks: i64| causes.clock.seconds(ticks);
    let concerns = |number: &u32| {
        let wait = &causes.waits[*number as usize];
        why.concerns(wait.line)
            || wait.delayed_by != DELAYED_BY_UNKNOWN && why.concerns(wait.delayed_by)
    };
    let mut numbers = causes.longest(causes.waits.len());
    numbers.retain(concerns);
    let cut = numbers.split_off(numbers.len().min(MAX_WAITS));
    let left_out: i64 = cut.iter().map(|number| causes.ticks_of(*number)).sum();
    let omitted = Omitted { count: cut.len(), seconds: s(left_out) };
    let part = |number: u32| {
        let wait = &causes.waits[number as usize];
        let line = &causes.lines.all[wait.line as usize];
        let delayed_by = causes.lines.all.get(wait.delayed_by as usize);
        let context = causes.wait_contexts[number as usize];
        let (function, place) = place_of(causes, context);
        let in_library = in_library(causes, context);
        let caller = in_library.and_then(|site| site.caller.as_ref());
        let (delays, inner) = causes.delays(number);
        let delays = delays.iter().map(|(context, ticks)| ReasonPart {
            context: Some(words::context(causes.contexts.get(*context))),
            wait: None,
            length: Length::new(causes, *ticks),
        });
        let inner = inner.map(|inner| ReasonPart {
            context: None,
            wait: Some(inner),
            length: Length::new(causes, causes.waits[inner as usize].ticks),
        });
        let mut caused_by: Vec<ReasonPart> = delays.chain(inner).collect();
        caused_by.sort_by_key(|reason| std::cmp::Reverse(reason.length.ticks));
        caused_by.truncate(20);
        WaitPart {
            id: number,
            rank: line.rank,
            thread: line.thread,
            delayed_by: delayed_by.map(|line| line.rank),
            delayed_by_thread: delayed_by.map(|line| line.thread),
            state: wait.state.key(),
            begin_s: s(wait.begin),
            length: Length::new(causes, causes.ticks_of(number)),
            function,
            place,
            called_from: caller.map(|of| PlacePart { module: &of.module, place: &of.place }),
            library: in_library.map(|CallSite { module, place, .. }| PlacePart { module, place }),
            region: causes.regions.of_wait(number).map(|region| region.name.as_str()),
            iteration: causes
                .phases
                .first()
                .and_then(|p| p.iteration_of(line.position, wait.until)),
            delayed_by_place: place_of(causes, causes.delayed_by_contexts[number as usize]).1,
            caused_by,
        }
    };
    (numbers.into_iter().map(part).collect(), omitted)
}

fn costliest_causes<'a>(why: &Why<'a>, most: usize) -> (Vec<CausePart<'a>>, Omitted) {
    let (run, causes) = (why.run, why.causes);
    let s = |ticks: i64| causes.clock.seconds(ticks);
    let mut rows = delay_costs::costliest(why);
    let cut = rows.split_off(rows.len().min(most));
    let left_out: i64 = cut.iter().map(|(_, cost)| cost.total()).sum();
    let omitted = Omitted { count: cut.len(), seconds: s(left_out) };
    let own_times = why.own_times();
    let part = |((number_of_line, number), cost): DelayCost<'a>| {
        let line = &causes.lines.all[number_of_line as usize];
        let found = causes.contexts.get(number);
        let is_asleep = own_times.on_line(causes, number_of_line) == OwnTime::Asleep;
        let (_, place) = place_of(causes, number);
        CausePart {
            rank: line.rank,
            thread: line.thread,
            host: &run.ranks[line.position].file.header.host,
            kind: if is_asleep && found.is_computing() { "asleep" } else { words::kind(found) },
            context: words::context(found),
            place,
            region: region_of(found),
            direct_s: s(cost.direct),
            direct_ticks: cost.direct,
            indirect_s: s(cost.indirect),
            indirect_ticks: cost.indirect,
            length: Length::new(causes, cost.total()),
        }
    };
    (rows.into_iter().map(part).collect(), omitted)
}

fn region_of(context: &Context) -> Option<&str> {
    match context.outer() {
        Context::Region(name) => Some(name),
        _ => None,
    }
}

fn path<'a>(why: &Why<'a>, labels: Option<&[PathLabel]>) -> PathPart<'a> {
    let (run, causes) = (why.run, why.causes);
    let s = |ticks: i64| causes.clock.seconds(ticks);
    let length = |ticks: i64| Length::new(causes, ticks);
    let ranks = delay_costs::on_path_by_rank(why);
    let mut hosts = BTreeMap::<&str, i64>::new();
    for (line, ticks) in &causes.path.on_line {
        let host = &run.ranks[causes.lines.all[*line as usize].position].file.header.host;
        *hosts.entry(host).or_default() += ticks;
    }
    let contexts = causes.imbalance().into_iter().take(MAX_CONTEXTS).map(|row| {
        let found = causes.contexts.get(row.context);
        OnContext {
            context: words::context(found),
            region: region_of(found),
            length: length(row.on_path),
            imbalance_s: s(row.imbalance),
            imbalance_ticks: row.imbalance,
        }
    });
    let (ranks, hosts) = (ranks.into_iter(), hosts.into_iter());
    PathPart {
        length: length(causes.path.ticks()),
        switches: causes.path.switches,
        skew_s: s(causes.path.skew),
        ranks: ranks.map(|(rank, ticks)| OnRank { rank, length: length(ticks) }).collect(),
        hosts: hosts.map(|(host, ticks)| OnHost { host, length: length(ticks) }).collect(),
        contexts: contexts.collect(),
        labels: labels.map(|labels| labels_document::labels(causes, labels)),
    }
}
