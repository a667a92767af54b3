//! A network put together from what the run shows, what a measured machine says, and what the user gives.

use super::network::{Hop, Network};

/// Where a parameter comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The run shows it.
    Run,
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
    /// The run's own network.
    pub fn of_run(network: Network) -> Self {
        let run = [Origin::Run; 2];
        Self {
            network,
            latency: run,
            per_byte: run,
            eager_bytes: run,
            overhead: Origin::Run,
            machine: None,
        }
    }

    /// Whether something is not the run's.
    pub fn is_changed(&self) -> bool {
        let all = [self.latency, self.per_byte, self.eager_bytes].concat();
        self.overhead != Origin::Run || all.iter().any(|origin| *origin != Origin::Run)
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
