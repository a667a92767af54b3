//! Determines the network of a run from the durations of its calls, in the few parameters of the
//! model. Nothing is corrected call by call.

mod collectives;
mod eager;
mod extremes;
mod prices;
mod scale;
mod sizes;

use super::forward::Replayed;
use super::graph::{Graph, LinkKind, Message, OpNumber};
use super::network::{Costs, Network, Placement};

use collectives::{
    CollectiveRows, Part, choose_algorithms, collective_prices, collective_rows, parts,
};
use eager::eager_limits;
use extremes::extremes;
use prices::prices;
#[cfg(test)]
pub(super) use scale::Search;
use scale::{MAX_FACTOR, scale};
use sizes::{BySize, LARGE, Row, SMALL};
/// The network of a run, and how it was determined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    pub network: Network,
    /// The factor by which all its times were finally multiplied, so that the replay takes as long
    /// as the run.
    pub scale: f64,
    /// Relative error: replayed time / recorded time − 1.
    pub error: f64,
    /// The data that it was determined from.
    pub samples: Samples,
    /// Networks that the run does not exclude, before the factor.
    pub(super) extremes: [Network; 3],
}

/// Numbers of calls from which the parameters were determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Samples {
    /// Calls that began a transfer, or found one complete: overhead.
    pub overheads: u64,
    /// Messages that a receiver waited for, within hosts and between: latency and bandwidth.
    pub transfers: [u64; 2],
    /// Parts in collective operations.
    pub collectives: u64,
    /// Whether these messages, or if there are none, those of collective operations, had
    /// sufficiently different sizes to separate latency and bandwidth; within and between hosts.
    pub told_apart: [bool; 2],
    /// Whether sends show the eager limits, within and between hosts.
    pub eager_shown: [bool; 2],
}

/// How often algorithms are chosen for a network, and a network is determined for algorithms.
const PASSES: usize = 4;

/// Maximum relative error of the self-replay; with a larger one, nothing is predicted …
pub const MAX_ERROR: f64 = 0.03;
/// … unless it is off by no more than this many seconds: that is a few calls of a short run.
pub const MAX_OFF_S: f64 = 50e-6;

/// Determines the network of a run, and the algorithms of its collective operations; also returns the
/// replay of the run on this network.
pub fn calibrate(graph: &mut Graph, placement: &Placement) -> (Calibration, Replayed) {
    let of_messages = || {
        let eager = eager_limits(graph, placement);
        let mut network = Network::ideal(eager.bytes);
        (network.collective_steps, network.collective_bytes) = (1.0, 1.0);
        let overheads = overheads(graph, placement, &network);
        [network.overhead, network.overhead_per_byte] = overheads.fit();
        let transfers = transfers(graph, placement, &network);
        (network, overheads.count() as u64, transfers, eager.shown)
    };
    let (of_messages, parts) = rayon::join(of_messages, || parts(graph));
    let (network, overheads, transfers, eager_shown) = of_messages;
    let seen = Seen { overheads, transfers, eager_shown, parts };
    let found = explain(graph, placement, network, &seen, true);
    let calibration = &found.0;
    // Collective operations that work unlike the known algorithms mislead.
    let is_misled = calibration.error.abs() > MAX_ERROR && calibration.samples.transfers != [0, 0];
    if is_misled { explain(graph, placement, network, &seen, false) } else { found }
}

/// What the durations of calls show.
struct Seen {
    /// Number of calls that need not wait.
    overheads: u64,
    transfers: [BySize; 2],
    eager_shown: [bool; 2],
    parts: Vec<Part>,
}

/// Determines latencies, times per byte and algorithms if overheads are known; `with_collectives`,
/// collective operations also tell latencies and times per byte.
fn explain(
    graph: &mut Graph,
    placement: &Placement,
    mut network: Network,
    seen: &Seen,
    with_collectives: bool,
) -> (Calibration, Replayed) {
    let Seen { overheads, transfers, eager_shown, parts } = seen;
    let mut samples = Samples {
        overheads: *overheads,
        transfers: [0, 1].map(|hop: usize| transfers[hop].count() as u64),
        collectives: parts.len() as u64,
        told_apart: [false; 2],
        eager_shown: *eager_shown,
    };
    let rows_of_collectives = |graph: &Graph, network: &Network| match with_collectives {
        true => collective_rows(graph, &Costs { network, placement }, parts),
        false => CollectiveRows::default(),
    };
    for _ in 0..PASSES {
        let collectives = rows_of_collectives(graph, &network);
        samples.told_apart = [0, 1].map(|hop| told_apart(&transfers[hop], &collectives, hop));
        let rows: Vec<Row> = collectives
            .into_values()
            .chain(transfers[0].rows(0))
            .chain(transfers[1].rows(1))
            .collect();
        set_prices(&mut network, &rows, &mut samples.told_apart);
        if !choose_algorithms(graph, placement, &network, parts) {
            break;
        }
    }
    if samples.transfers != [0, 0] && !parts.is_empty() {
        let collectives = collective_prices(graph, placement, &network, parts);
        let found = match collectives.tells_apart() {
            true => collectives.fit(),
            false => [collectives.common(); 2],
        };
        let [steps, bytes] = found.map(|price| price.clamp(1.0 / MAX_FACTOR, MAX_FACTOR));
        (network.collective_steps, network.collective_bytes) = (steps, bytes);
    }
    let extremes = extremes(&network, *overheads, transfers, &rows_of_collectives(graph, &network));
    let ([scale, error], replayed) = scale(graph, placement, network);
    (Calibration { network: network.times(scale), scale, error, samples, extremes }, replayed)
}

/// Whether there are both small and large messages on a hop, or collective operations if it has no
/// messages: these have prices of their own.
fn told_apart(transfers: &BySize, collectives: &CollectiveRows, hop: usize) -> bool {
    if transfers.count() > 0.0 {
        return transfers.tells_apart();
    }
    let of_hop = collectives.iter().filter(|(_, row)| row.terms[hop] > 0.0);
    let (mut small, mut large) = (false, false);
    of_hop.for_each(|((_, class), _)| {
        small |= *class < SMALL;
        large |= *class >= LARGE;
    });
    small && large
}

/// Sets latencies and times per byte. A hop that the run does not use gets those of the other.
fn set_prices(network: &mut Network, rows: &[Row], told_apart: &mut [bool; 2]) {
    let [within, between, byte_within, byte_between] = prices(rows);
    (network.latency, network.per_byte) = ([within, between], [byte_within, byte_between]);
    let uses = |hop: usize| rows.iter().any(|row| row.terms[hop] + row.terms[2 + hop] > 0.0);
    for (hop, other) in [(0, 1), (1, 0)] {
        match (uses(hop), uses(other)) {
            (true, _) => {}
            (false, true) => {
                network.latency[hop] = network.latency[other];
                network.per_byte[hop] = network.per_byte[other];
                told_apart[hop] = told_apart[other];
            }
            (false, false) => (network.latency[hop], network.per_byte[hop]) = (1e-6, 1e-10),
        }
    }
}

/// A receive did not wait for a message that was sent more than this many times the call's duration
/// before the call.
const EARLY_FACTOR: f64 = 3.0;

/// Durations of calls that need not wait: posts, sends that the library takes, receives of messages
/// that have arrived.
fn overheads(graph: &Graph, placement: &Placement, network: &Network) -> BySize {
    let costs = Costs { network, placement };
    let mut by_size = BySize::default();
    'calls: for (op, recorded) in graph.recorded.iter().enumerate() {
        let links = graph.links(op as OpNumber);
        let (mut begins, mut completes, mut bytes) = (false, false, 0.0);
        for link in links {
            if link.kind.is_collective() {
                continue 'calls;
            }
            let message = &graph.messages[link.of as usize];
            let waits = costs.needs_receiver(message);
            begins |= link.kind.begins();
            completes |= link.kind.completes();
            match link.kind {
                LinkKind::PostReceive => {}
                LinkKind::PostSend if waits => {}
                _ if waits => continue 'calls,
                LinkKind::CompleteSend => {}
                LinkKind::Receive | LinkKind::CompleteReceive => {
                    // It has arrived if it was sent much earlier than this call's duration before
                    // it.
                    let sent = graph.recorded[message.send as usize].entered_s;
                    let lasts = recorded.left_s - recorded.entered_s;
                    if sent + EARLY_FACTOR * lasts > recorded.entered_s {
                        continue 'calls;
                    }
                    bytes += message.bytes;
                }
                _ => bytes += message.bytes,
            }
        }
        if !links.is_empty() {
            let terms = [f64::from(u8::from(begins) + u8::from(completes)), bytes];
            by_size.add(bytes, terms, recorded.left_s - recorded.entered_s);
        }
    }
    by_size
}

/// The remaining times from a send's begin to the end of a receive that waited for it, by hop:
/// latency and bytes. For a call that completes several messages, the one that was sent last
/// counts.
fn transfers(graph: &Graph, placement: &Placement, network: &Network) -> [BySize; 2] {
    let costs = Costs { network, placement };
    let mut by_hop = [BySize::default(), BySize::default()];
    let entered = |op: OpNumber| graph.recorded[op as usize].entered_s;
    for (op, recorded) in graph.recorded.iter().enumerate() {
        let links = graph.links(op as OpNumber);
        let received = links.iter().filter(|link| link.kind.completes_receive());
        let messages = received.map(|link| &graph.messages[link.of as usize]);
        let sent = |message: &&Message| entered(message.send);
        let last = messages.clone().max_by(|a, b| sent(a).total_cmp(&sent(b)));
        let Some(message) = last else { continue };
        let (sent, posted) = (sent(&message), entered(message.receive));
        let waits = recorded.entered_s <= sent;
        let hop = placement.hop(message.lines);
        // Messages of a hop come one after another.
        let of_hop = messages.clone().filter(|other| placement.hop(other.lines) == hop);
        let bytes = of_hop.map(|message| message.bytes).sum::<f64>();
        // Overhead on both sides, copies, and the transfer: three latencies if the sender asks the
        // receiver, two if the receiver asks.
        let copies = messages.map(|message| costs.copying(message)).sum::<f64>();
        let known = 2.0 * network.overhead + costs.copying(message) + copies;
        let (from, latencies) = match costs.needs_receiver(message) {
            true if waits => (sent, 3.0),
            true if posted == recorded.entered_s => (posted, 2.0),
            false if waits => (sent, 1.0),
            _ => continue,
        };
        if recorded.left_s < from {
            continue;
        }
        let time = recorded.left_s - from;
        by_hop[hop as usize].add(bytes, [latencies, bytes], (time - known).max(0.0));
    }
    by_hop
}
