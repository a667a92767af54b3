//! Sentences on transfer.

use crate::causes::CallSite;
use crate::diagnosis::finding::{NoOverlap, Placement, Saves};
use crate::present::causes::{places, words};
use crate::present::context::range_list;
use crate::present::quantity::{count, percent, seconds, significant};

/// Part of a finding's time at a place from which others are not mentioned.
const NEARLY_ALL: f64 = 0.95;
/// Most hosts whose ranks a sentence lists.
const MAX_HOSTS: usize = 4;

pub(super) fn transfer(share: f64, at: Option<&(CallSite, f64)>) -> String {
    let place = at.map_or(String::new(), |(site, part)| {
        format!(", {} of that in {}", percent(*part), places::call_site(site))
    });
    format!("Transfer takes {} of the ranks' time{place}.", percent(share))
}

pub(super) fn small_messages(
    (calls, mean_bytes): (u64, f64),
    share: f64,
    at: Option<&(CallSite, f64)>,
) -> String {
    let place = at.map_or(String::new(), |(site, part)| {
        format!(", {} of it in {}", percent(*part), places::call_site(site))
    });
    format!(
        "Many small messages: {} sends and receives averaging {} B take {} of the ranks' time (waiting excluded){place}.",
        count(calls),
        significant(mean_bytes, 2),
        percent(share)
    )
}

pub(super) fn no_overlap(found: &NoOverlap) -> String {
    let (place, part) = &found.place;
    format!(
        "Computation {}{} probably hides no transfers: {} of {} calls after it take {} on average. It could hide {} of \
         that, {} of the ranks' time.",
        words::where_phrase(place),
        if *part < NEARLY_ALL { " and elsewhere" } else { "" },
        count(found.calls),
        count(found.of),
        seconds(found.mean_wait_s),
        seconds(found.seconds),
        percent(found.share)
    )
}

pub(super) fn placement(found: &Placement) -> String {
    let groups: Vec<String> =
        found.hosts.iter().map(|ranks| range_list(ranks.iter().copied())).collect();
    let other = match groups.len() {
        ..=MAX_HOSTS => format!("ranks {} shared a host each", groups.join(" | ")),
        _ => "other ranks shared hosts".to_owned(),
    };
    format!(
        "{} of the message bytes go between hosts, {} if {other}: replayed, that saves {}.",
        percent(found.between / found.bytes),
        percent(found.between_then / found.bytes),
        saved(&found.saves)
    )
}

pub(super) fn overlap(saves: &Saves) -> String {
    let saved = match saves.lo_s < saves.hi_s {
        true => saved(saves),
        // No more can be hidden than is computed.
        false => format!(
            "{} ({}): no more can be overlapped",
            seconds(saves.seconds),
            percent(saves.share)
        ),
    };
    format!("Overlapping transfers with computation would save at most {saved}.")
}

/// Seconds and share, with their interval.
fn saved(saves: &Saves) -> String {
    let interval = match saves.lo_s > 0.0 {
        true => format!("90 % interval {} to {}", seconds(saves.lo_s), seconds(saves.hi_s)),
        false => format!("perhaps nothing, in nine of ten cases at most {}", seconds(saves.hi_s)),
    };
    format!("{} ({}; {interval})", seconds(saves.seconds), percent(saves.share))
}
