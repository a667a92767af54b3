//! Writes the sentences at the head of a comparison: whether it is slower, why, and what to beware of.

use std::collections::BTreeSet;

use crate::comparison::basis::Basis;
use crate::comparison::cause::{Cause, CauseKind, WhichRanks};
use crate::comparison::code::{FunctionDifference, NotSampled};
use crate::comparison::counts::{Change, CountKind};
use crate::comparison::doubts::{self, Doubt};
use crate::comparison::place::CodeLocation;
use crate::comparison::sampled::{Sampled, SampledKind};
use crate::comparison::statistics::ASSUMED_SPREAD;
use crate::comparison::subject::Difference;
use crate::comparison::{Comparison, RunRecord};
use crate::present::context::{plural, range_list, shortened};
use crate::present::findings;
use crate::present::quantity::{count, percent, seconds};

use super::words;

/// How many of the counts that vary are named.
const MAX_VARYING: usize = 3;

/// What makes figures of the runs invalid, each side's once.
pub(super) fn doubts(of: &Comparison) -> Vec<String> {
    let worded = |side: &[RunRecord]| -> Vec<String> {
        let of_some = |doubt: Doubt| {
            let sentence = findings::sentence(&doubt.finding, None)?;
            Some(match doubt.runs == side.len() {
                true => sentence,
                false => format!("({} of {} runs) {sentence}", doubt.runs, side.len()),
            })
        };
        doubts::doubts(side).into_iter().filter_map(of_some).collect()
    };
    let said = |when: &str, sentences: &[String]| {
        (!sentences.is_empty()).then(|| format!("{when}: {}", sentences.join(" ")))
    };
    let [before, after] = of.sides().map(worded);
    if before == after {
        return said("Before and after", &before).into_iter().collect();
    }
    said("Before", &before).into_iter().chain(said("After", &after)).collect()
}

/// What makes figures invalid, what differs in the work, how the time changed, and the cause.
pub(super) fn sentences(of: &Comparison) -> Vec<String> {
    let mut sentences = doubts(of);
    if of.relation.differences.contains(&Difference::Parameters) {
        let [before, after] = of.sides().map(|side| words::program(&side[0]));
        sentences.push(format!("The work differs: {before} before, {after} after."));
    }
    sentences.push(time(of));
    if let (Some(_), Some(iteration), true) =
        (of.more_iterations(), &of.iteration, of.relation.same_ranks)
    {
        let is_told = !matches!(of.basis, Basis::LackOfCores { .. });
        sentences.push(match is_told && iteration.is_certain() {
            true => format!("An iteration is {}.", words::change(iteration)),
            false => "No significant difference in time per iteration.".to_owned(),
        });
    }
    if let Some(cause) = &of.cause {
        sentences.push(self::cause(of, cause));
    }
    sentences.extend(of.explaining_function().map(|found| function(of, found)));
    sentences
}

fn time(of: &Comparison) -> String {
    if !of.relation.same_ranks {
        let [before, after] = of.sides().map(|side| side[0].ranks);
        return format!(
            "{before} ranks took {}, {after} ranks {}; the ranks' time is compared by shares.",
            seconds(of.elapsed.before * 1e-9),
            seconds(of.elapsed.after * 1e-9)
        );
    }
    let decisive = of.decisive();
    let by = match of.is_mostly_iterations() {
        true => format!("{} per iteration", seconds(decisive.difference().abs() * 1e-9)),
        false => seconds(decisive.difference().abs() * 1e-9),
    };
    if let Some(why) = lack_of_cores(&of.basis) {
        return format!(
            "Cannot tell whether the time changed: {why}. AFTER is {}.",
            words::change(decisive)
        );
    }
    match (of.is_certain(), decisive.interval) {
        (true, _) => format!("AFTER is {}: {by}.", words::change(decisive)),
        (false, None) => format!(
            "AFTER took {} {}, but with one run per side this may be chance; record at least three per side.",
            by,
            if decisive.difference() > 0.0 { "longer" } else { "less" }
        ),
        (false, Some(_)) => {
            format!("No significant difference: AFTER is {}.", words::change(decisive))
        }
    }
}

/// Why times say little, if ranks lacked cores.
pub(super) fn lack_of_cores(basis: &Basis) -> Option<String> {
    let Basis::LackOfCores { shares } = basis else { return None };
    let [before, after] = shares.map(|share| share.map_or("an unknown share".into(), percent));
    Some(format!("ranks waited for a core for {before} of their time before and for {after} after"))
}

/// A sentence on the cause of the difference.
pub(super) fn cause(of: &Comparison, cause: &Cause) -> String {
    match (cause.kind, &cause.change) {
        (_, Some(change)) => of_count(cause, change),
        (CauseKind::Machine, _) => machine(of),
        _ => of_time(of, cause),
    }
}

fn of_count(cause: &Cause, change: &Change) -> String {
    let Change { what, before, after } = change;
    let place = match &cause.spot {
        Some(spot @ CodeLocation::Inside(_)) => format!(" ({})", words::spot(spot)),
        _ => String::new(),
    };
    match what {
        CountKind::Partners { reordered: true } => {
            "The communication pattern is the same, but between other pairs of ranks.".to_owned()
        }
        CountKind::Partners { .. } => format!(
            "Ranks exchange messages with other partners: {} pairs before, {} after.",
            count(*before),
            count(*after)
        ),
        _ => {
            let more = if after > before { "more" } else { "fewer" };
            let what = words::what(what);
            let (before, after) = (count(*before), count(*after));
            format!("There are {more} {what}{place}: {before} before, {after} after.")
        }
    }
}

fn machine(of: &Comparison) -> String {
    let factor = of.drift.unwrap_or(1.0);
    let word = if factor > 1.0 { "slower" } else { "faster" };
    let size = percent((factor - 1.0).abs());
    let same = !of.relation.differences.contains(&Difference::Build);
    let build = if same { " and the build" } else { "" };
    format!(
        "All computation is {size} {word} by the same factor, and every count{build} is the same: the machine may \
         have changed, not the program."
    )
}

fn of_time(of: &Comparison, cause: &Cause) -> String {
    let ns = cause.ns.unwrap_or(0.0);
    let longer = if ns > 0.0 { "longer" } else { "less" };
    let (iterations, each) = per_iteration(of);
    let by = seconds((ns / iterations).abs() * 1e-9);
    let place = cause.spot.as_ref().map(words::at).unwrap_or_default();
    let who = cause.ranks.as_ref().map_or_else(|| "The mean rank".to_owned(), which);
    let who = capitalised(&who);
    let verb = |one: &'static str, all: &'static str| match who.starts_with("Rank ")
        || cause.ranks.is_none()
    {
        true => one,
        false => all,
    };
    match cause.kind {
        CauseKind::Computing => {
            format!("{who} {} {by} {longer}{each} {place}.", verb("computes", "compute"))
        }
        CauseKind::Waiting => {
            format!("{who} {} {by} {longer}{each} {place}.", verb("waits", "wait"))
        }
        CauseKind::Transfer => {
            format!("{who} {} {by} {longer}{each} {place}, without waiting.", verb("is", "are"))
        }
        CauseKind::Recorder => format!("The recorder takes {by} {longer} per rank."),
        CauseKind::StartAndEnd => {
            let more = if ns > 0.0 { "more" } else { "less" };
            format!("Start and end skew changed: {by} {more} per rank.")
        }
        _ => {
            format!("{who} {} {by} {longer}{each} in calls kept only as totals.", verb("is", "are"))
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// `rank 2`.
pub(super) fn which(ranks: &WhichRanks) -> String {
    match ranks {
        WhichRanks::All => "all ranks".to_owned(),
        WhichRanks::Some(ranks) => match ranks[..] {
            [(first, last)] if first == last => format!("rank {first}"),
            _ => format!("ranks {}", range_list(join_consecutive(ranks))),
        },
    }
}

/// The function that explains the difference.
fn function(of: &Comparison, function: &FunctionDifference) -> String {
    let (over, each) = per_iteration(of);
    let name = words::function(&function.shown);
    let (ns, on) = match &function.on {
        Some((WhichRanks::All, ns)) => (*ns, " on each rank".to_owned()),
        Some((ranks, ns)) => (*ns, format!(" on {}", which(ranks))),
        None => (function.estimate.difference(), ", all ranks together".to_owned()),
    };
    let longer = if ns > 0.0 { "longer" } else { "less" };
    format!("{name} takes {} {longer}{each}{on}.", seconds((ns / over).abs() * 1e-9))
}

/// What is said where no function differs with certainty: how large a difference would show.
pub(super) fn no_function(of: &Comparison) -> Option<String> {
    if of.code.functions.is_empty() {
        return None;
    }
    let (over, each) = per_iteration(of);
    Some(match of.code.detectable {
        Some((at, _)) if has_no_name(&of.code.functions[at].shown) => format!(
            "cannot tell which functions changed: most time is in code of {} without names; it is stripped, or was \
             built anew (`gammachi collect RUN --symbols` keeps names before)",
            of.code.functions[at].shown.module
        ),
        None => "cannot tell which functions changed: record several runs of each side".to_owned(),
        Some((at, ns)) => format!(
            "no significant difference; in {}, one of less than {}{each} over all ranks would not show",
            words::sampled(&of.code.functions[at].shown),
            seconds(ns / over * 1e-9)
        ),
    })
}

/// Whether it is code of a file for which the names of functions are not known.
fn has_no_name(of: &Sampled) -> bool {
    of.kind == SampledKind::Function && of.function.is_none()
}

/// Why functions are not compared.
fn not_sampled(of: &NotSampled) -> String {
    match of {
        NotSampled::Runs { before, count, of } => {
            let side = if *before { "before" } else { "after" };
            let which = match (count, of) {
                (1, 1) => format!("the run {side} has"),
                (count, of) if count == of => format!("the runs {side} have"),
                _ => format!("{count} of {of} runs {side} have"),
            };
            format!("Functions are not compared: {which} no samples (record with --sample).")
        }
        NotSampled::Ranks { run, sampled, of } => {
            format!("Functions are not compared: in {run}, {sampled} of {of} ranks were sampled.")
        }
        NotSampled::OtherRanks => {
            "Functions are not compared, because the rank counts differ.".to_owned()
        }
    }
}

/// Joins consecutive groups of ranks.
fn join_consecutive(ranks: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for (first, last) in ranks {
        match all.last_mut() {
            Some((_, end)) if *end + 1 == *first => *end = *last,
            _ => all.push((*first, *last)),
        }
    }
    all
}

/// The number of iterations by which times are divided, and the words that say so.
pub(super) fn per_iteration(of: &Comparison) -> (f64, &'static str) {
    let counts = || of.before.iter().chain(&of.after).flat_map(|record| &record.iterations);
    let first = counts().next().map_or(0, |of| of.count);
    match of.is_mostly_iterations() && first > 0 && counts().all(|of| of.count == first) {
        true => (first as f64, " per iteration"),
        false => (1.0, ""),
    }
}

/// What a reader should beware of.
pub(super) fn notes(of: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let has = |what: Difference| of.relation.differences.contains(&what);
    if has(Difference::Machine) {
        let [before, after] = of.sides().map(|side| words::machine(&side[0]));
        notes.push(format!(
            "The machines differ (before: {before}; after: {after}): times depend on the machine as well as on the \
             program. Counts can be compared."
        ));
    }
    let hosts = |side: &[RunRecord]| -> BTreeSet<String> {
        side.iter().flat_map(|record| record.machine.hosts.iter().cloned()).collect()
    };
    let [before, after] = of.sides().map(hosts);
    if !has(Difference::Machine)
        && before.is_disjoint(&after)
        && !before.is_empty()
        && !after.is_empty()
    {
        let names =
            |of: &BTreeSet<String>| shortened(&of.iter().cloned().collect::<Vec<_>>().join(", "));
        notes.push(format!(
            "The runs used different hosts ({} before, {} after); their cores and counters are alike, so equal \
             speed is assumed.",
            names(&before),
            names(&after)
        ));
    }
    if has(Difference::Recording) {
        notes.push("The runs differ in recording options (--level, --compute).".to_owned());
    }
    if has(Difference::Mpi) {
        let [before, after] = of.sides().map(|side| &side[0].mpi);
        if before != after {
            notes.push(format!("The MPI library differs: {before} before, {after} after."));
        }
    }
    let decisive = of.decisive();
    if of.relation.same_ranks && decisive.is_assumed && decisive.interval.is_some() {
        notes.push(format!(
            "One run per side: run-to-run variation was not measured; {} is assumed. Record at least three per side.",
            percent(ASSUMED_SPREAD)
        ));
    }
    if of.relation.same_ranks
        && of.basis == Basis::Scatter
        && !decisive.is_certain()
        && !decisive.is_assumed
    {
        let wanted = match decisive.runs_for(0.01) {
            Some(runs) if runs <= decisive.runs => None,
            Some(runs) => Some(format!("{} per side", plural(runs, "run"))),
            None => Some("a quieter machine".to_owned()),
        };
        let spread = percent(decisive.spread);
        notes.extend(wanted.map(|wanted| {
            format!("Runs vary by {spread}; detecting a difference of 1 % would take {wanted}.")
        }));
    }
    if lack_of_cores(&of.basis).is_some() {
        notes.push(
            "Run with a core for each rank and nothing else on the machine. Counts can be compared regardless."
                .to_owned(),
        );
    }
    if of.relation.same_ranks && !of.changes.is_empty() && of.before.len().min(of.after.len()) == 1
    {
        notes.push(
            "One side has a single run: its counts are assumed not to vary from run to run."
                .to_owned(),
        );
    }
    notes.extend(of.code.missing.as_ref().map(not_sampled));
    if of.code.at_ticks {
        notes.push(
            "Some runs were sampled at the kernel's ticks: functions that run just before or after a tick are counted \
             too often or too rarely."
                .to_owned(),
        );
    }
    let assumed = of.code.functions.iter().any(|of| of.is_significant && of.estimate.is_assumed);
    if assumed && decisive.interval.is_none() {
        notes.push(format!(
            "One run per side: functions are taken to vary by {} from run to run, and by the chance of sampling.",
            percent(ASSUMED_SPREAD)
        ));
    }
    if !of.varying.is_empty() {
        let named: Vec<String> = of.varying.iter().take(MAX_VARYING).map(words::what).collect();
        let more = match of.varying.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        notes.push(format!(
            "Not compared, because they vary between runs of one side: {}{more}.",
            named.join(", ")
        ));
    }
    if of.before.iter().chain(&of.after).any(|record| record.simulated) {
        notes.push(
            "Some of these runs are simulated (`gammachi whatif --out`): their times were not measured."
                .to_owned(),
        );
    }
    notes
}
