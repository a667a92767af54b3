//! Looks for a placement that keeps more traffic inside hosts.

use rustc_hash::FxHashMap;

use super::mapping::Mapping;
use super::what_if::WhatIf;

/// Runs with more ranks are not looked at: the search takes time that grows with their square.
const MAX_RANKS: usize = 4096;

/// A placement with as many ranks on each host, and the bytes that messages carry between hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouping {
    /// The placement; hosts are numbered as they first appear among the ranks.
    pub mapping: Mapping,
    /// Bytes of all messages between ranks.
    pub bytes: f64,
    /// Of these, between hosts as recorded.
    pub between: f64,
    /// The same with this placement.
    pub between_then: f64,
}

/// Bytes between ranks, by their positions in the run; the lower one first.
struct Traffic {
    pairs: FxHashMap<(usize, usize), f64>,
}

impl Traffic {
    fn between(&self, hosts: &[u32]) -> f64 {
        let crossing = self.pairs.iter().filter(|((a, b), _)| hosts[*a] != hosts[*b]);
        crossing.map(|(_, bytes)| bytes).sum()
    }

    /// By rank, the others that it exchanges messages with.
    fn neighbours(&self, ranks: usize) -> Vec<Vec<(usize, f64)>> {
        let mut of_ranks = vec![Vec::new(); ranks];
        for ((a, b), bytes) in &self.pairs {
            of_ranks[*a].push((*b, *bytes));
            of_ranks[*b].push((*a, *bytes));
        }
        of_ranks
    }
}

impl WhatIf<'_> {
    /// The placement with the fewest bytes between hosts that was found; `None` for ranks on one host, or too many.
    pub fn grouping(&self) -> Option<Grouping> {
        let graph = &self.graph;
        let ranks = graph.run.ranks.len();
        if self.placement.is_one_host() || ranks > MAX_RANKS {
            return None;
        }
        let mut pairs: FxHashMap<(usize, usize), f64> = FxHashMap::default();
        for message in &graph.messages {
            let [a, b] = message.lines.map(|line| graph.lines[line as usize].position);
            if a != b {
                *pairs.entry((a.min(b), a.max(b))).or_default() += message.bytes;
            }
        }
        let traffic = Traffic { pairs };
        let recorded = hosts(graph.run.ranks.iter().map(|rank| rank.file.header.host.as_str()));
        let mut room = vec![0; recorded.iter().max().map_or(0, |host| *host as usize + 1)];
        recorded.iter().for_each(|host| room[*host as usize] += 1);
        let found = [blocks(&room), grown(&traffic.neighbours(ranks), &room)];
        let found = found.into_iter().map(|hosts| (traffic.between(&hosts), hosts));
        let (between_then, hosts) = found.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Grouping {
            mapping: Mapping::by_traffic(hosts),
            bytes: traffic.pairs.values().sum(),
            between: traffic.between(&recorded),
            between_then,
        })
    }
}

/// Numbers of hosts, as they first appear.
fn hosts<'h>(names: impl Iterator<Item = &'h str>) -> Vec<u32> {
    let mut known: FxHashMap<&str, u32> = FxHashMap::default();
    names
        .map(|name| {
            let next = known.len() as u32;
            *known.entry(name).or_insert(next)
        })
        .collect()
}

/// Neighbouring ranks together.
fn blocks(room: &[usize]) -> Vec<u32> {
    let of_host = |(host, room): (usize, &usize)| std::iter::repeat_n(host as u32, *room);
    room.iter().enumerate().flat_map(of_host).collect()
}

/// Fills one host after the other, each time with the rank that exchanges most with those already there. Ties: the
/// lower rank.
fn grown(neighbours: &[Vec<(usize, f64)>], room: &[usize]) -> Vec<u32> {
    const NOWHERE: u32 = u32::MAX;
    let mut hosts = vec![NOWHERE; neighbours.len()];
    for (host, room) in room.iter().enumerate() {
        let mut attached = vec![0.0f64; neighbours.len()];
        for _ in 0..*room {
            let free = (0..hosts.len()).filter(|rank| hosts[*rank] == NOWHERE);
            let by_bytes =
                |a: &usize, b: &usize| attached[*a].total_cmp(&attached[*b]).then(b.cmp(a));
            let Some(next) = free.max_by(by_bytes) else { return hosts };
            hosts[next] = host as u32;
            neighbours[next].iter().for_each(|(other, bytes)| attached[*other] += bytes);
        }
    }
    hosts
}
