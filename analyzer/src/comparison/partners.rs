//! A digest of who sends messages to whom. It tells whether two runs have the same pairs of ranks
//! and, if not, whether the pattern is the same with the ranks in another order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum number of pairs that a record lists.
const MAX_PAIRS: usize = 32;
/// Rounds of refinement: in each, the colours of a rank's partners are mixed into its own
/// (Weisfeiler and Leman 1968).
const ROUNDS: usize = 4;

/// A digest of messages by pair of ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Partners {
    /// Number of pairs of sender and receiver.
    pub pairs: u64,
    /// Hash of the pairs and their message counts.
    pub digest: String,
    /// Hash that does not depend on the order of the ranks.
    pub shape: String,
    /// Messages between hosts.
    pub between_hosts: u64,
    /// Sender, receiver and messages of the pairs with most messages; lowest ranks first among
    /// equals.
    pub heaviest: Vec<(u32, u32, u64)>,
}

/// Hash of numbers by Fowler, Noll and Vo, version 1a. It must never change.
fn hash(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Partners {
    /// Digests the messages by sender and receiver; `host_of` numbers the hosts of ranks.
    pub fn new(pairs: &BTreeMap<(u32, u32), u64>, host_of: impl Fn(u32) -> usize) -> Self {
        let all = pairs.iter();
        let digest = hash(all.clone().flat_map(|((a, b), n)| [u64::from(*a), u64::from(*b), *n]));
        let crosses = |((a, b), _): &(&(u32, u32), &u64)| host_of(*a) != host_of(*b);
        let mut heaviest: Vec<(u32, u32, u64)> =
            all.clone().map(|((a, b), n)| (*a, *b, *n)).collect();
        heaviest.sort_by_key(|(a, b, count)| (std::cmp::Reverse(*count), *a, *b));
        heaviest.truncate(MAX_PAIRS);
        Self {
            pairs: pairs.len() as u64,
            digest: format!("{digest:016x}"),
            shape: format!("{:016x}", shape(pairs)),
            between_hosts: all.filter(crosses).map(|(_, count)| count).sum(),
            heaviest,
        }
    }

    /// Whether it is the same pattern with the ranks in another order.
    pub fn is_reordered(&self, other: &Self) -> bool {
        self.digest != other.digest && self.shape == other.shape
    }
}

/// A hash of the pattern that does not depend on the numbers of the ranks.
fn shape(pairs: &BTreeMap<(u32, u32), u64>) -> u64 {
    let mut partners: BTreeMap<u32, Vec<(u64, u32, u64)>> = BTreeMap::new();
    for ((from, to), count) in pairs {
        partners.entry(*from).or_default().push((0, *to, *count));
        partners.entry(*to).or_default().push((1, *from, *count));
    }
    let mut colours: BTreeMap<u32, u64> = partners.keys().map(|rank| (*rank, 1)).collect();
    for _ in 0..ROUNDS {
        let of_rank = |(rank, partners): (&u32, &Vec<(u64, u32, u64)>)| {
            let seen = partners.iter().map(|(way, of, count)| hash([*way, colours[of], *count]));
            let mut seen: Vec<u64> = seen.collect();
            seen.sort_unstable();
            (*rank, hash([colours[rank]].into_iter().chain(seen)))
        };
        colours = partners.iter().map(of_rank).collect();
    }
    let mut all: Vec<u64> = colours.into_values().collect();
    all.sort_unstable();
    hash(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(order: &[u32]) -> BTreeMap<(u32, u32), u64> {
        let next = |at: usize| order[(at + 1) % order.len()];
        (0..order.len()).map(|at| ((order[at], next(at)), 20)).collect()
    }

    fn partners(pairs: &BTreeMap<(u32, u32), u64>) -> Partners {
        Partners::new(pairs, |rank| rank as usize / 2)
    }

    #[test]
    fn distinguishes_reordered_ranks_from_other_pattern() {
        let before = partners(&ring(&[0, 1, 2, 3]));
        let reordered = partners(&ring(&[0, 2, 1, 3]));
        assert!(reordered.is_reordered(&before) && !before.is_reordered(&before));
        assert_eq!((before.between_hosts, reordered.between_hosts), (40, 80));
        let mut other = ring(&[0, 1, 2, 3]);
        other.insert((0, 2), 20);
        assert!(!partners(&other).is_reordered(&before));
        let more = ring(&[0, 1, 2, 3]).into_iter().map(|(pair, n)| (pair, n + 1)).collect();
        assert_ne!(partners(&more).shape, before.shape);
    }

    #[test]
    fn digest_never_changes() {
        assert_eq!(partners(&ring(&[0, 1])).digest, format!("{:016x}", hash([0, 1, 20, 1, 0, 20])));
        assert_eq!(hash([]), 0xcbf2_9ce4_8422_2325);
    }
}
