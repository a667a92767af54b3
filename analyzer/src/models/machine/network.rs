//! The document of `kernels network`: message times over message sizes for each class of pairs.

use serde::{Deserialize, Serialize};

use super::measured::{Conditions, Measured};
use crate::models::structure::{Library, MachineTimes, MessageTime, MessageTimes};

/// The document of `kernels network`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Network {
    /// MPI library: "Open MPI v4.1.4".
    pub mpi: String,
    /// Ranks that were started.
    pub ranks: u32,
    /// The counter that times were read from.
    pub counter: String,
    /// Its frequency, hertz: seconds times this are counter ticks.
    pub counter_hz: f64,
    /// Timed rounds.
    pub repetitions: usize,
    /// Untimed rounds before them.
    pub warmup_rounds: usize,
    /// Classes of pairs, `same-host` first.
    pub classes: Vec<PairClass>,
    /// Conditions.
    pub conditions: Conditions,
}

impl Network {
    /// Times of messages within and between hosts.
    pub fn message_times(&self) -> MachineTimes {
        let times = |class: &PairClass| {
            let sizes = class.sizes.iter().map(|of| MessageTime {
                bytes: of.bytes as f64,
                half_rtt_s: of.half_rtt_s.median,
                gap_s: of.gap_s.median,
            });
            let EagerLimit { bytes, at_least } = class.eager_limit;
            let limit = (!at_least).then_some(bytes as f64);
            MessageTimes::new(sizes.collect()).map(|times| times.with_eager_limit(limit))
        };
        let of = |name| self.class(name).and_then(times);
        MachineTimes {
            same_host: of("same-host"),
            other_host: of("other-host"),
            library: Library::named(&self.mpi),
        }
    }
}

/// Pairs of ranks connected in the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PairClass {
    /// `same-host` or `other-host`.
    pub class: String,
    /// The pair that was measured.
    pub ranks: [u32; 2],
    /// Their hosts.
    pub hosts: [String; 2],
    /// Where the library switches from eager to rendezvous.
    pub eager_limit: EagerLimit,
    /// All times at each size, ascending.
    pub sizes: Vec<SizeTimes>,
    /// Piecewise linear fits of these times.
    pub fits: Fits,
    /// Changes of protocol, ascending.
    pub switches: Vec<Switch>,
    /// LogP's L of one word.
    pub latency: Latency,
    /// Capacity of the queues, by message size.
    pub queues: Vec<QueueSize>,
    /// Bandwidth with several partners at once.
    pub flows: Vec<Flow>,
}

/// Times and rates at one message size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SizeTimes {
    /// Message size.
    pub bytes: u64,
    /// Half a round trip, seconds.
    pub half_rtt_s: Measured,
    /// g + (s − 1)·G, seconds between the messages of a burst.
    pub gap_s: Measured,
    /// o_s, seconds.
    pub send_overhead_s: Measured,
    /// o_r, seconds: a receive whose message has already arrived.
    pub receive_overhead_s: Measured,
    /// RTT/2 − o_s − o_r, seconds; its interval says whether L can be identified at this size.
    pub latency_s: Measured,
    /// Bytes per second, one way.
    pub one_way_bytes_per_s: Measured,
    /// Bytes per second with both directions busy, both counted.
    pub both_ways_bytes_per_s: Measured,
}

/// Largest message whose send completes with no receive posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EagerLimit {
    /// Bytes; 0 when even one byte does not complete.
    pub bytes: u64,
    /// Whether the limit may be larger, because no larger message was tried.
    pub at_least: bool,
}

/// Piecewise linear fits of times over sizes; pieces ascend in size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Fits {
    /// Half the round trip: fixed + s·per_byte.
    pub half_rtt: Vec<Piece>,
    /// The gap: g + (s − 1)·G.
    pub gap: Vec<Piece>,
    /// o_s(s).
    pub send_overhead: Vec<Piece>,
    /// o_r(s).
    pub receive_overhead: Vec<Piece>,
}

/// A straight line over a range of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Piece {
    /// Smallest size in it.
    pub from_bytes: u64,
    /// Largest size in it.
    pub to_bytes: u64,
    /// Fixed part, seconds.
    pub fixed_s: f64,
    /// Its 95 % interval.
    pub fixed_interval_s: (f64, f64),
    /// Seconds per byte.
    pub per_byte_s: f64,
    /// Its 95 % interval.
    pub per_byte_interval_s: (f64, f64),
    /// Largest relative deviation of a median from the line.
    pub worst_misfit: f64,
}

/// A change of protocol between two sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Switch {
    /// Largest size before it.
    pub after_bytes: u64,
    /// Smallest size after it.
    pub before_bytes: u64,
    /// `eager-to-rendezvous`, or `slope`.
    pub kind: String,
    /// The measurements that show it: `completion`, `half_rtt`, `gap`.
    pub seen_in: Vec<String>,
}

/// LogP's L of one word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Latency {
    /// Size of the word.
    pub bytes: u64,
    /// L, seconds; `null` where it cannot be identified.
    pub latency_s: Option<f64>,
    /// 95 % interval of RTT/2 − o_s − o_r.
    pub interval_s: (f64, f64),
    /// Half the round trip.
    pub half_rtt_s: f64,
    /// Why L cannot be identified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Sends that completed at the sender with no receive posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BufferedSends {
    /// Number of messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether the queue may be larger, because the experiment ended here.
    pub at_least: bool,
}

/// Capacity of the queues at one message size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueSize {
    /// Message size.
    pub bytes: u64,
    /// Send and network queues (SQ + TQ): the receiver was outside MPI.
    pub receiver_outside_mpi: BufferedSends,
    /// With the receive queue (SQ + TQ + RQ): the receiver was in MPI and had posted no receive.
    pub receiver_in_mpi: BufferedSends,
}

/// Bandwidth over several connections at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Flow {
    /// `hub-out`, `hub-in`, `hub-both`: one rank and its partners; `pairs-one-way`, `pairs-both`:
    /// pairs without a rank in common.
    pub shape: String,
    /// Partners, or pairs.
    pub partners: u32,
    /// Message size.
    pub bytes: u64,
    /// Bytes per second of all connections together.
    pub bytes_per_s: Measured,
}

impl Network {
    pub fn class(&self, name: &str) -> Option<&PairClass> {
        self.classes.iter().find(|class| class.class == name)
    }
}

impl PairClass {
    /// The value of a quantity at any size: interpolated linearly between the medians of the two
    /// neighbouring measured sizes; outside the measured range, the value at its nearest end.
    ///
    /// No interpolation crosses the eager limit, because the sizes on both sides of it are
    /// measured.
    pub fn at(&self, bytes: u64, quantity: impl Fn(&SizeTimes) -> &Measured) -> f64 {
        let above = self.sizes.partition_point(|size| size.bytes < bytes);
        let value = |at: usize| quantity(&self.sizes[at]).median;
        if above == 0 {
            return value(0);
        }
        if above == self.sizes.len() {
            return value(above - 1);
        }
        let (low, high) = (self.sizes[above - 1].bytes as f64, self.sizes[above].bytes as f64);
        let share = (bytes as f64 - low) / (high - low);
        value(above - 1) + share * (value(above) - value(above - 1))
    }

    /// Seconds that one message of any size takes, as half a round trip; beyond the largest
    /// measured size, the last linear piece is extrapolated.
    pub fn message_s(&self, bytes: u64) -> f64 {
        let largest = self.sizes.last().map_or(0, |size| size.bytes);
        match self.fits.half_rtt.last() {
            Some(piece) if bytes > largest => piece.at(bytes),
            _ => self.at(bytes, |size| &size.half_rtt_s),
        }
    }
}

impl Piece {
    /// Seconds at a size.
    pub fn at(&self, bytes: u64) -> f64 {
        self.fixed_s + bytes as f64 * self.per_byte_s
    }
}
