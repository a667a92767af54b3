//! The few sentences that matter: a report comes in, true sentences go out, the gravest first.

use std::cmp::Ordering::Equal;

use crate::metrics::{ComputeMode, Oversubscription, RankMetrics, RankState, Selection};
use crate::timeline::Ending;

use super::Report;
use super::context::{number_list, plural, range_list};
use super::quantity::{percent, seconds};
use super::unfinished;

/// Load balance from which on a run is called well balanced.
const BALANCED: f64 = 0.95;
/// Load balance below which a run is called unbalanced.
const UNBALANCED: f64 = 0.85;
/// Share of τ below which a part of the overhead is not worth a word.
const WORTH_A_WORD: f64 = 0.01;

/// The sentences of a report.
pub(super) fn sentences(report: &Report) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(report.metrics.unfinished.as_ref().and_then(unfinished::short));
    sentences.extend(dead_ranks(report));
    sentences.extend(exit_code(report));
    sentences.extend(missing_ranks(report));
    sentences.extend(crowded(report));
    sentences.extend(super::job::unequal_pinning(report));
    sentences.push(efficiency(report));
    sentences.extend(worst_rank(report));
    sentences
}

fn dead_ranks(report: &Report) -> Option<String> {
    let unfinished = |rank: &&RankMetrics| {
        let damaged = matches!(rank.ending, Ending::Damaged | Ending::Stopped);
        rank.state != RankState::Finalized && !damaged
    };
    let dead: Vec<&RankMetrics> = report.metrics.ranks.iter().filter(unfinished).collect();
    let first = dead.first()?;
    let who = match dead.len() {
        1 => format!("Rank {}", first.rank),
        count => {
            format!("{} ({})", plural(count, "rank"), number_list(dead.iter().map(|r| r.rank)))
        }
    };
    let where_it_stands = match dead.len() {
        1 => position(first),
        _ => positions(&dead),
    };
    Some(format!(
        "{who} never returned from MPI_Finalize (died, or still running): {where_it_stands}."
    ))
}

/// Where a rank that never came to its end stands.
fn position(rank: &RankMetrics) -> String {
    match &rank.state {
        RankState::Unfinished { inside: Some((function, since_s)), .. } => {
            format!("still inside {function} since {}", seconds(*since_s))
        }
        RankState::Unfinished { last_call: Some(call), .. } => {
            format!("outside MPI, after {call} at {}", seconds(rank.end_s))
        }
        _ => "it made no call".into(),
    }
}

/// Where several such ranks stand: the ones outside MPI are the likelier cause.
fn positions(dead: &[&RankMetrics]) -> String {
    let since = |rank: &&&RankMetrics| match &rank.state {
        RankState::Unfinished { inside: Some((_, since_s)), .. } => Some(*since_s),
        _ => None,
    };
    let (inside, outside): (Vec<_>, Vec<_>) = dead.iter().partition(|rank| since(rank).is_some());
    let mut parts = Vec::new();
    let ends = |a: &&&&RankMetrics, b: &&&&RankMetrics| a.end_s.total_cmp(&b.end_s);
    if let Some(first) = outside.iter().min_by(ends) {
        let others = match outside.len() {
            1 => String::new(),
            count => format!(", the first of {count} that are"),
        };
        parts.push(format!("rank {} is {}{others}", first.rank, position(first)));
    }
    let longest = inside.iter().min_by(|a, b| since(a).partial_cmp(&since(b)).unwrap_or(Equal));
    if let Some(longest) = longest {
        let others = match inside.len() {
            1 => String::new(),
            count => format!(", the longest of {count} that are inside MPI"),
        };
        parts.push(format!("rank {} is {}{others}", longest.rank, position(longest)));
    }
    parts.join("; ")
}

fn exit_code(report: &Report) -> Option<String> {
    let exit = report.run.description.as_ref()?.exit.filter(|exit| exit.code != 0)?;
    Some(match exit.signal {
        Some(signal) => format!("The launcher was killed by signal {signal}."),
        None => format!("The launcher ended with exit code {}.", exit.code),
    })
}

fn missing_ranks(report: &Report) -> Option<String> {
    let missing = report.run.missing_count();
    let ranges = report.run.missing.iter().map(|range| (*range.start(), *range.end()));
    (missing > 0).then(|| {
        format!(
            "{} of {} left no readable file ({}); all figures are those of the others.",
            missing,
            plural(report.run.world_size as usize, "rank"),
            range_list(ranges)
        )
    })
}

fn crowded(report: &Report) -> Option<String> {
    let found = &report.metrics.oversubscription;
    let what = match found.first()? {
        Oversubscription::FewCores { host, ranks, cores } => {
            format!("{} share {} of {host}", plural(*ranks, "rank"), plural(*cores, "core"))
        }
        Oversubscription::OneCore { host, core, ranks } => {
            format!("ranks {} share core {core} of {host}", number_list(ranks.iter().copied()))
        }
        Oversubscription::Waited { .. } => {
            let mut waits: Vec<(u32, f64)> = Vec::new();
            for one in found {
                if let Oversubscription::Waited { rank, share } = one {
                    waits.push((*rank, *share));
                }
            }
            let worst = waits.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            let others = match waits.len() {
                1 => String::new(),
                count => format!(" (so did {} more)", count - 1),
            };
            let share = percent(worst.1);
            format!("rank {} waited for a core for {share} of the run{others}", worst.0)
        }
    };
    Some(format!("Oversubscribed: {what}; part of the time is waiting for cores."))
}

fn efficiency(report: &Report) -> String {
    let metrics = report.metrics;
    let Some(efficiency) = metrics.efficiency else {
        return "The stretch has no length: there is no efficiency to tell.".into();
    };
    let share = percent(efficiency.parallel);
    let participants: Vec<_> = metrics.participants().collect();
    let what = match metrics.compute {
        ComputeMode::Outside => "outside MPI",
        ComputeMode::Blas => "in BLAS",
        ComputeMode::Regions => "in its regions",
    };
    let by_compute = |a: &&&RankMetrics, b: &&&RankMetrics| a.compute_s.total_cmp(&b.compute_s);
    let (most, least) =
        (participants.iter().max_by(by_compute), participants.iter().min_by(by_compute));
    let (Some(balance), Some(most), Some(least)) = (efficiency.load_balance, most, least) else {
        return format!("No rank spent any time {what}: efficiency is 0 %.");
    };
    if participants.len() == 1 {
        return format!("One rank spends {share} of its time {what}.");
    }
    if balance >= BALANCED {
        return format!("{share} efficient, well balanced.");
    }
    let how = if balance < UNBALANCED { "unbalanced" } else { "somewhat unbalanced" };
    format!(
        "{share} efficient, {how}: rank {} computes most ({}), rank {} least ({}).",
        most.rank,
        seconds(most.compute_s),
        least.rank,
        seconds(least.compute_s)
    )
}

fn worst_rank(report: &Report) -> Option<String> {
    let metrics = report.metrics;
    let elapsed_s = metrics.elapsed_s;
    let worst = metrics.participants().max_by(|a, b| a.overhead_s.total_cmp(&b.overhead_s))?;
    if metrics.efficiency.is_none() || worst.overhead_s < WORTH_A_WORD * elapsed_s {
        return None;
    }
    let whole = matches!(metrics.selection, Selection::Whole);
    let outside =
        if whole { "before it began or after it ended" } else { "outside its part of the stretch" };
    let mut parts = [
        (worst.mpi_s, format!("in MPI{}", top_calls(worst))),
        (worst.other_s, format!("in code that is neither MPI nor {}", counted(metrics.compute))),
        (worst.outside_s, outside.to_owned()),
        (worst.tool_s, "in the recorder".to_owned()),
    ];
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let parts: Vec<String> = parts
        .iter()
        .filter(|(time_s, _)| *time_s >= WORTH_A_WORD * elapsed_s)
        .map(|(time_s, what)| format!("{} {what}", seconds(*time_s)))
        .collect();
    let whose = if worst.threads > 1 { " (its first thread:" } else { ":" };
    let close = if worst.threads > 1 { ")" } else { "" };
    let details = match parts.is_empty() {
        true => String::new(),
        false => format!("{whose} {}{close}", parts.join(", ")),
    };
    let bound = metrics.participants().map(|r| r.elapsed_s - r.mpi_s).fold(0.0, f64::max);
    let gain = 1.0 - bound / elapsed_s;
    let hope = match gain >= WORTH_A_WORD {
        true => format!("; hiding all communication could win at most {}", percent(gain)),
        false => String::new(),
    };
    Some(format!("Rank {} loses {}{details}{hope}.", worst.rank, seconds(worst.overhead_s)))
}

fn counted(compute: ComputeMode) -> &'static str {
    match compute {
        ComputeMode::Outside => "its own",
        ComputeMode::Blas => "BLAS",
        ComputeMode::Regions => "in a region",
    }
}

fn top_calls(rank: &RankMetrics) -> String {
    let worth = |call: &&(String, f64)| call.1 >= 0.1 * rank.mpi_s;
    let calls: Vec<String> = rank
        .top_calls
        .iter()
        .filter(worth)
        .map(|(function, time_s)| format!("{function} {}", seconds(*time_s)))
        .collect();
    if calls.is_empty() { String::new() } else { format!(" ({})", calls.join(", ")) }
}
