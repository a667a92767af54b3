//! Estimates offsets between counters that no exchange compared, as in programs that use MPI
//! sessions alone, from the program's own messages and collective operations.
//!
//! Matching goes by order, not by time, so it comes before the clocks. A message is not received
//! before it is sent, and nobody leaves a barrier that another has not entered: each bounds the
//! offset between two counters from one side. With messages both ways it lies in a tube, whose
//! middle is the estimate and half its width the error; without, there is none. Offsets are
//! composed from the reference counter along the paths with the smallest errors.
//!
//! | file | content |
//! |---|---|
//! | `domains` | which ranks read one counter |
//! | `pauses` | which ranks were not recorded all the time |
//! | `constraints` | the tightest bounds, in windows of time |
//! | `envelope` | the offset over time between such bounds |
//!
//! Reads the run's events once more than other runs. Memory does not depend on their number: 12 KB
//! for each two counters between which messages went (less if there are more than 90 counters).

mod constraints;
mod domains;
mod envelope;
mod pauses;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::alignment::Alignment;
use super::chain::{Chains, RootMap};
use super::communicators::CommunicatorTable;
use super::counter_map::{CounterMap, LinearMap};
use super::exchange::{Hop, Rates, WANDER};
use super::global::GlobalTimeline;
use super::matching::{self, ProcessShare};
use super::offset_estimate::OffsetEstimate;
use super::rank_clock::BoundLine;
use crate::trace::Run;

use constraints::{Collector, Exchanged, Pair};
use domains::{Axis, Domain, Domains};
use envelope::{Envelope, Knot, NoOffset, Slopes};

/// Largest uncertainty of a rate that is used; that of a guessed frequency is larger.
const MAX_RATE_UNCERTAINTY: f64 = 0.5;

/// The hops that lead from the reference counter to others, by the position of the rank, and how
/// they were found.
#[derive(Debug)]
pub(super) struct Estimated {
    pub hops: Vec<(usize, Hop)>,
    pub summary: OffsetEstimate,
}

/// Estimates the hops of ranks without a map; `None` if nothing was recorded that could tell.
/// All processes that opened the run call this.
pub(super) fn estimate(
    run: &Run,
    timeline: &GlobalTimeline,
    known: (&Chains, &[Option<RootMap>], f64),
) -> Option<Estimated> {
    if !matching::is_possible(run) {
        return None;
    }
    let domains = Domains::new(run, timeline, known)?;
    let exchanged = exchanged(run, &domains)?;
    let paths = Paths::new(&domains, known.0, &exchanged);
    let mut summary = OffsetEstimate {
        messages: exchanged.messages,
        collectives: exchanged.collectives,
        ..OffsetEstimate::default()
    };
    for (position, trace) in run.ranks.iter().enumerate() {
        match paths.reached[domains.domain(position) as usize] {
            Reached::Known => {}
            Reached::No => summary.unconnected.push(trace.rank),
            Reached::Contradictory => summary.contradictory.push(trace.rank),
        }
    }
    Some(Estimated { hops: paths.hops, summary })
}

/// What the ranks of different domains exchanged, on all processes.
fn exchanged(run: &Run, domains: &Domains) -> Option<Exchanged> {
    let communicators = CommunicatorTable::new(run);
    let here = ProcessShare {
        processes: run.processes.clone(),
        ranks: run.own.clone(),
        max_shares: rayon::current_num_threads(),
    };
    let collector = || Collector::new(run, domains, &communicators);
    let shares = matching::match_in_shares(run, &domains.draft, &communicators, &here, collector)?;
    let mut own = Exchanged::default();
    for (matched, collector) in shares {
        own.add(collector.finish());
        own.is_doubtful |= matched.size_mismatches > 0 || matched.mismatched_instances > 0;
    }
    let mut all = Exchanged::default();
    run.processes.share(own).into_iter().for_each(|of_process| all.add(of_process));
    Some(all)
}

/// Whether a domain is connected with the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Known,
    No,
    Contradictory,
}

/// Paths from the reference to all domains, each with the smallest sum of errors (Dijkstra).
struct Paths {
    reached: Vec<Reached>,
    hops: Vec<(usize, Hop)>,
}

impl Paths {
    fn new(domains: &Domains, chains: &Chains, exchanged: &Exchanged) -> Self {
        let count = domains.count();
        let mut reached = vec![Reached::No; count];
        let mut neighbours: Vec<Vec<(usize, &Pair)>> = vec![Vec::new(); count];
        for ((a, b), pair) in &exchanged.pairs {
            neighbours[*a as usize].push((*b as usize, pair));
            neighbours[*b as usize].push((*a as usize, pair));
        }
        let mut best: Vec<Option<(f64, Hop)>> = vec![None; count];
        let mut done = vec![false; count];
        // Positive numbers are ordered like their bits.
        let mut waiting = BinaryHeap::from([Reverse((0, 0))]);
        while let Some(Reverse((error_bits, parent))) = waiting.pop() {
            if std::mem::replace(&mut done[parent], true) {
                continue;
            }
            reached[parent] = Reached::Known;
            for &(child, pair) in &neighbours[parent] {
                if done[child] {
                    continue;
                }
                let link =
                    Link { chains, child: &domains.all[child], parent: &domains.all[parent] };
                match link.hop(&pair.bounds(child > parent)) {
                    Ok(_) if exchanged.is_doubtful => reached[child] = Reached::Contradictory,
                    Ok(hop) => {
                        let (begin, end) = link.child.span_ticks;
                        let error_ns = f64::from_bits(error_bits) + hop.bound.largest(begin, end);
                        if best[child].as_ref().is_none_or(|(best, _)| error_ns < *best) {
                            waiting.push(Reverse((error_ns.to_bits(), child)));
                            best[child] = Some((error_ns, hop));
                        }
                    }
                    Err(NoOffset::Contradiction) => reached[child] = Reached::Contradictory,
                    Err(NoOffset::OneWay) => {}
                }
            }
        }
        let hop = |(domain, found): (&Domain, Option<(f64, Hop)>)| Some((domain.leader, found?.1));
        let hops = domains.all.iter().zip(best).filter_map(hop).collect();
        Self { reached, hops }
    }
}

/// Two domains of which one may be compared with the other.
struct Link<'a> {
    chains: &'a Chains<'a>,
    child: &'a Domain,
    parent: &'a Domain,
}

impl Link<'_> {
    /// The hop from child to parent.
    fn hop(&self, bounds: &[(f64, envelope::Constraint)]) -> Result<Hop, NoOffset> {
        let Rates { expected, relative_uncertainty, .. } =
            self.chains.rates(self.child.leader, Some(self.parent.leader));
        let (of_child, of_parent) = (self.child.axis, self.parent.axis);
        let mean = expected * of_parent.seconds_per_tick / of_child.seconds_per_tick - 1.0;
        // The frequencies are means over the run.
        let uncertainty = (relative_uncertainty + WANDER).min(MAX_RATE_UNCERTAINTY);
        let mut envelope = Envelope::from_bounds(bounds, Slopes::around(mean, uncertainty))?;
        if self.child.is_imported {
            // Another tool has aligned the clocks, but does not say how well.
            envelope = envelope.near_zero();
        }
        Ok(Hop {
            parent: self.parent.rank,
            map: counter_map(&envelope, &of_child, &of_parent),
            bound: bound_line(&envelope, &of_child),
            alignment: Alignment::Estimated,
        })
    }
}

/// A knot on the child's counter.
fn reading(axis: &Axis, knot: &Knot) -> u64 {
    u64::try_from(axis.ticks_at(knot.at_s).0.max(0)).unwrap_or(u64::MAX)
}

fn counter_map(envelope: &Envelope, of_child: &Axis, of_parent: &Axis) -> CounterMap {
    let mean_rate = (1.0 + envelope.slope) * of_child.seconds_per_tick / of_parent.seconds_per_tick;
    let at = |knot: &Knot| {
        let from_ticks = reading(of_child, knot);
        let seconds = of_child.seconds_at(i128::from(from_ticks)) + knot.offset_s;
        let (to_ticks, to_fraction) = of_parent.ticks_at(seconds);
        LinearMap { from_ticks, to_ticks, to_fraction, rate: mean_rate }
    };
    let mut pieces: Vec<LinearMap> = Vec::with_capacity(envelope.knots.len() + 1);
    for piece in envelope.knots.iter().map(at) {
        match pieces.last_mut() {
            Some(last) if last.from_ticks >= piece.from_ticks => continue,
            Some(last) => {
                let to =
                    (piece.to_ticks - last.to_ticks) as f64 + piece.to_fraction - last.to_fraction;
                last.rate = to / (piece.from_ticks - last.from_ticks) as f64;
            }
            // The mean rate also holds before the first knot.
            None if piece.from_ticks > 0 => pieces.push(LinearMap {
                from_ticks: piece.from_ticks - 1,
                to_fraction: piece.to_fraction - mean_rate,
                ..piece
            }),
            None => {}
        }
        pieces.push(piece);
    }
    CounterMap::new(pieces)
}

fn bound_line(envelope: &Envelope, of_child: &Axis) -> BoundLine {
    let mut points: Vec<(u64, f64)> = Vec::with_capacity(2 * envelope.knots.len());
    let tick_s = of_child.seconds_per_tick;
    for knot in &envelope.knots {
        let (ticks, error_ns) = (reading(of_child, knot), (knot.error_s() + tick_s) * 1e9);
        match points.last_mut() {
            // Of knots within one tick, the map has the first.
            Some((last, last_ns)) if *last >= ticks => *last_ns = last_ns.max(error_ns),
            Some(&mut (last, last_ns)) => {
                let middle = last + (ticks - last) / 2;
                let bulge_ns = envelope.bulge_s((ticks - last) as f64 * tick_s) * 1e9;
                if middle > last {
                    points.push((middle, (last_ns + error_ns) / 2.0 + bulge_ns));
                }
                points.push((ticks, error_ns));
            }
            None => points.push((ticks, error_ns)),
        }
    }
    let growth_ns = envelope.growth() * tick_s * 1e9;
    BoundLine { points, before_ns: growth_ns, after_ns: growth_ns }
}

#[cfg(test)]
mod tests;
