//! A network put together from what the run shows, what a measured machine says, and what the user gives.

use super::network::{Hop, Network};

/// Where a parameter comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The run shows it.
    Run,
    /// The run has no messages that show it.
    Assumed,
    /// A machine that was measured.
    Machine,
    /// The user.
    Given,
}

/// A network, and where its parameters come from; arrays: within hosts, between.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembled {
    /// The network.
    pub network: Network,
    /// Of the latencies.
    pub latency: [Origin; 2],
    /// Of the bandwidths.
    pub per_byte: [Origin; 2],
    /// Of the eager limits.
    pub eager_bytes: [Origin; 2],
    /// Of the processor's times.
    pub overhead: Origin,
    /// The document of the machine.
    pub machine: Option<String>,
}

impl Assembled {
    /// The run's own network; whether it shows what messages cost within hosts, and between them.
    pub fn of_run(network: Network, shows: [bool; 2]) -> Self {
        let origin = shows.map(|shows| if shows { Origin::Run } else { Origin::Assumed });
        Self {
            network,
            latency: origin,
            per_byte: origin,
            eager_bytes: origin,
            overhead: Origin::Run,
            machine: None,
        }
    }

    /// Whether something is not the run's.
    pub fn is_changed(&self) -> bool {
        let all = [self.latency, self.per_byte, self.eager_bytes, [self.overhead; 2]].concat();
        all.iter().any(|origin| matches!(origin, Origin::Machine | Origin::Given))
    }

    /// With another latency over a hop.
    pub fn set_latency(&mut self, hop: Hop, seconds: f64, origin: Origin) {
        self.network.latency[hop as usize] = seconds;
        self.latency[hop as usize] = origin;
    }

    /// With another time a byte.
    pub fn set_per_byte(&mut self, hop: Hop, seconds: f64, origin: Origin) {
        self.network.per_byte[hop as usize] = seconds;
        self.per_byte[hop as usize] = origin;
    }

    /// With another eager limit.
    pub fn set_eager(&mut self, hop: Hop, bytes: f64, origin: Origin) {
        self.network.eager_bytes[hop as usize] = bytes;
        self.eager_bytes[hop as usize] = origin;
    }

    /// With other times of the processor: of a call, of a byte.
    pub fn set_overhead(&mut self, seconds: f64, per_byte: f64, origin: Origin) {
        (self.network.overhead, self.network.overhead_per_byte) = (seconds, per_byte);
        self.overhead = origin;
    }
}
