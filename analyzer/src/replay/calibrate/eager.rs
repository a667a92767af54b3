//! The eager limits of a run, from its blocking sends.

use trace_format::meaning::SendMode;

use crate::replay::graph::{Graph, Message, OpNumber, Recorded};
use crate::replay::network::Placement;
use crate::trace::RankTrace;

use super::sizes::{LARGE, size_class};

/// Largest standard sends that do not wait for their receivers, within hosts and between.
#[derive(Debug, Clone, Copy)]
pub(super) struct EagerLimits {
    pub bytes: [f64; 2],
    /// Whether several sends shortly below it did not wait, and several shortly above it did.
    /// Otherwise the limit is an assumption.
    pub shown: [bool; 2],
}

/// What a send shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// It returned before the receive was posted.
    DidNotWait,
    /// It lasted until the receive was posted.
    Waited,
    /// It lasted as long as the receive: it waited, or its copies took most of the time.
    LastedAsLong,
}

/// The limit that the fewest blocking sends contradict.
pub(super) fn eager_limits(graph: &Graph, placement: &Placement) -> EagerLimits {
    // By hop, with the size.
    let mut seen: [Vec<(f64, Shown)>; 2] = Default::default();
    for (op, recorded) in graph.recorded.iter().enumerate() {
        let links = graph.links(op as OpNumber);
        for link in links.iter().filter(|link| link.kind.completes_send()) {
            let message = &graph.messages[link.of as usize];
            // It did nothing else.
            let is_alone = links.len() == 1;
            if message.sending == SendMode::Standard
                && let Some(shown) = shown(graph, message, recorded, is_alone)
            {
                seen[placement.hop(message.lines) as usize].push((message.bytes, shown));
            }
        }
    }
    let known = known_eager_limits(graph);
    let mut limits = EagerLimits { bytes: known, shown: [false; 2] };
    for (hop, mut seen) in seen.into_iter().enumerate() {
        seen.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        (limits.bytes[hop], limits.shown[hop]) = limit(&seen, known[hop]);
    }
    limits
}

/// The limit that sends, ascending by size, show, and whether they show it.
fn limit(seen: &[(f64, Shown)], known: f64) -> (f64, bool) {
    let did_not_wait = |(_, shown): &&(f64, Shown)| *shown == Shown::DidNotWait;
    let smallest = |of: Shown| seen.iter().find(|(_, shown)| *shown == of).map(|(bytes, _)| *bytes);
    if !seen.iter().any(|send| did_not_wait(&send)) {
        let below = |size: Option<f64>| size.map_or(f64::INFINITY, |bytes| bytes - 1.0);
        let assumed = match known.is_finite() {
            true => known,
            false => below(smallest(Shown::LastedAsLong)),
        };
        return (assumed.min(below(smallest(Shown::Waited))), false);
    }
    // A limit below the smallest size is contradicted by every send that did not wait.
    let mut wrong = seen.iter().filter(did_not_wait).count();
    let (mut best, mut limit) = (wrong, -1.0);
    for of_size in seen.chunk_by(|a, b| a.0 == b.0) {
        let not = of_size.iter().filter(did_not_wait).count();
        wrong = wrong + (of_size.len() - not) - not;
        if wrong <= best {
            (best, limit) = (wrong, of_size[0].0);
        }
    }
    match seen.last() {
        Some((largest, _)) if limit < *largest => within_its_bounds(seen, limit, known),
        Some((largest, _)) => (known.max(*largest), false),
        None => (known, false),
    }
}

/// The limit, given the size of the largest sends that did not wait, and whether it is shown.
fn within_its_bounds(seen: &[(f64, Shown)], largest: f64, known: f64) -> (f64, bool) {
    // Sends that lasted as long as their receives may have copied all the time.
    let waited = || seen.iter().filter(|(bytes, of)| *bytes > largest && *of == Shown::Waited);
    let did_not_wait = seen.iter().filter(|(_, of)| *of == Shown::DidNotWait);
    let below = did_not_wait.filter(|(bytes, _)| (largest / NEAR..=largest).contains(bytes));
    let above = waited().filter(|(bytes, _)| *bytes <= largest * NEAR);
    if below.count() >= MIN_SHOWN && above.count() >= MIN_SHOWN {
        return (largest, true);
    }
    // It may be any size up to the first that waited.
    let first_waiting = waited().next().map_or(largest, |(bytes, _)| *bytes);
    (if (largest..first_waiting).contains(&known) { known } else { largest }, false)
}

/// Sizes within this factor of the limit show it: where messages grow by powers of two, those on
/// either side.
const NEAR: f64 = 2.0;

/// Fewer sends may have waited, or not, because a rank lost its core.
const MIN_SHOWN: usize = 3;

fn shown(graph: &Graph, message: &Message, send: &Recorded, is_alone: bool) -> Option<Shown> {
    let posted = graph.recorded[message.receive as usize].entered_s;
    match () {
        () if send.left_s < posted => Some(Shown::DidNotWait),
        () if !is_alone => None,
        // It lasted until shortly after the receive was posted, and most of it was before that.
        () if posted - send.entered_s > 4.0 * (send.left_s - posted) => Some(Shown::Waited),
        () => lasts_as_long(graph, message, send).then_some(Shown::LastedAsLong),
    }
}

/// Whether a blocking send of many bytes returned only shortly before the receive that waited for
/// it.
fn lasts_as_long(graph: &Graph, message: &Message, send: &Recorded) -> bool {
    let receive = graph.recorded[message.receive as usize];
    let whole = receive.left_s - send.entered_s;
    size_class(message.bytes) >= LARGE
        && receive.entered_s <= send.entered_s
        && send.left_s <= receive.left_s
        && send.left_s - send.entered_s > MIN_LAST * whole
}

/// A send that lasts longer than this share of the transfer waited for its end.
const MIN_LAST: f64 = 0.9;

/// Limits if no send shows them: the defaults of Open MPI (btl_vader_eager_limit,
/// btl_sm_eager_limit; btl_tcp_eager_limit). Those of other libraries depend on the transport
/// layers below them.
fn known_eager_limits(graph: &Graph) -> [f64; 2] {
    let is_open_mpi = |trace: &RankTrace| trace.file.header.mpi_family == "openmpi";
    match graph.run.ranks.first().is_some_and(is_open_mpi) {
        true => [4_096.0, 65_536.0],
        false => [f64::INFINITY; 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_needs_sends_that_did_not_wait() {
        let of = |sizes: &[f64], shown: Shown| -> Vec<(f64, Shown)> {
            sizes.iter().map(|bytes| (*bytes, shown)).collect()
        };
        let large = [8e3, 6e4, 1e6];
        // Their copies may take as long: the library's default, or less than the smallest.
        assert_eq!(limit(&of(&large, Shown::LastedAsLong), 65_536.0), (65_536.0, false));
        assert_eq!(limit(&of(&large, Shown::LastedAsLong), f64::INFINITY), (7_999.0, false));
        // They waited.
        assert_eq!(limit(&of(&large, Shown::Waited), 65_536.0), (7_999.0, false));
        assert_eq!(limit(&of(&large, Shown::DidNotWait), 65_536.0), (1e6, false));
        let near = [of(&[8.0, 8e3, 8e3, 8e3], Shown::DidNotWait), of(&[16e3; 3], Shown::Waited)];
        assert_eq!(limit(&near.concat(), 65_536.0), (8e3, true));
        let copies =
            [of(&[8.0, 8e3], Shown::DidNotWait), of(&[6e4, 1e6], Shown::LastedAsLong)].concat();
        assert_eq!(limit(&copies, 65_536.0), (8e3, false));
        assert_eq!(limit(&[], 4_096.0), (4_096.0, false));
    }

    #[test]
    fn limit_is_unknown_where_no_sizes_near_it_show_it() {
        let of = |bytes: f64, count: usize, shown: Shown| vec![(bytes, shown); count];
        // A ping-pong of 8 B to 1 MB on a busy machine.
        let waiting = [(16_384.0, 1), (65_536.0, 6), (524_288.0, 10), (1_048_576.0, 12)];
        let waiting = waiting.map(|(bytes, count)| of(bytes, count, Shown::Waited)).concat();
        let ping_pong = [of(8.0, 1, Shown::DidNotWait), waiting].concat();
        // The library's default, if the run allows it.
        assert_eq!(limit(&ping_pong, 4_096.0), (4_096.0, false));
        assert_eq!(limit(&ping_pong, 65_536.0), (8.0, false));
        assert_eq!(limit(&ping_pong, f64::INFINITY), (8.0, false));
        // One send may have lost its core.
        let once = [of(512.0, 5, Shown::DidNotWait), of(1_024.0, 1, Shown::Waited)].concat();
        assert_eq!(limit(&once, f64::INFINITY), (512.0, false));
    }
}
