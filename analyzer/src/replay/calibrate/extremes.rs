//! Networks that the run does not exclude. A transfer's time is the sum of overheads, latencies and
//! bytes; where all messages have similar sizes, or a price was fitted as 0, the run shows the sum
//! only (docs/decisions/0109-answers-cover-every-division-of-the-costs.md).

use crate::replay::network::Network;

use super::collectives::CollectiveRows;
use super::sizes::{BySize, Row};

/// No network is slower per byte, within and between hosts: without large messages the run does not
/// say it.
const MAX_PER_BYTE: [f64; 2] = [4e-9, 1e-7];

/// A fitted price below this share of the overheads that belong to the same transfer: part of it may
/// have been taken for overhead.
const SMALL_SHARE: f64 = 0.1;

/// What the run shows of a hop: for one price, its term, that of the other price, and the cost.
#[derive(Debug, Clone, Copy)]
struct Seen {
    weight: f64,
    term: f64,
    other: f64,
    cost: f64,
}

/// The rows of a hop: those of its messages, or of collective operations if it has none.
fn rows_of(hop: usize, messages: &[BySize; 2], collectives: &CollectiveRows) -> Vec<Row> {
    let rows: Vec<Row> = match messages[hop].count() > 0.0 {
        true => messages[hop].rows(hop).collect(),
        false => collectives.values().copied().collect(),
    };
    let shows = |row: &Row| row.cost > 0.0 && row.terms[hop] + row.terms[2 + hop] > 0.0;
    rows.into_iter().filter(shows).collect()
}

/// The rows of a hop for its price with this number, without what the prices of the other hop
/// explain.
fn seen(rows: &[Row], network: &Network, (hop, number): (usize, usize)) -> Vec<Seen> {
    let other_hop = 1 - hop;
    let seen = |row: &Row| {
        let explained = row.terms[other_hop] * network.latency[other_hop]
            + row.terms[2 + other_hop] * network.per_byte[other_hop];
        let cost = (row.cost - explained).max(0.0);
        let weight = row.count / row.cost.powi(2);
        Seen { weight, term: row.terms[number], other: row.terms[2 * hop + 2 - number], cost }
    };
    rows.iter().map(seen).collect()
}

/// The largest price that no row contradicts, but not below the fitted and not above the possible one;
/// and the other price that explains the rows best beside it.
fn largest(seen: &[Seen], fitted: f64, possible: f64) -> [f64; 2] {
    let bounds = seen.iter().filter(|seen| seen.term > 0.0).map(|seen| seen.cost / seen.term);
    let bound = bounds.reduce(f64::min).unwrap_or(fitted);
    let price = bound.min(possible).max(fitted);
    let rest = |seen: &Seen| seen.weight * seen.other * (seen.cost - price * seen.term);
    let products: f64 = seen.iter().map(rest).sum();
    let squares: f64 = seen.iter().map(|seen| seen.weight * seen.other.powi(2)).sum();
    [price, if squares > 0.0 { (products / squares).max(0.0) } else { 0.0 }]
}

/// The networks that put as much as possible of the transfers into latencies, into bytes, and, if
/// no call shows them, into overheads.
pub(super) fn extremes(
    network: &Network,
    overheads: u64,
    messages: &[BySize; 2],
    collectives: &CollectiveRows,
) -> [Network; 3] {
    let (mut latencies, mut bytes, mut calls) = (*network, *network, *network);
    for hop in [0, 1] {
        let mut rows = rows_of(hop, messages, collectives);
        let mut from = hop;
        if rows.is_empty() {
            // A hop that the run does not use has the prices of the other.
            from = 1 - hop;
            rows = rows_of(from, messages, collectives);
        }
        let (latency, per_byte) = (network.latency[from], network.per_byte[from]);
        let of_latency = seen(&rows, network, (from, from));
        let [most, rest] = largest(&of_latency, latency, f64::INFINITY);
        (latencies.latency[hop], latencies.per_byte[hop]) = (most, rest);
        let of_bytes = seen(&rows, network, (from, 2 + from));
        let [most, rest] = largest(&of_bytes, per_byte, MAX_PER_BYTE[hop]);
        (bytes.per_byte[hop], bytes.latency[hop]) = (most, rest);
    }
    let hop = usize::from(messages[1].count() > 0.0);
    if network.latency[hop] < SMALL_SHARE * 2.0 * network.overhead {
        latencies.latency = latencies.latency.map(|latency| latency + 2.0 * network.overhead);
        latencies.overhead = 0.0;
    }
    if network.per_byte[hop] < SMALL_SHARE * 2.0 * network.overhead_per_byte {
        bytes.per_byte = bytes.per_byte.map(|byte| byte + 2.0 * network.overhead_per_byte);
        bytes.overhead_per_byte = 0.0;
    }
    if overheads == 0 {
        calls.overhead += calls.latency[hop] / 2.0;
        calls.latency = calls.latency.map(|latency| (latency - network.latency[hop]).max(0.0));
    }
    [latencies, bytes, calls]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(latency: f64, per_byte: f64) -> Network {
        Network { latency: [latency; 2], per_byte: [per_byte; 2], ..Network::ideal([1e4; 2]) }
    }

    /// Messages within hosts of these sizes, which cost a latency of 10 µs and 1 ns for each byte.
    fn messages(sizes: &[f64]) -> [BySize; 2] {
        let mut messages = [BySize::default(), BySize::default()];
        sizes.iter().for_each(|bytes| messages[0].add(*bytes, [1.0, *bytes], 1e-5 + 1e-9 * bytes));
        messages
    }

    fn found(fitted: Network, sizes: &[f64]) -> [Network; 3] {
        extremes(&fitted, 1, &messages(sizes), &CollectiveRows::default())
    }

    #[test]
    fn messages_of_one_size_may_cost_latency_or_bytes_alone() {
        let [latencies, bytes, _] = found(network(1.8e-5, 0.0), &[8_000.0]);
        assert!((latencies.latency[0] - 1.8e-5).abs() < 1e-9 && latencies.per_byte[0] == 0.0);
        assert!(bytes.latency[0] < 1e-9, "{bytes:?}");
        assert!((bytes.per_byte[0] * 8_000.0 - 1.8e-5).abs() < 1e-9, "{bytes:?}");
        // The other hop has no messages.
        assert_eq!(
            (latencies.latency[0], bytes.per_byte[0]),
            (latencies.latency[1], bytes.per_byte[1])
        );
    }

    #[test]
    fn messages_of_different_sizes_leave_little_freedom() {
        for network in found(network(1e-5, 1e-9), &[8.0, 100_000.0]) {
            assert!((network.latency[0] / 1e-5 - 1.0).abs() < 0.11, "{network:?}");
            assert!((network.per_byte[0] / 1e-9 - 1.0).abs() < 0.11, "{network:?}");
        }
    }

    #[test]
    fn bytes_of_small_messages_cost_little() {
        let [_, bytes, _] = found(network(1e-5, 0.0), &[8.0]);
        assert!((bytes.latency[0] / 1e-5 - 1.0).abs() < 0.01, "{bytes:?}");
    }

    #[test]
    fn unseen_overheads_may_be_all_of_a_latency() {
        let none = extremes(&network(1e-5, 0.0), 0, &messages(&[8.0]), &CollectiveRows::default());
        assert_eq!((none[2].overhead, none[2].latency[0]), (5e-6, 0.0));
        let fitted = Network { overhead: 5e-6, ..network(0.0, 1e-9) };
        assert!(found(fitted, &[8_000.0])[0].latency[0] > 1e-5);
    }
}
