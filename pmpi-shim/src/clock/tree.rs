//! Decides who exchanges clocks with whom. From the host of every rank follow a rank's partners, in
//! the order of the rounds.
//!
//! Each host has a leader, its lowest rank. A binomial tree spans the leaders, and one more spans
//! the ranks of each host; both are walked from the root. In the first round, the root's clock goes
//! to one rank; in every further round, each rank that has the root's clock passes it to one that
//! does not. So a child is always measured against a clock that is already global, after ⌈log₂
//! hosts⌉ + ⌈log₂ ranks of a host⌉ rounds.

use std::collections::HashMap;

/// One exchange of this rank, in the order of the tree's rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partner {
    /// The other's rank.
    pub rank: u32,
    /// Whether the partner provides the clock.
    pub is_parent: bool,
    /// Whether the partner runs on the same host.
    pub same_host: bool,
}

/// Adds the partners of member `index` in a binomial tree of `members` with member 0 at the root,
/// round by round.
fn tree(members: &[u32], index: usize, same_host: bool, partners: &mut Vec<Partner>) {
    let mut step = members.len().next_power_of_two() / 2;
    while step > 0 {
        if index.is_multiple_of(2 * step) {
            if let Some(&rank) = members.get(index + step) {
                partners.push(Partner { rank, is_parent: false, same_host });
            }
        } else if index % (2 * step) == step {
            partners.push(Partner { rank: members[index - step], is_parent: true, same_host });
        }
        step /= 2;
    }
}

/// The partners of `rank` when rank r runs on host `hosts[r]`.
pub fn partners(hosts: &[u64], rank: u32) -> Vec<Partner> {
    let Some(mine) = hosts.get(rank as usize) else { return Vec::new() };
    let mut number_of_host: HashMap<u64, usize> = HashMap::new();
    let mut leaders: Vec<u32> = Vec::new();
    let mut mates: Vec<u32> = Vec::new();
    for (other, host) in (0u32..).zip(hosts) {
        number_of_host.entry(*host).or_insert_with(|| {
            leaders.push(other);
            leaders.len() - 1
        });
        if host == mine {
            mates.push(other);
        }
    }
    let mut found = Vec::new();
    if mates.first() == Some(&rank) {
        tree(&leaders, number_of_host[mine], false, &mut found);
    }
    if let Ok(index) = mates.binary_search(&rank) {
        tree(&mates, index, true, &mut found);
    }
    found
}

/// Like [`partners`], but only these ranks take part: (rank, host), the root first.
pub fn partners_among(members: &[(u32, u64)], rank: u32) -> Vec<Partner> {
    let hosts: Vec<u64> = members.iter().map(|member| member.1).collect();
    let Some(index) = members.iter().position(|member| member.0 == rank) else { return Vec::new() };
    let mut found = partners(&hosts, index as u32);
    for partner in &mut found {
        partner.rank = members[partner.rank as usize].0;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates all exchanges and returns the round in which each rank gets the clock.
    fn rounds(hosts: &[u64]) -> Vec<u32> {
        let all: Vec<Vec<Partner>> =
            (0..hosts.len() as u32).map(|rank| partners(hosts, rank)).collect();
        for (rank, partners) in all.iter().enumerate() {
            assert_eq!(partners.iter().filter(|p| p.is_parent).count(), usize::from(rank != 0));
        }
        let mut at = vec![0usize; hosts.len()];
        let mut knows = vec![None; hosts.len()];
        knows[0] = Some(0);
        for round in 1.. {
            let mut met = Vec::new();
            for (rank, partners) in all.iter().enumerate() {
                let Some(partner) = partners.get(at[rank]) else { continue };
                let other = partner.rank as usize;
                let Some(back) = all[other].get(at[other]) else { continue };
                if back.rank as usize == rank {
                    assert_ne!(partner.is_parent, back.is_parent);
                    assert_eq!(partner.same_host, hosts[rank] == hosts[other]);
                    met.push((rank, other, partner.is_parent));
                }
            }
            if met.is_empty() {
                break;
            }
            for (rank, other, other_is_parent) in met {
                at[rank] += 1;
                if other_is_parent {
                    let given: Option<u32> = knows[other];
                    assert!(
                        given.is_some_and(|given| given < round),
                        "{rank} asks {other} before it has the clock"
                    );
                    knows[rank] = Some(round);
                }
            }
        }
        assert!(
            all.iter().zip(&at).all(|(partners, at)| partners.len() == *at),
            "every pair was matched"
        );
        knows.into_iter().map(|round| round.expect("every rank gets the clock")).collect()
    }

    fn ceil_log2(count: usize) -> u32 {
        count.next_power_of_two().trailing_zeros()
    }

    #[test]
    fn gives_every_rank_the_root_clock_in_logarithmic_rounds() {
        for size in 1..70usize {
            for hosts in [1, 2, 3, 5, 8, 64] {
                // Ranks placed on hosts in blocks, and round-robin.
                let per_host = size.div_ceil(hosts);
                let blocks: Vec<u64> = (0..size).map(|rank| (rank / per_host) as u64).collect();
                let cards: Vec<u64> = (0..size).map(|rank| (rank % hosts) as u64).collect();
                for placement in [blocks, cards] {
                    let used: std::collections::BTreeSet<_> = placement.iter().collect();
                    let fullest = used
                        .iter()
                        .map(|host| placement.iter().filter(|other| *other == *host).count())
                        .max();
                    let most = ceil_log2(used.len()) + ceil_log2(fullest.unwrap_or(1));
                    let latest = rounds(&placement).into_iter().max().unwrap_or(0);
                    assert!(latest <= most, "{size} ranks, {hosts} hosts: {latest} rounds");
                }
            }
        }
    }

    #[test]
    fn connects_host_leaders_first_then_ranks_of_each_host() {
        let hosts = [1, 2, 1, 2, 3];
        let parent = |rank| {
            let parent = partners(&hosts, rank).into_iter().find(|partner| partner.is_parent);
            parent.map(|partner| (partner.rank, partner.same_host))
        };
        let parents: Vec<_> = (0..5).map(parent).collect();
        assert_eq!(
            parents,
            [None, Some((0, false)), Some((0, true)), Some((1, true)), Some((0, false))]
        );
    }

    #[test]
    fn never_pairs_with_ranks_that_do_not_take_part() {
        let members = [(2, 7), (3, 7), (6, 9), (9, 9)];
        for (rank, _) in members {
            for partner in partners_among(&members, rank) {
                let back = partners_among(&members, partner.rank);
                let back = back
                    .iter()
                    .find(|other| other.rank == rank)
                    .expect("each partner lists the other");
                assert_ne!(back.is_parent, partner.is_parent);
            }
        }
        let root = partners_among(&members, 2);
        assert!(root.iter().all(|partner| !partner.is_parent));
        assert_eq!(partners_among(&members, 0), []);
        assert_eq!(partners(&[], 0), []);
    }
}
