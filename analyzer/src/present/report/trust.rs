//! How far the figures can be trusted: the clocks' bound, the recorder's share, and what is missing.

use crate::diagnosis::cores::share_held_up;
use crate::metrics::RankState;
use crate::present::clock::estimated_offsets;
use crate::present::context::plural;
use crate::present::quantity::{count, nanoseconds, percent};
use crate::present::shown::Report;
use crate::timeline::{Alignment, GlobalTimeline};

/// Share of the ranks' time off the CPU from which it is mentioned.
const NOTABLE_OFF_CPU: f64 = 0.01;
/// Part of that time below which what was certainly not waiting for others is not worth a word.
const HARMLESS: f64 = 0.1;
/// Share of the ranks' time off the CPU that limits the figures more than anything else.
const LIMITING_OFF_CPU: f64 = 0.1;

/// The parts of the line on trust.
pub(in crate::present) fn trust_parts(report: &Report) -> Vec<String> {
    let (metrics, timeline) = (report.metrics, report.timeline);
    let unaligned =
        timeline.ranks.iter().filter(|r| r.clock.alignment == Alignment::Unaligned).count();
    let bound = clock_bound(timeline);
    let mut parts = vec![match unaligned {
        0 => bound,
        count => format!("{bound}, but {} not aligned", plural(count, "rank")),
    }];
    if report.diagnosis.lacks_cores() {
        parts.insert(0, "ranks lacked cores: times are unreliable".to_owned());
    }
    let off_cpu = report.metrics.share_off_cpu().filter(|share| *share >= NOTABLE_OFF_CPU);
    if let Some(share) = off_cpu.filter(|_| !report.diagnosis.lacks_cores()) {
        // A rank that waits for others in a loop loses nothing without a core.
        let harmless =
            share_held_up(&report.diagnosis.of).is_some_and(|held_up| held_up < HARMLESS * share);
        let when = if harmless { ", perhaps only while they waited for others" } else { "" };
        let text = format!("ranks waited for a core for {} of the time{when}", percent(share));
        // What limits the figures most comes first.
        let position = if share >= LIMITING_OFF_CPU && !harmless { 0 } else { parts.len() };
        parts.insert(position, text);
    }
    if let Some(share) = recorder_share(report) {
        parts.push(format!("recorder {}", percent(share)));
    }
    parts.push(match metrics.lost_events {
        0 => "no events lost".to_owned(),
        lost => format!("{} events lost", count(lost)),
    });
    let finalized = metrics.ranks.iter().filter(|rank| rank.state == RankState::Finalized).count();
    parts.push(format!(
        "{finalized} of {} finished",
        plural(report.run.world_size as usize, "rank")
    ));
    let abandoned: u64 = metrics.ranks.iter().map(|rank| rank.abandoned).sum();
    if abandoned > 0 {
        parts.push(plural(abandoned as usize, "abandoned call"));
    }
    let failed: u64 = metrics.ranks.iter().map(|rank| rank.failed).sum();
    if failed > 0 {
        parts.push(plural(failed as usize, "failed call"));
    }
    parts.push("1 run: spread unknown".into());
    parts
}

/// What `--causal` changed; `None` without it.
pub(super) fn causal_line(report: &Report) -> Option<(&'static str, String)> {
    let causal = report.timeline.causal?;
    let text = match causal.early_before {
        0 => "no message arrives before it is sent; no time was changed".to_owned(),
        early => format!(
            "{} of {} messages arrived before they were sent, {} still do; {} receives were moved \
             (by {} at most), and with them times on {}, by {} at most",
            count(early),
            count(causal.messages),
            count(causal.early_after),
            count(causal.moved_receives),
            nanoseconds(causal.largest_jump_ns),
            plural(causal.changed_ranks as usize, "rank"),
            nanoseconds(causal.largest_shift_ns)
        ),
    };
    Some(("CAUSAL", text))
}

/// The bound on clock errors; if drift makes it wider between begin and end, the bound at the ends as well.
fn clock_bound(timeline: &GlobalTimeline) -> String {
    let bound = match (timeline.bound_ns, timeline.ends_bound_ns) {
        (Some(between), Some(ends)) if between > 1.1 * ends => format!(
            "clock within {} at the ends, {} between",
            nanoseconds(ends),
            nanoseconds(between)
        ),
        (Some(bound_ns), _) => format!("clock within {}", nanoseconds(bound_ns)),
        (None, _) => "clock unknown".into(),
    };
    match estimated_offsets(timeline) {
        Some(estimated) => format!("{bound} ({estimated})"),
        None => bound,
    }
}

/// The recorder's share of p·τ.
pub(super) fn recorder_share(report: &Report) -> Option<f64> {
    let metrics = report.metrics;
    let total_s = metrics.elapsed_s * metrics.participants().count() as f64;
    let recorder_s: f64 = metrics.participants().map(|rank| rank.recorder_s).sum();
    (total_s > 0.0).then(|| recorder_s / total_s)
}
