//! How much a call communicates, and what messages cost on a machine that was measured.

use super::labels::{Kind, Pattern};
use super::library::Library;

/// Messages of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Messages {
    pub count: f64,
    /// Of each.
    pub bytes: f64,
    /// How many ranks on the receiver is.
    pub distance: f64,
    /// All are under way at once, instead of one after another.
    pub posted: bool,
}

/// Messages one after another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work {
    /// What libraries call it; nothing where it is the same at every size.
    pub algorithm: &'static str,
    pub messages: Vec<Messages>,
    /// Ranks on a host: nearer ranks than these share one.
    pub per_host: f64,
}

impl Work {
    fn is_between_hosts(&self, of: &Messages) -> bool {
        of.distance >= self.per_host
    }

    /// Those between hosts, for others take much less time; all of them if none is.
    fn slowest(&self) -> impl Iterator<Item = &Messages> {
        let all = || self.messages.iter().filter(|of| of.count > 0.0);
        let any = all().any(|of| self.is_between_hosts(of));
        all().filter(move |of| !any || self.is_between_hosts(of))
    }

    pub fn messages(&self) -> f64 {
        self.slowest().map(|of| of.count).sum()
    }

    pub fn bytes(&self) -> f64 {
        self.slowest().map(|of| of.count * of.bytes).sum()
    }

    /// The time of these messages on a machine, if `sharing` ranks of a host send to other hosts at
    /// once; `None` if it was not measured between such ranks.
    pub fn seconds(&self, machine: &MachineTimes, sharing: Sharing) -> Option<f64> {
        let (mut sum, mut longest) = (0.0, 0.0f64);
        for of in self.messages.iter().filter(|of| of.count > 0.0) {
            let (times, ranks) = match (self.is_between_hosts(of), sharing) {
                (false, _) => (machine.same_host.as_ref().or(machine.other_host.as_ref())?, 1.0),
                (true, Sharing::Alone) => (machine.other_host.as_ref()?, 1.0),
                (true, Sharing::Host) => (machine.other_host.as_ref()?, self.per_host.max(1.0)),
            };
            // Messages that leave a host at once follow each other.
            let (whole, gap) = (times.at(of.bytes), times.gap(of.bytes));
            match of.posted {
                false => sum += of.count * (whole + (ranks - 1.0) * gap),
                true => {
                    sum += (of.count * ranks - 1.0) * gap;
                    longest = longest.max(whole);
                }
            }
        }
        Some(sum + longest)
    }
}

/// Who sends off a host at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// One rank.
    Alone,
    /// All its ranks.
    Host,
}

/// Times of messages on a machine, as far as they were measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineTimes {
    pub same_host: Option<MessageTimes>,
    pub other_host: Option<MessageTimes>,
    /// The library with which they were measured, if its rules are known.
    pub library: Option<Library>,
}

/// Times of messages of one size between two ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageTime {
    pub bytes: f64,
    /// Seconds from one rank to the other: half a round trip.
    pub half_rtt_s: f64,
    /// Seconds from one message to the next where many are under way: LogP's g.
    pub gap_s: f64,
}

/// Times of messages between two ranks, by size.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageTimes {
    /// Ascending, at least two.
    sizes: Vec<MessageTime>,
    /// Bytes up to which messages are sent at once, if it is known.
    pub(super) eager_limit: Option<f64>,
}

impl MessageTimes {
    /// `None` without at least two sizes.
    pub fn new(mut sizes: Vec<MessageTime>) -> Option<Self> {
        sizes.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
        sizes.dedup_by_key(|of| of.bytes);
        (sizes.len() > 1).then_some(Self { sizes, eager_limit: None })
    }

    /// With the bytes up to which messages are sent at once.
    pub fn with_eager_limit(self, eager_limit: Option<f64>) -> Self {
        Self { eager_limit, ..self }
    }

    /// The time of a message.
    fn at(&self, bytes: f64) -> f64 {
        self.between(bytes, |of| of.half_rtt_s)
    }

    /// The time from one message to the next.
    fn gap(&self, bytes: f64) -> f64 {
        self.between(bytes, |of| of.gap_s)
    }

    /// Linear between the sizes that were measured.
    fn between(&self, bytes: f64, of: impl Fn(&MessageTime) -> f64) -> f64 {
        let Self { sizes, .. } = self;
        let after = sizes.partition_point(|of| of.bytes < bytes).clamp(1, sizes.len() - 1);
        let (from, to) = (&sizes[after - 1], &sizes[after]);
        // Messages smaller than any that was measured take as long as the smallest.
        let share = (bytes.max(sizes[0].bytes) - from.bytes) / (to.bytes - from.bytes);
        of(from) + share * (of(to) - of(from))
    }
}

/// A communicator, as far as algorithms depend on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// At least 2.
    pub members: f64,
    /// How many of them share a host.
    pub per_host: f64,
}

impl Shape {
    pub fn work(self, messages: Vec<Messages>) -> Work {
        Work { algorithm: "", messages, per_host: self.per_host }
    }

    pub fn each(self, count: f64, bytes: f64, distance: f64) -> Messages {
        Messages { count, bytes, distance, posted: false }
    }

    pub fn is_power(self) -> bool {
        self.members.fract() == 0.0 && (self.members as u64).is_power_of_two()
    }

    /// Rounds of a binomial tree.
    pub fn rounds(self) -> i32 {
        self.members.log2().ceil() as i32
    }

    /// The distance of a message between hosts, if there are several.
    pub fn farthest(self) -> f64 {
        if self.members > self.per_host { self.per_host } else { 1.0 }
    }

    /// One message in each round, to ranks twice as far as in the round before.
    pub fn rounds_of(self, bytes: impl Fn(i32) -> f64) -> Vec<Messages> {
        (0..self.rounds()).map(|round| self.each(1.0, bytes(round), 2f64.powi(round))).collect()
    }

    /// With what ranks beyond a power of two do before and after.
    pub fn folded(self, messages: Vec<Messages>, bytes: f64) -> Vec<Messages> {
        let extra = match self.is_power() {
            true => 0.0,
            false => self.members.log2().floor() + 2.0 - f64::from(self.rounds()),
        };
        [self.each(extra, bytes, 1.0)].into_iter().chain(messages).collect()
    }

    /// To every other rank, those on the own host and the others.
    pub fn all(self, bytes: f64) -> Vec<Messages> {
        let near = (self.per_host.min(self.members) - 1.0).max(0.0);
        let far = self.members - 1.0 - near;
        vec![self.each(near, bytes, 1.0), self.each(far, bytes, self.per_host)]
    }

    /// Around a ring, where each round takes as long as its slowest message.
    pub fn around(self, bytes: f64) -> Vec<Messages> {
        vec![self.each(self.members - 1.0, bytes, self.farthest())]
    }

    /// First among the ranks of each host, one after another or in rounds there and back, then between hosts.
    pub fn by_hosts(self, bytes: f64, in_rounds: bool) -> Vec<Messages> {
        let on_host = self.per_host.min(self.members).max(1.0);
        let near = if in_rounds { 2.0 * on_host.log2().ceil() } else { on_host - 1.0 };
        let far = (self.members / on_host).log2().ceil().max(0.0);
        vec![self.each(near, bytes, 1.0), self.each(far, bytes, self.farthest())]
    }

    /// Blocks that double with each round, until there are those of all members.
    pub fn doubling(self, block: f64) -> Vec<Messages> {
        self.rounds_of(|round| {
            let blocks = 2f64.powi(round);
            blocks.min(self.members - blocks) * block
        })
    }

    /// Share of its bytes that a member passes on in all rounds of Bruck's algorithm together: the block
    /// for the member at distance j goes once for each bit of j.
    pub fn passed_on(self) -> f64 {
        let members = self.members.round() as u64;
        let bits: u32 = (1..members).map(u64::count_ones).sum();
        f64::from(bits) / members as f64
    }
}

/// The usual ways to carry out a call with these messages and bytes on a communicator with
/// `members`, of which `per_host` share a host, in the same order whatever the numbers are.
pub(super) fn ways(
    kind: Kind,
    messages: f64,
    bytes: f64,
    members: f64,
    per_host: f64,
) -> Vec<Work> {
    let shape = Shape { members: members.max(2.0), per_host };
    let q = shape.members;
    let work = |messages| shape.work(messages);
    let tree = |bytes: f64| shape.rounds_of(|_| bytes);
    match kind {
        Kind::Messages => {
            let each = bytes / messages.max(1.0);
            vec![work(vec![shape.each(messages.max(1.0), each, shape.farthest())])]
        }
        Kind::Collective(Pattern::Synchronise) => {
            vec![
                work(tree(0.0)),
                work(shape.folded(tree(0.0), 0.0)),
                work(shape.all(0.0)),
                work([tree(0.0), tree(0.0)].concat()),
                work(shape.by_hosts(0.0, false)),
                work(shape.by_hosts(0.0, true)),
                // Ranks beyond a power of two take part in the rounds of others.
                work(vec![shape.each(q.log2().floor(), 0.0, shape.farthest())]),
            ]
        }
        Kind::Collective(Pattern::FromRoot | Pattern::Combine) => {
            // Halves of halves, there and back.
            let halves = || shape.rounds_of(|round| bytes / 2f64.powi(round + 1));
            vec![
                work(tree(bytes)),
                // The root sends to all its children at once.
                work(tree(f64::from(shape.rounds()) * bytes)),
                work(shape.folded(tree(bytes), bytes)),
                work([halves(), halves()].concat()),
                work([halves(), shape.around(bytes / q)].concat()),
                work(shape.all(bytes)),
                work(vec![shape.each(1.0, bytes, shape.farthest())]),
                work(shape.by_hosts(bytes, false)),
                work(shape.by_hosts(bytes, true)),
            ]
        }
        Kind::Collective(Pattern::Collect | Pattern::ToRoot) => vec![
            work(shape.doubling(bytes)),
            work(shape.folded(shape.doubling(bytes), bytes)),
            work(shape.around(bytes)),
            work(vec![shape.each(1.0, bytes, shape.farthest())]),
        ],
        Kind::Collective(Pattern::Exchange) => {
            let passed = shape.passed_on() * bytes / f64::from(shape.rounds());
            vec![work(tree(passed)), work(shape.all(bytes / q))]
        }
        Kind::Computation | Kind::Other => Vec::new(),
    }
}
