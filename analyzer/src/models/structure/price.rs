//! How much a call communicates, and what messages cost on a machine that was measured.

use super::labels::{Kind, Pattern};

/// Messages one after another: how many, and the bytes of each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work(Vec<(f64, f64)>);

impl Work {
    pub fn messages(&self) -> f64 {
        self.0.iter().map(|(count, _)| count).sum()
    }

    pub fn bytes(&self) -> f64 {
        self.0.iter().map(|(count, bytes)| count * bytes).sum()
    }

    /// The time of these messages between pairs of one class.
    pub fn seconds(&self, of: &MessageTimes) -> f64 {
        self.0.iter().map(|(count, bytes)| count * of.at(*bytes)).sum()
    }
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
/// `members`, in the same order whatever the numbers are.
pub(super) fn ways(kind: Kind, messages: f64, bytes: f64, members: f64) -> Vec<Work> {
    let q = members.max(2.0);
    let is_power = q.fract() == 0.0 && (q as u64).is_power_of_two();
    // Rounds of a binomial tree, and of recursive doubling, where ranks beyond a power of two
    // exchange with others before and after.
    let rounds = q.log2().ceil();
    let doublings = if is_power { rounds } else { q.log2().floor() + 2.0 };
    let others = q - 1.0;
    let same = |count: f64, bytes: f64| Work(vec![(count, bytes)]);
    // Blocks that double with each round, until there are those of all members.
    let doubling = || {
        let blocks = (0..rounds as i32).map(|round| 2f64.powi(round));
        let blocks = blocks.map(|blocks| blocks.min(q - blocks));
        blocks.map(|blocks| (1.0, blocks * bytes)).collect::<Vec<_>>()
    };
    match kind {
        Kind::Messages => vec![same(messages.max(1.0), bytes / messages.max(1.0))],
        Kind::Collective(Pattern::Synchronise) => {
            vec![
                same(rounds, 0.0),
                same(doublings, 0.0),
                same(others, 0.0),
                same(2.0 * rounds, 0.0),
            ]
        }
        Kind::Collective(Pattern::FromRoot | Pattern::Combine) => {
            // Halves of halves there and back.
            let halves = (1..=rounds as i32).map(|round| (2.0, bytes / 2f64.powi(round)));
            let scattered = (1..=rounds as i32).map(|round| (1.0, bytes / 2f64.powi(round)));
            vec![
                same(rounds, bytes),
                // The root sends to all its children at once.
                same(rounds, rounds * bytes),
                same(doublings, bytes),
                Work(halves.collect()),
                Work(scattered.chain([(others, bytes / q)]).collect()),
                same(others, bytes),
                same(1.0, bytes),
            ]
        }
        Kind::Collective(Pattern::Collect) => vec![
            Work(doubling()),
            Work([(doublings - rounds, bytes)].into_iter().chain(doubling()).collect()),
            same(others, bytes),
            same(1.0, bytes),
        ],
        Kind::Collective(Pattern::Exchange) => {
            vec![same(rounds, bruck(q) * bytes / rounds), same(others, bytes / q)]
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
