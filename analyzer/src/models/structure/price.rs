//! How much a call communicates, and what messages cost on a machine that was measured.

use super::labels::{Kind, Pattern};

/// Messages of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Messages {
    count: f64,
    /// Of each.
    bytes: f64,
    /// How many ranks on the receiver is.
    distance: f64,
}

/// Messages one after another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work {
    messages: Vec<Messages>,
    /// Ranks on a host: nearer ranks than these share one.
    per_host: f64,
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
        let times = self.messages.iter().map(|of| match self.is_between_hosts(of) {
            false => {
                let times = machine.same_host.as_ref().or(machine.other_host.as_ref())?;
                Some(of.count * times.at(of.bytes))
            }
            true => {
                let times = machine.other_host.as_ref()?;
                let ranks = match sharing {
                    Sharing::Alone => 1.0,
                    Sharing::Host => self.per_host.max(1.0),
                };
                let (empty, whole) = (times.at(0.0), times.at(of.bytes));
                Some(of.count * (empty + ranks * (whole - empty)))
            }
        });
        times.sum()
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
}

/// Times of messages between two ranks, by size.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageTimes(Vec<(f64, f64)>);

impl MessageTimes {
    /// Of sizes in bytes and seconds; `None` without at least two sizes.
    pub fn new(mut sizes: Vec<(f64, f64)>) -> Option<Self> {
        sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
        sizes.dedup_by_key(|of| of.0);
        (sizes.len() > 1).then_some(Self(sizes))
    }

    /// The time of a message, linear between the sizes that were measured.
    fn at(&self, bytes: f64) -> f64 {
        let Self(sizes) = self;
        let after = sizes.partition_point(|(size, _)| *size < bytes).clamp(1, sizes.len() - 1);
        let ((from, from_s), (to, to_s)) = (sizes[after - 1], sizes[after]);
        // Messages smaller than any that was measured take as long as the smallest.
        from_s + (bytes.max(sizes[0].0) - from) / (to - from) * (to_s - from_s)
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
    let q = members.max(2.0);
    let is_power = q.fract() == 0.0 && (q as u64).is_power_of_two();
    // Rounds of a binomial tree, and of recursive doubling, where ranks beyond a power of two
    // exchange with others before and after.
    let rounds = q.log2().ceil() as i32;
    let extra = if is_power { 0.0 } else { q.log2().floor() + 2.0 - f64::from(rounds) };
    let others = q - 1.0;
    let work = |messages: Vec<Messages>| Work { messages, per_host };
    let each = |count: f64, bytes: f64, distance: f64| Messages { count, bytes, distance };
    // One message in each round, to ranks twice as far as in the round before.
    let tree = |of: &dyn Fn(i32) -> f64| -> Vec<Messages> {
        (0..rounds).map(|round| each(1.0, of(round), 2f64.powi(round))).collect()
    };
    // What ranks beyond a power of two do before and after.
    let folded = |messages: Vec<Messages>, bytes: f64| {
        [each(extra, bytes, 1.0)].into_iter().chain(messages).collect::<Vec<_>>()
    };
    // To every other rank, those on the own host and the others.
    let all = |bytes: f64| {
        let near = (per_host.min(q) - 1.0).max(0.0);
        vec![each(near, bytes, 1.0), each(others - near, bytes, per_host)]
    };
    // Around a ring, where each round takes as long as its slowest message.
    let ring = |bytes: f64| vec![each(others, bytes, if q > per_host { per_host } else { 1.0 })];
    let farthest = if q > per_host { per_host } else { 1.0 };
    // Blocks that double with each round, until there are those of all members.
    let doubling = || {
        tree(&|round| {
            let blocks = 2f64.powi(round);
            blocks.min(q - blocks) * bytes
        })
    };
    match kind {
        Kind::Messages => {
            vec![work(vec![each(messages.max(1.0), bytes / messages.max(1.0), farthest)])]
        }
        Kind::Collective(Pattern::Synchronise) => vec![
            work(tree(&|_| 0.0)),
            work(folded(tree(&|_| 0.0), 0.0)),
            work(all(0.0)),
            work([tree(&|_| 0.0), tree(&|_| 0.0)].concat()),
        ],
        Kind::Collective(Pattern::FromRoot | Pattern::Combine) => {
            // Halves of halves, there and back.
            let halves = || tree(&|round| bytes / 2f64.powi(round + 1));
            vec![
                work(tree(&|_| bytes)),
                // The root sends to all its children at once.
                work(tree(&|_| f64::from(rounds) * bytes)),
                work(folded(tree(&|_| bytes), bytes)),
                work([halves(), halves()].concat()),
                work([halves(), ring(bytes / q)].concat()),
                work(all(bytes)),
                work(vec![each(1.0, bytes, farthest)]),
            ]
        }
        Kind::Collective(Pattern::Collect) => vec![
            work(doubling()),
            work(folded(doubling(), bytes)),
            work(ring(bytes)),
            work(vec![each(1.0, bytes, farthest)]),
        ],
        Kind::Collective(Pattern::Exchange) => {
            let passed = bruck(q) * bytes / f64::from(rounds);
            vec![work(tree(&|_| passed)), work(all(bytes / q))]
        }
        Kind::Computation | Kind::Other => Vec::new(),
    }
}

/// Share of its bytes that a member passes on in all rounds of Bruck's algorithm together: the block
/// for the member at distance j goes once for each bit of j.
fn bruck(q: f64) -> f64 {
    let q = q.round() as u64;
    let bits: u32 = (1..q).map(u64::count_ones).sum();
    f64::from(bits) / q as f64
}
