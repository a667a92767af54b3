//! Walks the critical path of a replay backwards: how much each parameter, each rank and each context counts on
//! it, which is how much the run's time changes with them.

use std::ops::{Add, Mul};

use super::branches::{Since, branches, gathered};
use super::exchange::Rounds;
use super::forward::{Conditions, Replayed};
use super::graph::{Graph, Op, OpNumber};
use super::network::{Amount, Costs, Network};

/// Parameters of a network in a fixed order: overhead, overhead a byte, latency within hosts and between, time a
/// byte within and between, steps and bytes of collective operations.
pub const PARAMETERS: usize = 8;

/// A time, and by how much it changes with each parameter.
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

/// What the critical path of a replay consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// ∂t/∂x of each parameter: of a latency the number of latencies on the path.
    pub by_parameter: [f64; PARAMETERS],
    /// Seconds of computation on it, by line.
    pub by_line: Vec<f64>,
    /// The same by context.
    pub by_context: Vec<f64>,
    /// Seconds in calls that need nobody and in the recorder.
    pub library_s: f64,
    /// Seconds before the first rank on it begins.
    pub begin_s: f64,
}

/// The critical path of a replay.
pub fn critical_path<P: Fn(OpNumber, &Op) -> (f64, f64)>(
    graph: &Graph,
    conditions: &Conditions<'_, P>,
    replayed: &Replayed,
) -> Path {
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
    let mut op = graph.lines[last].ops.end - 1;
    // Where ranks waited for each other for ever the path might go in a circle.
    for _ in 0..graph.ops.len() {
        let before = latest(graph, &costs, replayed, op, &mut path);
        if before != op {
            line = graph.line_of(before);
            op = before;
        }
        let (own_s, library_s) = (conditions.pace)(op, &graph.ops[op as usize]);
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

/// The operation from whose begin on the end of one was decided; its transfer is added to the path.
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
    branches(graph, costs, op, |since, time: Slope| {
        let candidate = match since {
            Since::Begin => Some((op, time)),
            Since::Entered(other) => Some((other, time)),
            Since::Exchanged(member) => {
                let collective = graph.members[member as usize].collective;
                let rounds = Rounds::new(graph, &graph.collectives[collective as usize]);
                let (origin, in_rounds) = rounds.origin(costs, member, entered);
                Some((origin, in_rounds + time))
            }
            Since::Gathered(number) => {
                let last =
                    gathered(graph, number).max_by(|a, b| entered(*a).total_cmp(&entered(*b)));
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
