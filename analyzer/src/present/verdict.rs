//! The few sentences that matter: a report comes in, true sentences go out, the gravest first.

use crate::metrics::{Behind, ComputeMode, Oversubscription, RankMetrics, Selection};
use crate::timeline::Ending;

use super::Report;
use super::context::{number_list, plural, range_list};
use super::job_end::JobEnd;
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
    sentences.extend(missing_ranks(report));
    let end = JobEnd::new(report);
    sentences.extend(end.first);
    sentences.extend(report.metrics.unfinished.as_ref().and_then(unfinished::short));
    sentences.extend(end.later);
    sentences.extend(crowded(report));
    sentences.extend(super::job::unequal_pinning(report));
    sentences.push(match is_whole(report) {
        true => efficiency(report),
        false => format!("Of what was recorded: {}", efficiency(report)),
    });
    sentences.extend(worst_rank(report));
    sentences
}

/// Whether every rank was recorded up to its end.
fn is_whole(report: &Report) -> bool {
    let cut = |rank: &RankMetrics| matches!(rank.ending, Ending::Damaged | Ending::Stopped);
    report.run.missing.is_empty() && !report.metrics.ranks.iter().any(cut)
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
    // Ranks without a file may be on the host, too.
    let at_least = if report.run.missing.is_empty() { "" } else { "at least " };
    let what = match found.first()? {
        Oversubscription::FewCores { host, ranks, cores } => {
            format!(
                "{at_least}{} share {} of {host}",
                plural(*ranks, "rank"),
                plural(*cores, "core")
            )
        }
        Oversubscription::OneCore { host, core, ranks } => {
            format!("ranks {} share core {core} of {host}", number_list(ranks.iter().copied()))
        }
        Oversubscription::Waited { .. } => return waited(found),
    };
    Some(format!("Oversubscribed: {what}; part of the time is waiting for cores."))
}

/// Of ranks that waited for cores though each can have one.
fn waited(found: &[Oversubscription]) -> Option<String> {
    let waits: Vec<(u32, f64, &Behind)> = found
        .iter()
        .filter_map(|one| match one {
            Oversubscription::Waited { rank, share, behind } => Some((*rank, *share, behind)),
            _ => None,
        })
        .collect();
    let (rank, share, behind) = waits.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = match waits.len() {
        1 => String::new(),
        count => format!(" (so did {} more)", count - 1),
    };
    let share = percent(*share);
    let waited = format!("rank {rank} waited for a core for {share} of the run{others}");
    Some(match behind {
        Behind::Ranks => format!("Oversubscribed: {waited}."),
        Behind::Threads { wanted, cores } => format!(
            "Oversubscribed: the ranks' threads wanted {wanted:.1} cores of {cores} on average, and {waited}."
        ),
        Behind::OtherPrograms => {
            let waited = waited.replacen("rank", "Rank", 1);
            format!(
                "{waited}, though the ranks wanted no more cores than they have: other programs ran on them."
            )
        }
    })
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
    let outside = match worst.ending {
        _ if !whole => "outside its part of the stretch",
        Ending::Damaged | Ending::Stopped => "of which nothing is recorded",
        Ending::LastStamp => "after its last event (it died there, or computed on)",
        Ending::Finalize | Ending::LastSign => "before it began or after it ended",
    };
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
    // Of a run that did not come to its end nobody knows what could be won.
    let complete = is_whole(report) && metrics.unfinished.is_none();
    let hope = match complete && gain >= WORTH_A_WORD {
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
