//! Proposes the one thing to do next.

use super::basis::{
    keeps_mostly_totals, lacks_cores, serialisation_and_transfer, share_cores,
    waits_for_other_programs,
};
use super::verdict::waiting_in_turn;
use crate::causes::Unknown;
use crate::metrics::{ComputeMode, Selection};
use crate::plain_text::printable;
use crate::present::{Report, causes};
use crate::shell_word::shell_word;
use crate::trace::RankTrace;
use crate::trace::own_program::OwnProgram;

/// Detail level from which call paths are recorded.
const PATHS_LEVEL: u8 = 2;
/// Share of the ranks' time at which waiting is worth looking into.
const NOTABLE_WAITING: f64 = 0.02;
/// Efficiency at or above which waiting is not worth looking into.
const VERY_GOOD_EFFICIENCY: f64 = 0.95;
/// Efficiency at or above which a run is considered good.
const GOOD_EFFICIENCY: f64 = 0.9;

/// Rank counts for a study that needs no more cores than the run (or two): 1, 2, 4 … and its own.
fn rank_counts(ranks: u32) -> String {
    let ranks = ranks.max(2);
    let doubled = std::iter::successors(Some(1u32), |count| count.checked_mul(2));
    let smaller = doubled.take_while(|count| *count < ranks).map(|count| count.to_string());
    smaller.chain([ranks.to_string()]).collect::<Vec<_>>().join(",")
}

/// The library whose callers a recording with call paths would name.
fn library_to_look_behind(report: &Report) -> Option<String> {
    let has_no_paths = |rank: &RankTrace| {
        // The frames of a script are those of its interpreter.
        rank.file.fixed.level < PATHS_LEVEL && !OwnProgram::new(&rank.file.header).is_interpreted
    };
    let library = causes::library_without_caller(&report.why()?)?;
    report.run.ranks.iter().all(has_no_paths).then(|| printable(&library))
}

/// The command that recorded the run, as far as it is known, with call paths.
fn with_paths(report: &Report) -> String {
    let words = report.run.description.iter().flat_map(|description| &description.argv);
    let words: Vec<String> = words.map(|word| shell_word(word)).collect();
    let command = if words.is_empty() { "…".to_owned() } else { words.join(" ") };
    format!("gammachi run --level 2 -- {command}")
}

/// A command and its purpose.
pub(super) fn next_step(report: &Report) -> (String, String) {
    let run = shell_word(&report.run.directory.display().to_string());
    let metrics = report.metrics;
    let step = |command: String, purpose: &str| (command, purpose.to_owned());
    if metrics.unfinished.is_some() {
        return step(format!("gammachi view {run}"), "shows what every rank did last");
    }
    if keeps_mostly_totals(report) {
        return step(
            "gammachi run -- …".into(),
            "without --profile-only keeps single calls, which tell who waits for whom",
        );
    }
    let of_level_0 =
        |causes: &crate::causes::Causes| causes.unknown.contains(&Unknown::NoAttributes);
    if report.causes.is_some_and(of_level_0) {
        return step("gammachi run --level 1 -- …".into(), "tells who waits for whom");
    }
    if metrics.selection != Selection::Whole {
        return step(format!("gammachi view {run}"), "shows this stretch among the others");
    }
    let fewer_ranks = || {
        step(
            "gammachi run -- …".into(),
            "with no more ranks than cores: times of ranks that share cores say little",
        )
    };
    match (lacks_cores(report), share_cores(report) && !waits_for_other_programs(report)) {
        (true, true) => return fewer_ranks(),
        (true, false) => {
            return step(
                "gammachi run -- …".into(),
                "with a free core for every thread: times of ranks that wait for cores say little",
            );
        }
        (false, _) => {}
    }
    let waiting = report.causes.map_or(0.0, |causes| {
        let all = report.run.ranks.len() as f64 * (causes.whole.1 - causes.whole.0) as f64;
        causes.ranks_waited() as f64 / all.max(1.0)
    });
    if let Some(slow) = report.why().and_then(|why| causes::decisive_iteration(&why)) {
        return step(
            format!("gammachi why {run} --iteration {slow}"),
            "shows what made that iteration slow",
        );
    }
    let costs_most = |(serialisation, transfer): (f64, f64)| {
        transfer < GOOD_EFFICIENCY && transfer < serialisation
    };
    if serialisation_and_transfer(report).is_some_and(costs_most) {
        return step(
            format!("gammachi whatif {run}"),
            "tells what depends on latency and what on bandwidth",
        );
    }
    let is_good = metrics.efficiency.is_some_and(|one| one.parallel >= VERY_GOOD_EFFICIENCY);
    if waiting >= NOTABLE_WAITING && !is_good {
        if let Some(library) = library_to_look_behind(report) {
            let purpose = format!("shows which lines of your program call {library}");
            return (with_paths(report), purpose);
        }
        let is_explained = report.why().is_some_and(|why| causes::is_explained(&why));
        return match is_explained || waiting_in_turn(report).is_some() {
            true => step(format!("gammachi whatif {run}"), "predicts what changes would save"),
            false => step(format!("gammachi why {run}"), "follows the waiting back to its causes"),
        };
    }
    if share_cores(report) {
        return fewer_ranks();
    }
    let regions = report.run.region_names();
    match (metrics.efficiency, regions.first()) {
        (Some(efficiency), _) if efficiency.parallel >= GOOD_EFFICIENCY => {
            let counts = rank_counts(report.run.world_size);
            step(
                format!("gammachi sweep --np {counts} -- …"),
                "little is lost: tells how far it scales",
            )
        }
        (_, Some(name)) if metrics.compute == ComputeMode::Outside => step(
            format!("gammachi report {run} --region {}", shell_word(&printable(name))),
            "looks at one region",
        ),
        _ => step(format!("gammachi view {run}"), "shows when the time was lost"),
    }
}
