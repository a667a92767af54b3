//! Walks the critical path of a replay backwards. The contributions of each parameter, rank and
//! context to it are the derivatives of the run's time.

use std::ops::{Add, Mul};

use super::dependencies::{StartPoint, dependencies, senders};
use super::exchange::Rounds;
use super::forward::{Conditions, Replayed};
use super::graph::{Graph, OpNumber};
use super::network::{Amount, Costs, Network};

/// Number of network parameters. Their order: overhead, overhead per byte, latency within and
/// between hosts, time per byte within and between, steps and bytes of collective operations.
pub const PARAMETERS: usize = 8;

/// A time and its derivatives by the parameters.
#[derive(Debug, Clone, Copy)]
struct Slope {
    value: f64,
    by: [f64; PARAMETERS],
}

impl Slope {
    fn parameter(value: f64, number: usize) -> Self {
        let mut by = [0.0; PARAMETERS];
        by[number] = 1.0;
        Self { value, by }
    }
}

impl Add for Slope {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let by = std::array::from_fn(|at| self.by[at] + other.by[at]);
        Self { value: self.value + other.value, by }
    }
}

impl Mul<f64> for Slope {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { value: self.value * factor, by: self.by.map(|by| by * factor) }
    }
}

impl Mul for Slope {
    type Output = Self;

    #[allow(clippy::suspicious_arithmetic_impl, reason = "the product rule adds")]
    fn mul(self, other: Self) -> Self {
        let by = std::array::from_fn(|at| self.by[at] * other.value + other.by[at] * self.value);
        Self { value: self.value * other.value, by }
    }
}

impl Amount for Slope {
    const ZERO: Self = Self { value: 0.0, by: [0.0; PARAMETERS] };

    fn value(self) -> f64 {
        self.value
    }
}

fn slopes(network: &Network) -> Network<Slope> {
    let Network { latency, per_byte, .. } = *network;
    Network {
        overhead: Slope::parameter(network.overhead, 0),
        overhead_per_byte: Slope::parameter(network.overhead_per_byte, 1),
        latency: [Slope::parameter(latency[0], 2), Slope::parameter(latency[1], 3)],
        per_byte: [Slope::parameter(per_byte[0], 4), Slope::parameter(per_byte[1], 5)],
        eager_bytes: network.eager_bytes,
        collective_steps: Slope::parameter(network.collective_steps, 6),
        collective_bytes: Slope::parameter(network.collective_bytes, 7),
    }
}

/// The composition of the critical path of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// ∂t/∂x of each parameter: for a latency, the number of latencies on the path.
    pub by_parameter: [f64; PARAMETERS],
    /// Seconds of computation on it, by line.
    pub by_line: Vec<f64>,
    /// Seconds of computation on it, by context.
    pub by_context: Vec<f64>,
    /// Seconds in the recorder and in calls that need no other rank.
    pub library_s: f64,
    /// Seconds before the first rank on it begins.
    pub begin_s: f64,
}

/// The transfers on the critical path of a replay, seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfers {
    /// By parameter: overhead, overhead per byte, latencies, times per byte.
    parts: [f64; 6],
    pub all: f64,
}

impl Transfers {
    /// What the transfers of a path cost on a network.
    pub fn new(network: &Network, path: &Path) -> Self {
        let Network { overhead, overhead_per_byte, latency, per_byte, .. } = *network;
        let [within, between] = latency;
        let [byte_within, byte_between] = per_byte;
        let prices = [overhead, overhead_per_byte, within, between, byte_within, byte_between];
        let parts = std::array::from_fn(|at| prices[at] * path.by_parameter[at]);
        Self { parts, all: parts.iter().sum() }
    }

    /// Seconds of `after` that are in other parameters than they would be if all transfers took
    /// longer by the same factor. The self-replay shows the sum of all parameters; these seconds
    /// depend on what each of them is.
    pub fn moved(&self, after: &Self) -> f64 {
        let factor = if self.all > 0.0 { after.all / self.all } else { 1.0 };
        let moved = |(before, after): (&f64, &f64)| (after - before * factor).abs();
        self.parts.iter().zip(&after.parts).map(moved).sum::<f64>() / 2.0
    }
}

/// Finds the critical path of a replay.
pub fn critical_path(graph: &Graph, conditions: &Conditions<'_>, replayed: &Replayed) -> Path {
    let network = slopes(conditions.network);
    let costs = Costs { network: &network, placement: conditions.placement };
    let mut path = Path {
        by_parameter: [0.0; PARAMETERS],
        by_line: vec![0.0; graph.lines.len()],
        by_context: vec![0.0; graph.contexts.all.len()],
        library_s: 0.0,
        begin_s: 0.0,
    };
    let ends = replayed.ends.iter().enumerate();
    let Some((last, _)) = ends.max_by(|(_, a), (_, b)| a.total_cmp(b)) else { return path };
    let mut line = last as u32;
    let mut op = replayed.last_ops[last];
    // If ranks deadlocked, the path might be circular.
    for _ in 0..graph.ops.len() {
        let before = latest(graph, &costs, replayed, op, &mut path);
        if before != op {
            line = graph.line_of(before);
            op = before;
        }
        let (own_s, library_s) = conditions.before(graph, op);
        path.by_line[line as usize] += own_s;
        path.by_context[graph.ops[op as usize].context as usize] += own_s;
        path.library_s += library_s;
        if op == graph.lines[line as usize].ops.start {
            path.begin_s = graph.lines[line as usize].begin_s;
            break;
        }
        op -= 1;
    }
    path
}

/// The operation whose begin decided the end of `op`; its transfer is added to the path.
fn latest(
    graph: &Graph,
    costs: &Costs<Slope>,
    replayed: &Replayed,
    op: OpNumber,
    path: &mut Path,
) -> OpNumber {
    let entered = |op: OpNumber| replayed.entered[op as usize];
    let (mut from, mut end, mut slope) = (op, f64::NEG_INFINITY, Slope::ZERO);
    if graph.links(op).is_empty() {
        return op;
    }
    dependencies(graph, costs, op, |start, time: Slope| {
        let candidate = match start {
            StartPoint::Begin => Some((op, time)),
            StartPoint::Entered(other) => Some((other, time)),
            StartPoint::RoundsDone(member) => {
                let collective = graph.members[member as usize].collective;
                let rounds = Rounds::new(graph, &graph.collectives[collective as usize]);
                let (origin, in_rounds) = rounds.origin(costs, member, entered);
                Some((origin, in_rounds + time))
            }
            StartPoint::LastSender(number) => {
                let last =
                    senders(graph, number).max_by(|a, b| entered(*a).total_cmp(&entered(*b)));
                last.map(|last| (last, time))
            }
        };
        if let Some((candidate, time)) = candidate
            && entered(candidate) + time.value > end
        {
            (from, end, slope) = (candidate, entered(candidate) + time.value, time);
        }
    });
    for (sum, by) in path.by_parameter.iter_mut().zip(slope.by) {
        *sum += by;
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unequal_changes_of_parameters_move_transfers() {
        let transfers = |latency: f64, bytes: f64| Transfers {
            parts: [0.0, 0.0, 0.0, latency, 0.0, bytes],
            all: latency + bytes,
        };
        let before = transfers(1.0, 1.0);
        assert_eq!(before.moved(&transfers(3.0, 3.0)), 0.0);
        assert_eq!(before.moved(&transfers(0.0, 0.0)), 0.0);
        // Three times as long in all, but five times and once.
        assert_eq!(before.moved(&transfers(5.0, 1.0)), 2.0);
    }
}
