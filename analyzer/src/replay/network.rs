//! The network of a replay: LogGP with an overhead per byte, with separate parameters within and
//! between hosts; and the cost of messages and collective operations on it.

use std::ops::{Add, Mul};

use trace_format::meaning::SendMode;

use super::algorithm::{ALGORITHMS, Algorithm, Path};
use super::graph::{Collective, Graph, Message};
use super::mapping::Mapping;
use super::movement::Movement;

/// The level of a transfer: within a host, or between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hop {
    /// Within a host.
    Within,
    /// Between hosts.
    Between,
}

impl Hop {
    /// Both levels.
    pub const ALL: [Self; 2] = [Self::Within, Self::Between];
}

/// A time, or a time with its derivatives.
pub(super) trait Amount:
    Copy + Add<Output = Self> + Mul<f64, Output = Self> + Mul<Output = Self>
{
    const ZERO: Self;

    /// The time alone.
    fn value(self) -> f64;
}

impl Amount for f64 {
    const ZERO: Self = 0.0;

    #[inline]
    fn value(self) -> f64 {
        self
    }
}

/// Parameters of a network; times in seconds, per byte in seconds per byte. Arrays: within hosts,
/// between hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network<T = f64> {
    /// o: CPU time of a call that sends, receives or completes.
    pub overhead: T,
    /// CPU time per byte of a message that the library copies.
    pub overhead_per_byte: T,
    /// L: the latency.
    pub latency: [T; 2],
    /// G: the reciprocal of the bandwidth.
    pub per_byte: [T; 2],
    /// Largest standard send that does not need its receiver, bytes; may be infinite.
    pub eager_bytes: [f64; 2],
    /// Cost of a step of a collective operation, relative to a message without bytes.
    pub collective_steps: T,
    /// Cost of a byte of a collective operation, relative to a byte of a message.
    pub collective_bytes: T,
}

impl Network {
    /// A network without any transfer times; the eager limits are kept.
    pub fn ideal(eager_bytes: [f64; 2]) -> Self {
        Self {
            overhead: 0.0,
            overhead_per_byte: 0.0,
            latency: [0.0; 2],
            per_byte: [0.0; 2],
            eager_bytes,
            collective_steps: 0.0,
            collective_bytes: 0.0,
        }
    }

    /// Multiplies all times by a factor.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            overhead: self.overhead * factor,
            overhead_per_byte: self.overhead_per_byte * factor,
            latency: self.latency.map(|latency| latency * factor),
            per_byte: self.per_byte.map(|per_byte| per_byte * factor),
            ..self
        }
    }
}

/// Which ranks are on which host, and how the members of communicators are spread.
#[derive(Debug, Clone)]
pub struct Placement {
    /// Host by line.
    hosts: Vec<u32>,
    /// Spread by group.
    spread: Vec<Spread>,
}

/// How the members of a group are spread over hosts.
#[derive(Debug, Clone, Copy)]
struct Spread {
    members: f64,
    hosts: usize,
    most_on_one: usize,
    /// The longest path of each algorithm.
    paths: [Path; ALGORITHMS],
}

impl Placement {
    /// Places the lines on the given hosts.
    fn new(graph: &Graph, hosts: Vec<u32>) -> Self {
        let spread = graph.groups.iter().map(|lines| {
            let mut on: Vec<u32> = lines.iter().map(|line| hosts[*line as usize]).collect();
            let paths = Algorithm::ALL.map(|algorithm| algorithm.path(&on));
            on.sort_unstable();
            let sizes = on.chunk_by(|a, b| a == b).map(<[u32]>::len);
            let most_on_one = sizes.clone().max().unwrap_or(1);
            Spread { members: on.len() as f64, hosts: sizes.count().max(1), most_on_one, paths }
        });
        let spread = spread.collect();
        Self { hosts, spread }
    }

    /// The placement of the recorded run.
    pub fn recorded(graph: &Graph) -> Self {
        let ranks = &graph.run.ranks;
        let mut names: Vec<&str> = Vec::new();
        let hosts = graph.lines.iter().map(|line| {
            let name = ranks[line.position].file.header.host.as_str();
            match names.iter().position(|known| *known == name) {
                Some(at) => at as u32,
                None => {
                    names.push(name);
                    names.len() as u32 - 1
                }
            }
        });
        let hosts = hosts.collect();
        Self::new(graph, hosts)
    }

    /// The placement of a mapping.
    pub fn mapped(graph: &Graph, mapping: &Mapping) -> Self {
        Self::new(graph, graph.lines.iter().map(|line| mapping.host(line.position)).collect())
    }

    /// Whether messages or collective operations use the level within hosts, and the level between
    /// hosts.
    pub fn used_levels(&self, graph: &Graph) -> [bool; 2] {
        let mut used_levels = [false; 2];
        for message in &graph.messages {
            used_levels[self.hop(message.lines) as usize] = true;
        }
        for of in &graph.collectives {
            let Spread { hosts, most_on_one, .. } = self.spread[of.group as usize];
            used_levels = [used_levels[0] || most_on_one > 1, used_levels[1] || hosts > 1];
        }
        used_levels
    }

    /// Whether everything is on one host.
    pub fn is_one_host(&self) -> bool {
        self.hosts.iter().all(|host| *host == self.hosts[0])
    }

    /// Whether no two lines share a host.
    pub fn is_one_rank_each(&self) -> bool {
        let mut hosts = self.hosts.clone();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.len() == self.hosts.len()
    }

    /// The level that matters most: between hosts if there are several.
    pub fn main_hop(&self) -> Hop {
        match self.is_one_host() {
            true => Hop::Within,
            false => Hop::Between,
        }
    }

    /// Whether there are ranks that share a host, and ranks on different hosts.
    pub fn levels(&self) -> [bool; 2] {
        [!self.is_one_rank_each(), !self.is_one_host()]
    }

    /// Number of members of a group.
    pub(super) fn members(&self, group: u32) -> usize {
        self.spread[group as usize].members as usize
    }

    #[inline]
    pub(super) fn hop(&self, [from, to]: [u32; 2]) -> Hop {
        match self.hosts[from as usize] == self.hosts[to as usize] {
            true => Hop::Within,
            false => Hop::Between,
        }
    }
}

/// Costs of transfers on a network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs<'c, T = f64> {
    pub network: &'c Network<T>,
    pub placement: &'c Placement,
}

impl<T: Amount> Costs<'_, T> {
    /// Whether a message waits for its receiver.
    #[inline]
    pub fn needs_receiver(&self, message: &Message) -> bool {
        match message.sending {
            SendMode::Synchronous => true,
            SendMode::Local => false,
            SendMode::Standard => {
                message.bytes > self.network.eager_bytes[self.hop(message) as usize]
            }
        }
    }

    /// Cost of a round of a collective operation in which every member needs all others: an equal
    /// share of the operation. Only the work on both sides if no data of another member `arrives`.
    #[inline]
    pub fn round(&self, of: &Collective, arrives: bool) -> T {
        let rounds = self.placement.spread[of.group as usize].members.log2().ceil().max(1.0);
        let path = self.path(of);
        let path = match arrives {
            true => path,
            false => Path { latencies: [0.0; 2], bytes: [0.0; 2], ..path },
        };
        self.along(path, of.bytes) * (1.0 / rounds)
    }

    #[inline]
    fn hop(&self, message: &Message) -> Hop {
        self.placement.hop(message.lines)
    }

    /// CPU time for copying a message, on either side. Messages that need their receiver are not
    /// copied.
    #[inline]
    pub fn copying(&self, message: &Message) -> T {
        match self.needs_receiver(message) {
            true => T::ZERO,
            false => self.network.overhead_per_byte * message.bytes,
        }
    }

    /// From the call that sends to the arrival of an eager message.
    #[inline]
    pub fn eager(&self, message: &Message) -> T {
        let hop = self.hop(message) as usize;
        self.network.overhead
            + self.network.overhead_per_byte * message.bytes
            + self.network.latency[hop]
            + self.network.per_byte[hop] * message.bytes
    }

    /// From the call that sends until the receiver may know of the message.
    #[inline]
    pub fn announced(&self, message: &Message) -> T {
        self.network.overhead + self.network.latency[self.hop(message) as usize]
    }

    /// From when both sides know of each other until the message has left the sender; it arrives
    /// one latency later.
    #[inline]
    pub fn moved(&self, message: &Message) -> T {
        let hop = self.hop(message) as usize;
        self.network.latency[hop] + self.network.per_byte[hop] * message.bytes
    }

    #[inline]
    pub fn latency(&self, message: &Message) -> T {
        self.network.latency[self.hop(message) as usize]
    }

    /// From the last contribution that a member of a collective operation needs until the operation
    /// is done.
    #[inline]
    pub fn collective(&self, of: &Collective) -> T {
        self.along(self.path(of), of.bytes)
    }

    /// From the begin of a collective operation whose root distributes its data until the root is
    /// done. Data that the library takes leave it at once, if no other member's data follow.
    pub fn busy_root(&self, of: &Collective) -> T {
        let spread = &self.placement.spread[of.group as usize];
        let path = self.path(of);
        let limit = self.network.eager_bytes[usize::from(spread.hosts > 1)];
        match of.algorithm.busy_root(spread.members as usize) {
            Some(share) => self.along(path, of.bytes) * share,
            None if of.bytes > limit => self.along(path, of.bytes),
            None => {
                let path = Path { latencies: [0.0; 2], bytes: [0.0; 2], ..path };
                self.along(path, of.bytes) * 0.5
            }
        }
    }

    /// The longest path through a collective operation.
    pub fn path(&self, of: &Collective) -> Path {
        match of.movement {
            Movement::Meeting => Path::default(),
            _ => self.placement.spread[of.group as usize].paths[of.algorithm as usize],
        }
    }

    /// Cost of a path.
    fn along(&self, path: Path, bytes: f64) -> T {
        let Network { overhead, latency, per_byte, overhead_per_byte, .. } = *self.network;
        let [within, between] = path.latencies;
        let steps = overhead * path.overheads + latency[0] * within + latency[1] * between;
        let [within, between] = path.bytes;
        let byte =
            overhead_per_byte * (2.0 * path.copied) + per_byte[0] * within + per_byte[1] * between;
        steps * self.network.collective_steps + byte * self.network.collective_bytes * bytes
    }
}
