//! What the recorded parts in collective operations show: which algorithms explain them, and what their steps and bytes
//! cost.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::replay::algorithm::candidates;
use crate::replay::dependencies::senders;
use crate::replay::exchange::Rounds;
use crate::replay::graph::{Collective, Graph, LinkKind, OpNumber};
use crate::replay::movement::{Movement, Needs};
use crate::replay::network::{Costs, Network, Placement};

use super::sizes::{BySize, Row, single, size_class};

/// Weight of a part in a collective operation, whose algorithm is not certain, against a message.
const COLLECTIVE_WEIGHT: f64 = 0.1;
/// A part in a collective operation that waited for others.
pub(super) struct Part {
    collective: u32,
    /// Share of the operation's cost that lies between the last contribution and the part's end.
    share: f64,
    /// From the last contribution that it needed to its end, seconds.
    time_s: f64,
}

/// Number of operations whose parts are found together.
const STRETCH: usize = 1 << 16;

/// The parts that show the costs of operations. Where the root's data reach one member after
/// another, the last one. In the order of the calls, so that sums do not depend on how the work was shared out.
pub(super) fn parts(graph: &Graph) -> Vec<Part> {
    let collectives = 0..graph.collectives.len() as u32;
    let last_senders: Vec<f64> =
        collectives.into_par_iter().map(|of| last_sender(graph, of)).collect();
    let of_stretch = |stretch: usize| {
        let mut parts = Vec::new();
        let to = graph.recorded.len().min((stretch + 1) * STRETCH);
        (stretch * STRETCH..to).for_each(|op| add_parts(graph, op, &last_senders, &mut parts));
        parts
    };
    let stretches = graph.recorded.len().div_ceil(STRETCH);
    let found: Vec<Vec<Part>> = (0..stretches).into_par_iter().map(of_stretch).collect();
    let mut parts: Vec<Part> = Vec::with_capacity(found.iter().map(Vec::len).sum());
    // Position of the part of an operation that only the root's data end.
    let mut of_roots: FxHashMap<u32, usize> = FxHashMap::default();
    for new in found.into_iter().flatten() {
        if graph.collectives[new.collective as usize].needs == Needs::Root {
            let at = *of_roots.entry(new.collective).or_insert(parts.len());
            if let Some(part) = parts.get_mut(at) {
                part.time_s = part.time_s.max(new.time_s);
                continue;
            }
        }
        parts.push(new);
    }
    parts
}

/// When the last member that sends begins.
fn last_sender(graph: &Graph, collective: u32) -> f64 {
    let begins = senders(graph, collective).map(|op| graph.recorded[op as usize].entered_s);
    begins.fold(0.0, f64::max)
}

/// Adds the parts that a call shows; `last_senders` has the begin of the last sender of each
/// operation.
fn add_parts(graph: &Graph, op: usize, last_senders: &[f64], parts: &mut Vec<Part>) {
    let Some(link) = single(graph.links(op as OpNumber)) else { return };
    if link.kind != LinkKind::Collective {
        return;
    }
    let member = &graph.members[link.of as usize];
    let collective = &graph.collectives[member.collective as usize];
    if collective.movement == Movement::Meeting {
        return;
    }
    if collective.needs == Needs::Everybody {
        if link.of == collective.members.start {
            add_rounds(graph, member.collective, parts);
        }
        return;
    }
    let posted =
        |member: u32| graph.recorded[graph.members[member as usize].posted as usize].entered_s;
    let last = match collective.needs {
        Needs::All if member.receives => last_senders[member.collective as usize],
        Needs::AtRoot if link.of == collective.root => last_senders[member.collective as usize],
        Needs::Root if member.receives && link.of != collective.root => posted(collective.root),
        Needs::Lower => (collective.members.start..=link.of).map(posted).fold(0.0, f64::max),
        _ => return,
    };
    let recorded = graph.recorded[op];
    if last <= recorded.left_s {
        let time_s = (recorded.left_s - last.max(recorded.entered_s)).max(0.0);
        parts.push(Part { collective: member.collective, share: 1.0, time_s });
    }
}

/// Adds the parts in an operation in which every member needs all others.
fn add_rounds(graph: &Graph, number: u32, parts: &mut Vec<Part>) {
    let collective = &graph.collectives[number as usize];
    let first = collective.members.start;
    let end = |member: u32| {
        let op = graph.members[member as usize].posted;
        let link = single(graph.links(op))?;
        (link.kind == LinkKind::Collective)
            .then(|| (member - first, graph.recorded[op as usize].left_s))
    };
    let ends: Vec<(u32, f64)> = collective.members.clone().filter_map(end).collect();
    let rounds = Rounds::new(graph, collective);
    let count = f64::from(rounds.count().max(1));
    let observed = rounds.observed(&ends, |op| graph.recorded[op as usize].entered_s);
    parts.extend(observed.into_iter().map(|(arrivals, seconds)| Part {
        collective: number,
        share: f64::from(arrivals) / count,
        time_s: seconds.max(0.0),
    }));
}

/// Operations of one kind, size and number of members.
type Kind = (Needs, Movement, usize, usize);

fn kind_of(placement: &Placement, of: &Collective) -> Kind {
    (of.needs, of.movement, placement.members(of.group), size_class(of.bytes))
}

/// Rows of collective operations by number of members and class of size.
pub(super) type CollectiveRows = BTreeMap<(usize, usize), Row>;

/// What latencies and bytes explain of the times of collective operations.
pub(super) fn collective_rows(graph: &Graph, costs: &Costs, parts: &[Part]) -> CollectiveRows {
    let Network { overhead, overhead_per_byte, .. } = *costs.network;
    let mut rows = CollectiveRows::default();
    for part in parts {
        let of = &graph.collectives[part.collective as usize];
        let path = costs.path(of);
        let cpu = overhead * path.overheads + overhead_per_byte * 2.0 * path.copied * of.bytes;
        let [within, between] = path.bytes.map(|share| share * of.bytes);
        let terms = [path.latencies[0], path.latencies[1], within, between];
        let key = (costs.placement.members(of.group), size_class(of.bytes));
        let row = rows.entry(key).or_default();
        row.count += COLLECTIVE_WEIGHT;
        row.cost += (part.time_s - cpu * part.share).max(0.0);
        for (sum, term) in row.terms.iter_mut().zip(terms) {
            *sum += term * part.share;
        }
    }
    rows
}

/// Chooses the algorithm that best explains the times of operations of each kind. Returns whether
/// any changed.
pub(super) fn choose_algorithms(
    graph: &mut Graph,
    placement: &Placement,
    network: &Network,
    parts: &[Part],
) -> bool {
    let costs = Costs { network, placement };
    // Sum of the times, and of the costs with each candidate.
    let mut sums: FxHashMap<Kind, (f64, Vec<f64>)> = FxHashMap::default();
    for part in parts {
        let of = &graph.collectives[part.collective as usize];
        let candidates = candidates(of.needs, of.movement);
        let new = || (0.0, vec![0.0; candidates.len()]);
        let (time, by_candidate) = sums.entry(kind_of(placement, of)).or_insert_with(new);
        *time += part.time_s;
        for (sum, algorithm) in by_candidate.iter_mut().zip(candidates) {
            let with = Collective { algorithm: *algorithm, ..of.clone() };
            *sum += costs.collective(&with) * part.share;
        }
    }
    let mut is_changed = false;
    for of in &mut graph.collectives {
        let Some((time, costs)) = sums.get(&kind_of(placement, of)) else { continue };
        let off = |cost: f64| (cost / time).ln().abs();
        let by_candidate = candidates(of.needs, of.movement).iter().zip(costs);
        let best = by_candidate.min_by(|a, b| off(*a.1).total_cmp(&off(*b.1)));
        if let Some((algorithm, _)) = best
            && *algorithm != of.algorithm
        {
            of.algorithm = *algorithm;
            is_changed = true;
        }
    }
    is_changed
}

/// The times of collective operations, compared with the costs of their steps and of their bytes.
pub(super) fn collective_prices(
    graph: &Graph,
    placement: &Placement,
    network: &Network,
    parts: &[Part],
) -> BySize {
    let of = |steps: f64, bytes: f64| Network {
        collective_steps: steps,
        collective_bytes: bytes,
        ..*network
    };
    let (steps, bytes) = (of(1.0, 0.0), of(0.0, 1.0));
    let cost = |network: &Network, of: &Collective| Costs { network, placement }.collective(of);
    let mut by_size = BySize::default();
    for part in parts {
        let collective = &graph.collectives[part.collective as usize];
        let terms = [&steps, &bytes].map(|network| cost(network, collective) * part.share);
        by_size.add(collective.bytes, terms, part.time_s);
    }
    by_size
}
