//! A network assembled from what the run shows, what a measured machine says, and what the user
//! gives.

use super::network::{Hop, Network};

/// The source of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The run shows it.
    Run,
    /// Assumed: the run has no messages that show it.
    Assumed,
    /// A measured machine.
    Machine,
    /// The user.
    Given,
}

/// A network, and the sources of its parameters. Arrays: within hosts, between hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembled {
    pub network: Network,
    /// Source of the latencies.
    pub latency: [Origin; 2],
    /// Source of the bandwidths.
    pub per_byte: [Origin; 2],
    /// Source of the eager limits.
    pub eager_bytes: [Origin; 2],
    /// Source of the overheads.
    pub overhead: Origin,
    /// Name of the machine's document.
    pub machine: Option<String>,
}

impl Assembled {
    /// The run's own network; `shows` and `eager_shown` tell whether the run shows the costs of
    /// messages and the eager limits, within and between hosts.
    pub fn of_run(network: Network, shows: [bool; 2], eager_shown: [bool; 2]) -> Self {
        let origin = |shown: bool| if shown { Origin::Run } else { Origin::Assumed };
        Self {
            network,
            latency: shows.map(origin),
            per_byte: shows.map(origin),
            eager_bytes: eager_shown.map(origin),
            overhead: Origin::Run,
            machine: None,
        }
    }

    /// The network if the run's own were another one: what does not come from the run stays.
    pub(super) fn instead_of(&self, run: &Network) -> Network {
        let own = |origin: Origin| matches!(origin, Origin::Run | Origin::Assumed);
        let mut network = self.network;
        for hop in [0, 1] {
            if own(self.latency[hop]) {
                network.latency[hop] = run.latency[hop];
            }
            if own(self.per_byte[hop]) {
                network.per_byte[hop] = run.per_byte[hop];
            }
        }
        if own(self.overhead) {
            network.overhead = run.overhead;
            network.overhead_per_byte = run.overhead_per_byte;
        }
        network
    }

    /// Whether any parameter is not the run's own.
    pub fn is_changed(&self) -> bool {
        let all = [self.latency, self.per_byte, self.eager_bytes, [self.overhead; 2]].concat();
        all.iter().any(|origin| matches!(origin, Origin::Machine | Origin::Given))
    }

    pub fn set_latency(&mut self, hop: Hop, seconds: f64, origin: Origin) {
        self.network.latency[hop as usize] = seconds;
        self.latency[hop as usize] = origin;
    }

    /// Sets the time per byte of a hop.
    pub fn set_per_byte(&mut self, hop: Hop, seconds: f64, origin: Origin) {
        self.network.per_byte[hop as usize] = seconds;
        self.per_byte[hop as usize] = origin;
    }

    /// Sets the eager limit of a hop.
    pub fn set_eager(&mut self, hop: Hop, bytes: f64, origin: Origin) {
        self.network.eager_bytes[hop as usize] = bytes;
        self.eager_bytes[hop as usize] = origin;
    }

    /// Sets the overheads: per call, and per byte.
    pub fn set_overhead(&mut self, seconds: f64, per_byte: f64, origin: Origin) {
        (self.network.overhead, self.network.overhead_per_byte) = (seconds, per_byte);
        self.overhead = origin;
    }
}
