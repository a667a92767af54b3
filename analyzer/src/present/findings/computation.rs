//! Sentences on efficiency, balance, sleep and lost time.

use crate::diagnosis::finding::{Asleep, Does, Efficiency};
use crate::diagnosis::{BALANCED, Evidence, NOTABLE_SHARE};
use crate::metrics::{ComputeMode, RankMetrics, Selection};
use crate::present::context::plural;
use crate::present::quantity::{percent, seconds};
use crate::timeline::Ending;

/// Load balance below which a run is called unbalanced.
const UNBALANCED: f64 = 0.85;
pub(super) fn efficiency(of: &Efficiency) -> String {
    let text = parts(of);
    match of.complete {
        true => text,
        false => format!("Of what was recorded: {text}"),
    }
}

fn parts(of: &Efficiency) -> String {
    let Some(parallel) = of.parallel else {
        return "The selected stretch has no length, so it has no efficiency.".into();
    };
    let share = percent(parallel);
    let what = match of.mode {
        ComputeMode::Outside => "outside MPI",
        ComputeMode::Blas => "in BLAS",
        ComputeMode::Regions => "in its regions",
    };
    let (Some(balance), Some(longest), Some(shortest)) = (of.load_balance, of.longest, of.shortest)
    else {
        return format!("No rank spent any time {what}: efficiency is 0 %.");
    };
    if of.ranks == 1 {
        return format!("One rank spends {share} of its time {what}.");
    }
    if balance >= BALANCED {
        return format!("{share} efficient, load well balanced.");
    }
    let how = if balance < UNBALANCED { "unbalanced" } else { "somewhat unbalanced" };
    let does = match longest.does {
        Does::Asleep | Does::Unclear => "is outside MPI",
        Does::Computes | Does::InLibrary => "computes",
    };
    format!(
        "{share} efficient, {how}: rank {} {does} longest ({}), rank {} shortest ({}).",
        longest.rank,
        seconds(longest.seconds),
        shortest.rank,
        seconds(shortest.seconds)
    )
}

/// A warning that the chosen `--compute` mode counts only little of the program as computing.
pub(super) fn mode_does_not_fit(mode: ComputeMode, share: f64) -> Option<String> {
    let (asked, what) = match mode {
        ComputeMode::Outside => return None,
        ComputeMode::Blas => ("blas", "BLAS and LAPACK"),
        ComputeMode::Regions => ("regions", "its regions"),
    };
    Some(format!(
        "--compute {asked} does not fit this program: {} of its time is its own code outside MPI and outside {what}, \
         which this choice does not count as computation; record with --compute outside.",
        percent(share)
    ))
}

pub(super) fn asleep(of: &Asleep) -> String {
    let (who, whose) = match of.ranks {
        1 => (format!("rank {} was", of.rank), "it".to_owned()),
        _ if of.all => ("all ranks were".to_owned(), format!("rank {}", of.rank)),
        count => (format!("{} were", plural(count, "rank")), format!("rank {}", of.rank)),
    };
    format!(
        "Time outside MPI counts as computing, but {who} asleep or blocked for {} of it: of {}, {whose} was on a core \
         for {} at most.",
        if of.nearly_all { "nearly all" } else { "part" },
        seconds(of.compute_s),
        seconds(of.on_cpu_s),
    )
}

/// What the rank lost that lost most.
pub(super) fn loses_most(rank: u32, of: &Evidence) -> Option<String> {
    let metrics = of.metrics;
    let elapsed_s = metrics.elapsed_s;
    let worst = metrics.participants().find(|of| of.rank == rank)?;
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
        (worst.recorder_s, "in the recorder".to_owned()),
    ];
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let parts: Vec<String> = parts
        .iter()
        .filter(|(time_s, _)| *time_s >= NOTABLE_SHARE * elapsed_s)
        .map(|(time_s, what)| format!("{} {what}", seconds(*time_s)))
        .collect();
    let details = match parts.is_empty() {
        true => String::new(),
        false => format!(": {}", parts.join(", ")),
    };
    Some(format!("Rank {} loses {}{details}.", worst.rank, seconds(worst.lost_s)))
}

fn counted(compute: ComputeMode) -> &'static str {
    match compute {
        ComputeMode::Outside => "its own",
        ComputeMode::Blas => "BLAS",
        ComputeMode::Regions => "in a region",
    }
}

fn top_calls(rank: &RankMetrics) -> String {
    // Calls of several threads overlap: their times are no parts of the rank's.
    if rank.threads > 1 {
        return String::new();
    }
    let worth = |call: &&(String, f64)| call.1 >= 0.1 * rank.mpi_s;
    let calls: Vec<String> = rank
        .top_calls
        .iter()
        .filter(worth)
        .map(|(function, time_s)| format!("{function} {}", seconds(*time_s)))
        .collect();
    if calls.is_empty() { String::new() } else { format!(" ({})", calls.join(", ")) }
}
