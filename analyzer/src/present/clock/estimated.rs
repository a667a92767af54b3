//! Says where offsets come from that no exchange measured.

use crate::present::quantity::count;
use crate::timeline::{Alignment, GlobalTimeline};

/// From what offsets between hosts were estimated; `None` if none was.
pub(in crate::present) fn estimated_offsets(timeline: &GlobalTimeline) -> Option<String> {
    let is_estimated = timeline.ranks.iter().any(|r| r.clock.alignment == Alignment::Estimated);
    let estimate = timeline.estimate.as_ref().filter(|_| is_estimated)?;
    let of = |number: u64, what: &str| match number {
        0 => None,
        1 => Some(format!("1 {what}")),
        number => Some(format!("{} {what}s", count(number))),
    };
    let sources =
        [of(estimate.messages, "message"), of(estimate.collectives, "collective operation")];
    let sources: Vec<String> = sources.into_iter().flatten().collect();
    Some(format!("offsets between hosts estimated from {}", sources.join(" and ")))
}
