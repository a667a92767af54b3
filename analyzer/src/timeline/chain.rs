//! Maps every counter to the root's: composes the hops of the ranks along their parents to rank 0.

use std::collections::HashMap;

use crate::trace::{FileDiagnosis, RankTrace, Run};

use super::alignment::Alignment;
use super::counter_map::CounterMap;
use super::exchange::{Hop, Rates, UNMEASURED_RATE, hop};
use super::fault::TimeFault;
use super::frequency::Frequency;
use super::known_rates::KnownRates;
use super::rank_clock::BoundLine;

/// Map from a rank's counter to that of rank 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RootMap {
    pub map: CounterMap,
    /// Error bound over the rank's own counter; `None` if nothing was measured.
    pub bound: Option<BoundLine>,
    pub alignment: Alignment,
}

impl RootMap {
    fn root() -> Self {
        Self {
            map: CounterMap::identity_at(0),
            bound: Some(BoundLine::constant(0.0)),
            alignment: Alignment::Reference,
        }
    }
}

/// The hops of all ranks.
#[derive(Debug)]
pub(super) struct Chains<'a> {
    run: &'a Run,
    frequencies: &'a [Frequency],
    known: &'a KnownRates,
    hops: Vec<Option<Hop>>,
    /// Exchanges that cannot be used.
    pub diagnoses: Vec<FileDiagnosis<TimeFault>>,
}

impl<'a> Chains<'a> {
    /// Reads every rank's exchanges.
    pub fn new(run: &'a Run, frequencies: &'a [Frequency], known: &'a KnownRates) -> Self {
        let mut chains = Self { run, frequencies, known, hops: Vec::new(), diagnoses: Vec::new() };
        for (index, rank) in run.ranks.iter().enumerate() {
            let parent = rank.facts.exchanges.first().and_then(|e| run.position_of(e.parent));
            let found = match rank.rank {
                0 => Ok(None),
                _ => hop(&rank.facts.exchanges, chains.rates(index, parent)),
            };
            let found = found.unwrap_or_else(|fault| {
                let what = TimeFault::Exchange(fault);
                chains.diagnoses.push(FileDiagnosis { file: rank.name.clone(), what });
                None
            });
            chains.hops.push(found);
        }
        chains
    }

    /// What is known of the rate between the counters of two ranks apart from exchanges.
    pub fn rates(&self, index: usize, parent: Option<usize>) -> Rates {
        let own = &self.frequencies[index];
        // If the parent's file is missing, its counter is assumed to run like this one.
        let other = parent.map_or(own, |parent| &self.frequencies[parent]);
        let header = |index: usize| &self.run.ranks[index].file.header;
        // Kernels differ in the length of their seconds; under one kernel the anchors compare
        // rates.
        let one_kernel = parent.is_some_and(|p| header(p).boot_id == header(index).boot_id);
        let mut rates = Rates {
            expected: other.ticks_per_s / own.ticks_per_s,
            relative_uncertainty: own.relative_uncertainty
                + other.relative_uncertainty
                + if one_kernel { 0.0 } else { UNMEASURED_RATE },
            ns_per_tick: 1e9 / own.ticks_per_s,
        };
        let calibrated =
            parent.and_then(|p| self.known.between(&header(index).host, &header(p).host));
        if let Some((rate, uncertainty)) = calibrated {
            (rates.expected, rates.relative_uncertainty) = (rate, uncertainty);
        }
        rates
    }

    /// Replaces the hop of the rank at a position.
    pub fn set_hop(&mut self, index: usize, hop: Hop) {
        self.hops[index] = Some(hop);
    }

    /// The counter of the rank at a position as far as its header tells; `None` if it may not be
    /// shared, because it is not invariant or an exchange found another one.
    pub fn sharable_counter(&self, index: usize) -> Option<(&'a str, &'a str, u8)> {
        let rank = &self.run.ranks[index];
        let found_shared = self.hops[index].as_ref().is_none_or(Hop::is_shared);
        (rank.file.header.counter_invariant && found_shared).then(|| host_counter(rank))
    }

    /// Composes the hops along the parents; `None` if neither these nor those of a rank on the same
    /// host lead to rank 0.
    pub fn resolve(&self) -> Vec<Option<RootMap>> {
        let mut maps: Vec<Option<RootMap>> = vec![None; self.hops.len()];
        let mut visited = vec![false; self.hops.len()];
        for start in 0..self.hops.len() {
            let mut path = Vec::new();
            let mut at = Some(start);
            let mut reached = None;
            // Each rank is visited once: a loop of parents, or a second visit, ends the walk.
            while let Some(index) = at {
                if self.run.ranks[index].rank == 0 {
                    maps[index] = Some(RootMap::root());
                }
                if visited[index] || maps[index].is_some() {
                    reached.clone_from(&maps[index]);
                    break;
                }
                visited[index] = true;
                path.push(index);
                let Some(hop) = &self.hops[index] else { break };
                at = self.run.position_of(hop.parent);
                if at.is_none() && hop.parent == 0 {
                    // Rank 0's file is missing, but its counter is still the common reference.
                    reached = Some(RootMap::root());
                }
            }
            for index in path.into_iter().rev() {
                reached = match (reached, &self.hops[index]) {
                    (Some(parent), Some(hop)) => compose(hop, &parent),
                    _ => None,
                };
                maps[index].clone_from(&reached);
            }
        }
        self.share_within_hosts(&mut maps);
        maps
    }

    /// Lets ranks whose chain does not lead to rank 0 share the map of another rank of their host,
    /// if both counters are invariant and no exchange of theirs contradicts that.
    fn share_within_hosts(&self, maps: &mut [Option<RootMap>]) {
        let ranks = &self.run.ranks;
        let sharable = |index: usize| ranks[index].file.header.counter_invariant;
        let mut clocks = HashMap::new();
        for (index, map) in maps.iter().enumerate().filter(|(index, _)| sharable(*index)) {
            if let Some(map) = map {
                clocks.entry(host_counter(&ranks[index])).or_insert_with(|| map.clone());
            }
        }
        for (index, map) in maps.iter_mut().enumerate() {
            if map.is_none()
                && let Some(counter) = self.sharable_counter(index)
            {
                // A clock that was never measured has no bound.
                *map = clocks.get(&counter).map(|map| RootMap {
                    map: map.map.clone(),
                    bound: None,
                    alignment: Alignment::AssumedShared,
                });
            }
        }
    }
}

fn compose(hop: &Hop, parent: &RootMap) -> Option<RootMap> {
    let map = hop.map.then(&parent.map);
    let bound = parent.bound.as_ref().map(|bound| sum(&hop.bound, bound, &hop.map));
    map.is_possible().then_some(RootMap { map, bound, alignment: hop.alignment })
}

/// Sum of the bounds of a hop and of its parent, over the counter of the child.
fn sum(own: &BoundLine, parent: &BoundLine, to_parent: &CounterMap) -> BoundLine {
    let mut at: Vec<u64> = own.points.iter().map(|(ticks, _)| *ticks).collect();
    let of_parent = parent.points.iter().map(|(ticks, _)| i128::from(*ticks));
    if parent.points.len() > 1 {
        at.extend(of_parent.filter_map(|ticks| to_parent.source_at(ticks)));
    }
    at.sort_unstable();
    at.dedup();
    let parent_at = |ticks: u64| {
        let ticks = to_parent.whole_ticks_at(ticks).max(0);
        parent.at(u64::try_from(ticks).unwrap_or(u64::MAX))
    };
    BoundLine {
        points: at.into_iter().map(|ticks| (ticks, own.at(ticks) + parent_at(ticks))).collect(),
        before_ns: own.before_ns + parent.before_ns,
        after_ns: own.after_ns + parent.after_ns,
    }
}

pub(super) fn host_counter(rank: &RankTrace) -> (&str, &str, u8) {
    let header = &rank.file.header;
    (&header.host, &header.boot_id, rank.file.counter as u8)
}

/// Seconds per tick of the root's counter: from rank 0's frequency or, if its file is missing, from
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
    best.map_or(1e-9, |(frequency, map)| 1.0 / (frequency.ticks_per_s * map.map.first_rate()))
}
