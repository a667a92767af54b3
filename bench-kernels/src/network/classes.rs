//! Classes of pairs, given where ranks run: the pair that represents each class, and the flows with
//! several partners.

use crate::network::flow::Edge;
use crate::world::World;

/// Numbers of partners tried besides doubling and all: 1 up to this.
const MAX_SMALL: usize = 4;

/// Pairs with the same kind of connection.
#[derive(Clone, Debug)]
pub struct Class {
    /// `same-host` or `other-host`.
    pub name: &'static str,
    /// The pair to measure; its first rank measures.
    pub pair: (i32, i32),
    /// Possible partners of the first rank in this class, in the order of use.
    partners: Vec<i32>,
    /// Pairs of this class that share no rank, in the order of use.
    apart: Vec<(i32, i32)>,
}

/// Directions used at the same time.
#[derive(Clone, Debug)]
pub struct Shape {
    /// `hub-out`, `hub-in`, `hub-both`: one rank and its partners; `pairs-one-way`, `pairs-both`:
    /// pairs that share no rank.
    pub name: &'static str,
    /// Number of the hub's partners, or number of pairs.
    pub partners: usize,
    /// Who sends to whom.
    pub edges: Vec<Edge>,
    leader: i32,
}

impl Class {
    /// Whether a rank belongs to the pair to measure.
    pub fn takes_part(&self, rank: i32) -> bool {
        [self.pair.0, self.pair.1].contains(&rank)
    }

    /// All flows of the class.
    pub fn shapes(&self, _world: &World) -> Vec<Shape> {
        let hub = self.pair.0;
        let mut shapes = Vec::new();
        let mut add = |name, partners, edges: Vec<(i32, i32)>| {
            let leader = edges.iter().flat_map(|edge| [edge.0, edge.1]).min().unwrap_or(0);
            let edges = edges.into_iter().map(|(from, to)| Edge::new(from, to)).collect();
            shapes.push(Shape { name, partners, edges, leader });
        };
        for count in counts(self.partners.len()) {
            let partners = &self.partners[..count];
            let out: Vec<(i32, i32)> = partners.iter().map(|&partner| (hub, partner)).collect();
            let into: Vec<(i32, i32)> = partners.iter().map(|&partner| (partner, hub)).collect();
            add("hub-both", count, [out.clone(), into.clone()].concat());
            add("hub-out", count, out);
            add("hub-in", count, into);
        }
        for count in counts(self.apart.len()).into_iter().filter(|count| *count > 1) {
            let one_way = self.apart[..count].to_vec();
            let back = one_way.iter().map(|&(from, to)| (to, from));
            add("pairs-both", count, one_way.iter().copied().chain(back).collect());
            add("pairs-one-way", count, one_way);
        }
        shapes
    }
}

impl Shape {
    /// The rank whose clock measures: the lowest one that takes part.
    pub fn leader(&self) -> i32 {
        self.leader
    }
}

/// 1, 2, 3, 4, then doubling, then all.
fn counts(most: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (1..=most.min(MAX_SMALL)).collect();
    let mut next = 2 * MAX_SMALL;
    while next < most {
        counts.push(next);
        next *= 2;
    }
    if most > MAX_SMALL {
        counts.push(most);
    }
    counts
}

/// The classes for which this job has pairs.
pub fn of_world(world: &World) -> Vec<Class> {
    of_hosts(&world.hosts)
}

fn of_hosts(hosts: &[usize]) -> Vec<Class> {
    let on = |host: usize| -> Vec<i32> {
        (0..hosts.len()).filter(|&rank| hosts[rank] == host).map(|rank| rank as i32).collect()
    };
    let count = hosts.iter().max().map_or(0, |host| host + 1);
    let mut classes = Vec::new();
    if let Some(same_host) = (0..count).map(on).find(|ranks| ranks.len() >= 2) {
        let apart = same_host.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let pair = (same_host[0], same_host[1]);
        classes.push(Class { name: "same-host", pair, partners: same_host[1..].to_vec(), apart });
    }
    if count >= 2 {
        let (here, there) = (on(0), on(1));
        // Partners on other hosts, one from each host first, so that they have separate links if
        // possible.
        let others: Vec<Vec<i32>> = (1..count).map(on).collect();
        let longest = others.iter().map(Vec::len).max().unwrap_or(0);
        let partners: Vec<i32> = (0..longest)
            .flat_map(|at| others.iter().filter_map(move |ranks| ranks.get(at).copied()))
            .collect();
        let apart = here.iter().copied().zip(there.iter().copied()).collect();
        classes.push(Class { name: "other-host", pair: (here[0], there[0]), partners, apart });
    }
    classes
}

/// A partner for each rank such that no two pairs share a link if possible: the k-th rank of a host
/// with the k-th rank of its neighbour host, otherwise the first half of the ranks with the second.
/// `None` for a rank without a partner.
pub fn partner_across(hosts: &[usize]) -> Vec<Option<i32>> {
    let count = hosts.iter().max().map_or(0, |host| host + 1);
    let mut partners = vec![None; hosts.len()];
    let mut join = |a: usize, b: usize| {
        partners[a] = Some(b as i32);
        partners[b] = Some(a as i32);
    };
    let on = |host: usize| (0..hosts.len()).filter(move |&rank| hosts[rank] == host);
    if count >= 2 {
        for host in (0..count - 1).step_by(2) {
            on(host).zip(on(host + 1)).for_each(|(a, b)| join(a, b));
        }
    } else {
        let half = hosts.len() / 2;
        (0..half).for_each(|rank| join(rank, rank + half));
    }
    partners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hosts_have_both_classes_and_one_host_has_one() {
        let classes = of_hosts(&[0, 0]);
        assert_eq!(classes.len(), 1);
        assert_eq!((classes[0].name, classes[0].pair), ("same-host", (0, 1)));
        let classes = of_hosts(&[0, 0, 1, 1, 2]);
        assert_eq!(classes.len(), 2);
        assert_eq!(classes[1].pair, (0, 2));
        assert_eq!(classes[1].partners, [2, 4, 3]);
        assert_eq!(classes[1].apart, [(0, 2), (1, 3)]);
        // With one rank per host, no pair shares a host.
        assert_eq!(of_hosts(&[0, 1])[0].name, "other-host");
    }

    #[test]
    fn partner_counts_grow_up_to_all() {
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(3), [1, 2, 3]);
        assert_eq!(counts(11), [1, 2, 3, 4, 8, 11]);
        assert!(counts(0).is_empty());
    }

    #[test]
    fn partners_are_mutual_and_on_other_hosts() {
        assert_eq!(partner_across(&[0, 0, 1, 1]), [Some(2), Some(3), Some(0), Some(1)]);
        assert_eq!(partner_across(&[0, 0, 0, 0]), [Some(2), Some(3), Some(0), Some(1)]);
        assert_eq!(partner_across(&[0, 0, 0]), [Some(1), Some(0), None]);
        assert_eq!(partner_across(&[0, 1, 1]), [Some(1), Some(0), None]);
    }
}
