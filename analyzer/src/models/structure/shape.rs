//! Rounds of messages on a communicator, of which algorithms are made.

use super::work::{Messages, Work};

/// A communicator, as far as algorithms depend on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// At least 2.
    pub members: f64,
    /// How many of them share a host.
    pub per_host: f64,
    /// Communicators like this that a host has members of, which call at once.
    pub groups: f64,
}

impl Shape {
    pub fn is_power(self) -> bool {
        self.members.fract() == 0.0 && (self.members as u64).is_power_of_two()
    }

    pub fn is_on_one_host(self) -> bool {
        self.members <= self.per_host
    }

    /// Rounds of a binomial tree.
    pub fn rounds(self) -> i32 {
        self.members.log2().ceil() as i32
    }

    /// Messages one after another within a host.
    pub fn near(self, count: f64, bytes: f64) -> Messages {
        Messages { count, bytes, off_host: None, at_once: 1.0 }
    }

    /// Messages one after another between hosts, if there are several; so many members of a host send at once.
    pub fn far(self, count: f64, bytes: f64, senders: f64) -> Messages {
        let off_host = (!self.is_on_one_host()).then_some(senders * self.groups);
        Messages { off_host, ..self.near(count, bytes) }
    }

    fn rounds_at(
        self,
        bytes: impl Fn(i32) -> f64,
        of: impl Fn(f64, f64) -> Messages,
    ) -> Vec<Messages> {
        (0..self.rounds()).map(|round| of(2f64.powi(round), bytes(round))).collect()
    }

    /// Rounds in which every member exchanges with one twice as far as in the round before.
    pub fn doubling(self, bytes: impl Fn(i32) -> f64) -> Vec<Messages> {
        self.rounds_at(bytes, |distance, bytes| match distance < self.per_host {
            true => self.near(1.0, bytes),
            false => self.far(1.0, bytes, self.per_host),
        })
    }

    /// The same rounds, in which one member of a host at most sends to another host.
    pub fn tree(self, bytes: f64) -> Vec<Messages> {
        self.rounds_at(
            |_| bytes,
            |distance, bytes| match distance < self.per_host {
                true => self.near(1.0, bytes),
                false => self.far(1.0, bytes, 1.0),
            },
        )
    }

    /// Rounds in which every member sends to the one so many after it, which for the last of a host is on another.
    pub fn shifts(self, bytes: impl Fn(i32) -> f64) -> Vec<Messages> {
        self.rounds_at(bytes, |distance, bytes| self.far(1.0, bytes, distance.min(self.per_host)))
    }

    /// With what ranks beyond a power of two do before and after.
    pub fn folded(self, messages: Vec<Messages>, bytes: f64) -> Vec<Messages> {
        let extra = match self.is_power() {
            true => 0.0,
            false => self.members.log2().floor() + 2.0 - f64::from(self.rounds()),
        };
        let neighbour = match self.per_host > 1.0 {
            true => self.near(extra, bytes),
            false => self.far(extra, bytes, 1.0),
        };
        [neighbour].into_iter().chain(messages).collect()
    }

    /// To every other member, those on the own host and the others.
    pub fn all(self, bytes: f64) -> Vec<Messages> {
        let near = (self.per_host.min(self.members) - 1.0).max(0.0);
        vec![self.near(near, bytes), self.far(self.members - 1.0 - near, bytes, self.per_host)]
    }

    /// From one member to every other, or back.
    pub fn fan(self, bytes: f64) -> Vec<Messages> {
        let single = Self { groups: self.groups / self.per_host.max(1.0), ..self };
        single.all(bytes)
    }

    /// Around a ring, where each round takes as long as its slowest message.
    pub fn around(self, bytes: f64) -> Vec<Messages> {
        vec![self.far(self.members - 1.0, bytes, 1.0)]
    }

    /// Halves of halves.
    pub fn halves(self, bytes: f64) -> Vec<Messages> {
        self.doubling(|round| bytes / 2f64.powi(round + 1))
    }

    /// Blocks that double with each round, until there are those of all members.
    pub fn blocks(self, block: f64) -> Vec<Messages> {
        self.doubling(|round| {
            let blocks = 2f64.powi(round);
            blocks.min(self.members - blocks) * block
        })
    }

    /// First among the ranks of each host, with so many messages there, then between hosts.
    pub fn by_hosts(self, bytes: f64, near: impl Fn(f64) -> f64) -> Vec<Messages> {
        let on_host = self.per_host.min(self.members).max(1.0);
        let rounds = (self.members / on_host).log2().ceil().max(0.0);
        vec![self.near(near(on_host), bytes), self.far(rounds, bytes, 1.0)]
    }

    /// Share of its bytes that a member passes on in all rounds of Bruck's algorithm together: the block
    /// for the member at distance j goes once for each bit of j.
    pub fn passed_on(self) -> f64 {
        let members = self.members.round() as u64;
        let bits: u32 = (1..members).map(u64::count_ones).sum();
        f64::from(bits) / members as f64
    }

    pub fn named(self, algorithm: &'static str, messages: Vec<Messages>) -> Work {
        Work { algorithm, messages }
    }
}
