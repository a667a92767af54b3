//! The counters of a run that are to be compared: the one to which exchanges lead, and of every
//! other host its own.

use std::collections::HashMap;

use super::pauses;
use crate::timeline::alignment::Alignment;
use crate::timeline::chain::{Chains, RootMap};
use crate::timeline::global::GlobalTimeline;
use crate::timeline::shared_counters::shared_counters;
use crate::trace::Run;

/// A counter as a line over the seconds of the draft.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub ticks: i128,
    pub at_s: f64,
    pub seconds_per_tick: f64,
}

impl Axis {
    /// Whole ticks and the rest at a moment.
    pub fn ticks_at(&self, seconds: f64) -> (i128, f64) {
        let since = (seconds - self.at_s) / self.seconds_per_tick;
        let whole = since.floor();
        (self.ticks + whole as i128, since - whole)
    }

    /// Seconds at a reading.
    pub fn seconds_at(&self, ticks: i128) -> f64 {
        self.at_s + (ticks - self.ticks) as f64 * self.seconds_per_tick
    }
}

/// Ranks that read one counter.
#[derive(Debug, Clone)]
pub(super) struct Domain {
    /// Position of the rank that stands for them.
    pub leader: usize,
    /// Rank whose counter the axis is.
    pub rank: u32,
    pub axis: Axis,
    /// Whether the axis is a time of another tool.
    pub is_imported: bool,
    /// First and last reading of any of the ranks; not used for the first domain.
    pub span_ticks: (u64, u64),
}

/// All ranks, divided by their counters.
#[derive(Debug, Clone)]
pub(super) struct Domains {
    /// The first is that of the ranks whose clocks are known.
    pub all: Vec<Domain>,
    /// By position.
    ranks: Vec<Member>,
    /// The run's timeline, in which the ranks of a domain have one clock.
    pub draft: GlobalTimeline,
}

#[derive(Debug, Clone)]
struct Member {
    domain: u32,
    /// Whose bound holds for its clock.
    bounded_by: usize,
    tick_s: f64,
    is_usable: bool,
    has_ordered_messages: bool,
}

impl Domains {
    /// Divides the ranks of a run; `None` if no clock is known with which others could be compared.
    pub fn new(
        run: &Run,
        timeline: &GlobalTimeline,
        (chains, maps, root_seconds_per_tick): (&Chains, &[Option<RootMap>], f64),
    ) -> Option<Self> {
        let mut draft = timeline.clone();
        let known = root_domain(timeline, maps, root_seconds_per_tick)?;
        let mut all = vec![known];
        let mut of_counters = HashMap::new();
        let mut of_ranks = Vec::with_capacity(run.ranks.len());
        for (position, (trace, map)) in run.ranks.iter().zip(maps).enumerate() {
            if map.is_some() {
                of_ranks.push(0);
                continue;
            }
            let last = trace.threads.iter().filter_map(|thread| thread.last_ticks).max();
            let begin = timeline.ranks[position].begin_ticks;
            let span_ticks = (begin, last.unwrap_or(begin).max(begin));
            let mut begin_domain = || {
                let time = &timeline.ranks[position];
                let (piece, ..) = time.clock.piece_at(time.begin_ticks);
                let axis = Axis {
                    ticks: i128::from(piece.begin_ticks),
                    at_s: piece.begin_s,
                    seconds_per_tick: piece.seconds_per_tick,
                };
                let (rank, is_imported) = (trace.rank, trace.is_imported());
                all.push(Domain { leader: position, rank, axis, is_imported, span_ticks });
                (all.len() - 1) as u32
            };
            let number = match chains.sharable_counter(position) {
                Some(counter) => *of_counters.entry(counter).or_insert_with(begin_domain),
                None => begin_domain(),
            };
            let domain = &mut all[number as usize];
            domain.span_ticks.0 = domain.span_ticks.0.min(span_ticks.0);
            domain.span_ticks.1 = domain.span_ticks.1.max(span_ticks.1);
            draft.ranks[position].clock = timeline.ranks[domain.leader].clock.clone();
            of_ranks.push(number);
        }
        let ranks = members(run, &draft, of_ranks);
        Some(Self { all, ranks, draft })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The domain of the rank at a position.
    pub fn domain(&self, position: usize) -> u32 {
        self.ranks[position].domain
    }

    /// Whether all calls of the rank at a position were recorded that matching needs.
    pub fn is_usable(&self, position: usize) -> bool {
        self.ranks[position].is_usable
    }

    /// Whether, in addition, its messages are in order: those of several threads may not be.
    pub fn has_ordered_messages(&self, position: usize) -> bool {
        self.ranks[position].has_ordered_messages
    }

    /// A tick of the rank at a position, seconds.
    pub fn tick_s(&self, position: usize) -> f64 {
        self.ranks[position].tick_s
    }

    /// How far the clock of the rank at a position may be off the axis of its domain, seconds.
    pub fn error_s(&self, position: usize, ticks: u64) -> f64 {
        let Member { domain, bounded_by, .. } = self.ranks[position];
        if domain > 0 {
            return 0.0;
        }
        let bound_ns = self.draft.ranks[bounded_by].clock.bound_ns_at(ticks);
        bound_ns.map_or(f64::INFINITY, |bound_ns| bound_ns * 1e-9)
    }

    /// Which part of a domain's stretch lies before a moment, from 0 to 1.
    pub fn part(&self, domain: u32, seconds: f64) -> f64 {
        let Domain { axis, span_ticks: (begin, end), .. } = self.all[domain as usize];
        let [begin_s, end_s] = [begin, end].map(|ticks| axis.seconds_at(i128::from(ticks)));
        let part = (seconds - begin_s) / (end_s - begin_s);
        if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// The domain of the ranks whose clocks are known. Its axis is the reference counter, even if the
/// file of the rank that reads it is missing.
fn root_domain(
    timeline: &GlobalTimeline,
    maps: &[Option<RootMap>],
    seconds_per_tick: f64,
) -> Option<Domain> {
    let known = (0..maps.len()).filter(|position| maps[*position].is_some());
    let bound_ns = |position: &usize| {
        let clock = &timeline.ranks[*position].clock;
        match clock.alignment {
            Alignment::Reference => -1.0,
            _ => clock.bound_ns.unwrap_or(f64::INFINITY),
        }
    };
    let leader = known.min_by(|a, b| bound_ns(a).total_cmp(&bound_ns(b)))?;
    let time = &timeline.ranks[leader];
    let ticks = maps[leader].as_ref()?.map.whole_ticks_at(time.begin_ticks);
    let axis = Axis { ticks, at_s: time.begin_s(), seconds_per_tick };
    Some(Domain { leader, rank: 0, axis, is_imported: false, span_ticks: (0, 0) })
}

fn members(run: &Run, draft: &GlobalTimeline, of_ranks: Vec<u32>) -> Vec<Member> {
    let counters = shared_counters(run, &draft.ranks);
    let paused = pauses::of_ranks(run);
    let member = |(position, domain): (usize, u32)| {
        let (trace, time) = (&run.ranks[position], &draft.ranks[position]);
        let is_usable = !paused[position];
        let bounded_by = if time.clock.bound.is_some() { position } else { counters[position] };
        Member {
            domain,
            bounded_by,
            tick_s: 1.0 / time.frequency.ticks_per_s,
            is_usable,
            has_ordered_messages: is_usable && trace.threads.len() == 1,
        }
    };
    of_ranks.into_iter().enumerate().map(member).collect()
}
