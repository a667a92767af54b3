//! From every counter to the root's: one hop a rank comes in, the composed map to rank 0's counter
//! goes out, for every rank whose parents lead there.

use std::collections::HashMap;

use crate::trace::{FileDiagnosis, RankTrace, Run};

use super::Alignment;
use super::exchange::{Hop, LinearMap, Rates, hop};
use super::frequency::Frequency;
use super::stretch::Stretch;

/// A rank's counter on that of rank 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RootMap {
    pub map: LinearMap,
    pub bound_ns: f64,
    pub alignment: Alignment,
}

impl RootMap {
    const ROOT: Self =
        Self { map: LinearMap::identity_at(0), bound_ns: 0.0, alignment: Alignment::Reference };
}

/// The hops of all ranks.
#[derive(Debug)]
pub(super) struct Chains<'a> {
    run: &'a Run,
    frequencies: &'a [Frequency],
    hops: Vec<Option<Hop>>,
    /// Exchanges that cannot be used.
    pub diagnoses: Vec<FileDiagnosis>,
}

impl<'a> Chains<'a> {
    /// Reads every rank's exchanges.
    pub fn new(run: &'a Run, frequencies: &'a [Frequency], stretches: &[Stretch]) -> Self {
        let mut diagnoses = Vec::new();
        let mut hops = Vec::with_capacity(run.ranks.len());
        for (index, rank) in run.ranks.iter().enumerate() {
            let own = &frequencies[index];
            let parent = rank.facts.exchanges.first().and_then(|e| run.position_of(e.parent));
            // A parent whose file is missing: its counter is taken to run like this one.
            let other = parent.map_or(own, |parent| &frequencies[parent]);
            let rates = Rates {
                expected: other.ticks_per_s / own.ticks_per_s,
                relative_uncertainty: own.relative_uncertainty + other.relative_uncertainty,
                stretch_ticks: stretches[index].end_ticks - stretches[index].begin_ticks,
            };
            let found = match rank.rank {
                0 => Ok(None),
                _ => hop(&rank.facts.exchanges, rates),
            };
            hops.push(found.unwrap_or_else(|what| {
                diagnoses.push(FileDiagnosis { file: rank.name.clone(), what });
                None
            }));
        }
        Self { run, frequencies, hops, diagnoses }
    }

    /// Composes the hops along the parents; `None` where neither they nor a host-mate's lead to
    /// rank 0.
    pub fn resolve(&self) -> Vec<Option<RootMap>> {
        let mut maps = vec![None; self.hops.len()];
        let mut visited = vec![false; self.hops.len()];
        for start in 0..self.hops.len() {
            let mut path = Vec::new();
            let mut at = Some(start);
            let mut reached = None;
            // Each rank is entered once: a loop of parents, or a second visit, ends the walk.
            while let Some(index) = at {
                if self.run.ranks[index].rank == 0 {
                    maps[index] = Some(RootMap::ROOT);
                }
                if visited[index] || maps[index].is_some() {
                    reached = maps[index];
                    break;
                }
                visited[index] = true;
                path.push(index);
                let Some(hop) = &self.hops[index] else { break };
                at = self.run.position_of(hop.parent);
                if at.is_none() && hop.parent == 0 {
                    // Rank 0's file is missing; its counter still is the common reference.
                    reached = Some(RootMap::ROOT);
                }
            }
            for index in path.into_iter().rev() {
                reached = match (reached, &self.hops[index]) {
                    (Some(parent), Some(hop)) => self.compose(index, hop, &parent),
                    _ => None,
                };
                maps[index] = reached;
            }
        }
        self.share_with_host_mates(&mut maps);
        maps
    }

    fn compose(&self, index: usize, hop: &Hop, parent: &RootMap) -> Option<RootMap> {
        let hop_ns = hop.bound_ticks / self.frequencies[index].ticks_per_s * 1e9;
        let map = hop.map.then(&parent.map);
        let alignment = if hop.shared { Alignment::SharedCounter } else { Alignment::Measured };
        map.is_possible().then_some(RootMap { map, bound_ns: parent.bound_ns + hop_ns, alignment })
    }

    /// Lets ranks whose chain does not lead to rank 0 share the map of a host-mate, when both
    /// counters are invariant and no exchange of theirs speaks against it.
    fn share_with_host_mates(&self, maps: &mut [Option<RootMap>]) {
        let ranks = &self.run.ranks;
        let sharable = |index: usize| ranks[index].file.header.counter_invariant;
        let mut clocks = HashMap::new();
        for (index, map) in maps.iter().enumerate().filter(|(index, _)| sharable(*index)) {
            if let Some(map) = map {
                clocks.entry(host_counter(&ranks[index])).or_insert(*map);
            }
        }
        for (index, map) in maps.iter_mut().enumerate() {
            let own = self.hops[index].as_ref();
            if map.is_none() && sharable(index) && own.is_none_or(|hop| hop.shared) {
                *map = clocks
                    .get(&host_counter(&ranks[index]))
                    .map(|map| RootMap { alignment: Alignment::AssumedShared, ..*map });
            }
        }
    }
}

fn host_counter(rank: &RankTrace) -> (&str, &str, u8) {
    let header = &rank.file.header;
    (&header.host, &header.boot_id, rank.file.counter as u8)
}

/// Seconds a tick of the root's counter: by rank 0's frequency, or, when its file is missing, by
/// the best known frequency of a rank that is mapped to it.
pub(super) fn root_seconds_per_tick(
    run: &Run,
    frequencies: &[Frequency],
    maps: &[Option<RootMap>],
) -> f64 {
    if let Some(root) = run.position_of(0) {
        return 1.0 / frequencies[root].ticks_per_s;
    }
    let candidates = frequencies.iter().zip(maps).filter_map(|(f, map)| Some((f, map.as_ref()?)));
    let best = candidates
        .min_by(|(a, _), (b, _)| a.relative_uncertainty.total_cmp(&b.relative_uncertainty));
    best.map_or(1e-9, |(frequency, map)| 1.0 / (frequency.ticks_per_s * map.map.rate))
}
