//! Puts the counters of all ranks on one clock ([`GlobalTimeline`]).
//!
//! Every rank's counter is mapped to seconds since the earliest return from MPI_Init in the run.
//! The map is composed of the clock exchanges of the ranks, along their parents up to rank 0; its
//! error bound is the sum over the hops. Offsets between hosts that no exchange compared are
//! estimated from the program's own messages ([`OffsetEstimate`]).
//!
//! This module also determines each rank's stretch τ_i: from the return of MPI_Init to the entry of
//! MPI_Finalize. For a rank that never called MPI_Finalize, the stretch ends at its last time stamp
//! or, if it was inside a call, at the job's last sign of life ([`LastActivity`]).

mod alignment;
pub mod calls;
mod causal;
mod chain;
pub mod communicators;
mod counter_map;
pub mod event_streams;
mod exchange;
mod fault;
mod frequency;
mod global;
mod known_rates;
mod last_activity;
pub mod matching;
pub mod mpi_constants;
mod notes;
mod offset_estimate;
mod offsets;
mod rank_clock;
mod rank_time;
mod shared_counters;
mod stretch;
mod utc;

use crate::trace::{FileDiagnosis, RankTrace, Run};

pub use alignment::Alignment;
pub use causal::{AMORTISATION, Link};
use chain::{Chains, RootMap};
pub use exchange::{ExchangeFault, UNMEASURED_RATE, WANDER};
pub use fault::{NotedRanks, TimeFault, TimeNote};
pub use frequency::{Frequency, FrequencyBasis};
pub use global::{CausalCorrection, ElapsedScope, GlobalTimeline};
pub use known_rates::KnownRates;
pub use last_activity::LastActivity;
pub use offset_estimate::OffsetEstimate;
use offsets::Estimated;
pub use rank_clock::{BoundLine, ClockPiece, RankClock, whole_ns};
pub use rank_time::RankTime;
pub use shared_counters::shared_counters;
pub use stretch::Ending;
use stretch::Stretch;
pub use utc::Utc;

impl GlobalTimeline {
    /// Maps every rank's counter to the global timeline. Never fails: counters that cannot be
    /// aligned are flagged.
    pub fn new(run: &Run) -> Self {
        Self::with_rates(run, &KnownRates::default())
    }

    /// Like [`GlobalTimeline::new`], with known rates for clocks that were compared only once.
    pub fn with_rates(run: &Run, known_rates: &KnownRates) -> Self {
        Self::over(run, known_rates, ElapsedScope::Mpi)
    }

    /// Like [`GlobalTimeline::with_rates`], with a choice of what τ_i covers.
    pub fn over(run: &Run, known_rates: &KnownRates, scope: ElapsedScope) -> Self {
        let frequencies = frequency::of_ranks(&run.ranks);
        let stretches: Vec<Stretch> = match scope {
            ElapsedScope::Mpi => run.ranks.iter().map(stretch::of_rank).collect(),
            ElapsedScope::Process => {
                let ranks = run.ranks.iter().zip(&frequencies);
                ranks.map(|(rank, f)| stretch::of_process(rank, f.ticks_per_s)).collect()
            }
        };
        let mut chains = Chains::new(run, &frequencies, known_rates);
        let counters = Counters { run, stretches: &stretches, frequencies: &frequencies, scope };
        let maps = chains.resolve();
        let mut timeline = counters.timeline(&maps);
        if !timeline.aligned {
            let root_seconds_per_tick = chain::root_seconds_per_tick(run, &frequencies, &maps);
            let known = (&chains, &maps[..], root_seconds_per_tick);
            if let Some(Estimated { hops, summary }) = offsets::estimate(run, &timeline, known) {
                hops.into_iter().for_each(|(position, hop)| chains.set_hop(position, hop));
                timeline = counters.timeline(&chains.resolve());
                timeline.estimate = Some(summary);
            }
        }
        for (rank, stretch) in run.ranks.iter().zip(&stretches) {
            let fault = stretch.fault(rank);
            let diagnosis = |what| FileDiagnosis { file: rank.name.clone(), what };
            timeline.diagnoses.extend(fault.map(diagnosis));
        }
        timeline.diagnoses.extend(chains.diagnoses);
        timeline.notes = TimeNote::all_for(&timeline, run);
        timeline
    }
}

/// The ranks' counters, before they are put on one clock.
struct Counters<'a> {
    run: &'a Run,
    stretches: &'a [Stretch],
    frequencies: &'a [Frequency],
    scope: ElapsedScope,
}

impl Counters<'_> {
    /// The timeline to which the maps lead, without diagnoses and notes.
    fn timeline(&self, maps: &[Option<RootMap>]) -> GlobalTimeline {
        let Self { run, stretches, frequencies, scope } = *self;
        let root_seconds_per_tick = chain::root_seconds_per_tick(run, frequencies, maps);
        let mut ranks = ranks_on_timeline(run, stretches, frequencies, maps, root_seconds_per_tick);
        place_unaligned(run, &mut ranks);
        shift_to_earliest_begin(&mut ranks);
        let last_activity = LastActivity::find(run, &ranks);
        if let Some(last_activity) = &last_activity {
            last_activity.extend(run, &mut ranks);
        }
        let at_ends = |rank: &RankTime| {
            let bound = rank.clock.bound.as_ref()?;
            Some(bound.at(rank.begin_ticks).max(bound.at(rank.end_ticks)))
        };
        GlobalTimeline {
            bound_ns: ranks.iter().filter_map(|r| r.clock.bound_ns).reduce(f64::max),
            ends_bound_ns: ranks.iter().filter_map(at_ends).reduce(f64::max),
            utc: utc::of_run(run, &ranks).filter(|_| !run.anonymous),
            estimate: None,
            causal: None,
            last_activity,
            aligned: ranks.iter().all(|r| r.clock.alignment != Alignment::Unaligned),
            ranks,
            scope,
            diagnoses: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Puts the ranks on the root's clock, relative to the root's counter at the first aligned begin.
fn ranks_on_timeline(
    run: &Run,
    stretches: &[Stretch],
    frequencies: &[Frequency],
    maps: &[Option<RootMap>],
    root_seconds_per_tick: f64,
) -> Vec<RankTime> {
    let at_begin = |(map, stretch): (&Option<RootMap>, &Stretch)| {
        map.as_ref().map(|map| map.map.whole_ticks_at(stretch.begin_ticks))
    };
    let origin = maps.iter().zip(stretches).find_map(at_begin).unwrap_or(0);
    let ranks = run.ranks.iter().zip(stretches).zip(frequencies).zip(maps);
    ranks
        .map(|(((trace, stretch), frequency), map)| {
            let clock = match map {
                Some(root) => {
                    let piece = |(begin_ticks, since, rate): (u64, f64, f64)| ClockPiece {
                        begin_ticks,
                        begin_s: since * root_seconds_per_tick,
                        seconds_per_tick: rate * root_seconds_per_tick,
                    };
                    let pieces = root.map.pieces_from(stretch.begin_ticks, origin);
                    let largest =
                        |bound: &BoundLine| bound.largest(stretch.begin_ticks, stretch.end_ticks);
                    RankClock {
                        pieces: pieces.into_iter().map(piece).collect(),
                        bound_ns: root.bound.as_ref().map(largest),
                        bound: root.bound.clone(),
                        alignment: root.alignment,
                    }
                }
                None => RankClock::unaligned(stretch.begin_ticks, 1.0 / frequency.ticks_per_s),
            };
            RankTime {
                rank: trace.rank,
                begin_ticks: stretch.begin_ticks,
                end_ticks: stretch.end_ticks,
                ending: stretch.ending,
                clock,
                frequency: *frequency,
            }
        })
        .collect()
}

/// Wall clocks that differ by more than this many seconds (one day) are not trusted.
const WALL_CLOCK_LIMIT_S: f64 = 86_400.0;

/// Places ranks without a clock where the system's wall clock puts their begin.
fn place_unaligned(run: &Run, ranks: &mut [RankTime]) {
    let wall_begin_ns = |trace: &RankTrace, time: &RankTime| {
        let anchor = trace.facts.anchors.first()?;
        let since = i128::from(time.begin_ticks) - i128::from(anchor.ticks);
        let since_ns = since as f64 / time.frequency.ticks_per_s * 1e9;
        Some(i128::from(anchor.realtime_ns) + since_ns as i128)
    };
    let known = run.ranks.iter().zip(ranks.iter()).find_map(|(trace, time)| {
        let aligned = time.clock.alignment != Alignment::Unaligned;
        let wall = wall_begin_ns(trace, time).filter(|_| aligned)?;
        Some((wall, time.begin_s()))
    });
    let anyone = || {
        let mut walls = run.ranks.iter().zip(ranks.iter());
        walls.find_map(|(trace, time)| Some((wall_begin_ns(trace, time)?, 0.0)))
    };
    let Some((reference_wall_ns, reference_s)) = known.or_else(anyone) else { return };
    for (trace, time) in run.ranks.iter().zip(ranks) {
        if time.clock.alignment != Alignment::Unaligned {
            continue;
        }
        if let Some(wall) = wall_begin_ns(trace, time) {
            let offset_s = (wall - reference_wall_ns) as f64 * 1e-9;
            if offset_s.abs() < WALL_CLOCK_LIMIT_S {
                time.clock.shift(reference_s + offset_s - time.begin_s());
            }
        }
    }
}

fn shift_to_earliest_begin(ranks: &mut [RankTime]) {
    let earliest = ranks.iter().map(RankTime::begin_s).fold(f64::INFINITY, f64::min);
    for rank in ranks {
        rank.clock.shift(-earliest);
    }
}

#[cfg(test)]
mod tests;
