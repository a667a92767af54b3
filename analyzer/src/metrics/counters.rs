//! Counters of processor and kernel in a selection, from the readings at the rank's start and end
//! and at region markers.
//!
//! A counter belongs to the process: it counts what all threads did between two readings. For a
//! region that is the sum over its outermost occurrences.

use serde::{Deserialize, Serialize};
use trace_format::counters::{SCALED, UNREADABLE, description};
use trace_format::header::{Counter, Phase};
use trace_format::markers::CounterSlot;

use crate::analysis::spans::{PlainCall, Span, SpanKind};
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};
use crate::timeline::RankTime;
use crate::trace::{RankTrace, Run};

use super::resolve::{RankSelection, Resolved};

/// A counter over the ranks of a selection.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterMetrics {
    pub name: String,
    /// The events that it adds up, such as `raw 0x1f03`, from a rank that knows them; empty if none
    /// does.
    pub events: String,
    /// Whether that is the built-in choice for the processor.
    pub built_in: bool,
    /// The ranks that take part.
    pub ranks: Vec<RankCount>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RankCount {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    pub host: String,
    /// The count, or why it is unknown.
    pub count: Result<Count, NoCount>,
    /// Number of threads that existed at MPI_Init but are not counted.
    pub missed_threads: u32,
}

/// Why a count is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoCount {
    /// The rank was recorded without the counter.
    NotRecorded,
    /// The counter was not available on the rank, for the reason given by the recorder.
    Unavailable(String),
    /// It was not read where the selection begins.
    NotReadAtBegin,
    /// It was not read where the selection ends.
    NotReadAtEnd,
    /// A reading failed, or the counter never got the hardware.
    Unreadable,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Difference of the readings, all threads together.
    pub value: f64,
    /// Whether the hardware was shared for a time and the count is scaled up to the whole time.
    pub scaled: bool,
    /// For a rank that did not finish: time of its last reading, global seconds. The value does not
    /// include anything after that.
    pub until_s: Option<f64>,
}

impl CounterMetrics {
    /// The counters requested on any rank, in order, with the count of each rank.
    pub(super) fn of_run(run: &Run, ranks: &[Option<Counts>]) -> Vec<Self> {
        let mut names: Vec<&str> = Vec::new();
        for counter in run.ranks.iter().flat_map(|rank| &rank.facts.counters) {
            if !names.contains(&counter.name.as_str()) {
                names.push(&counter.name);
            }
        }
        let of = |name: &&str| {
            let named = |trace: &RankTrace| {
                trace.facts.counters.iter().position(|counter| counter.name == *name)
            };
            let known = run.ranks.iter().flat_map(|rank| &rank.facts.counters);
            let known =
                known.filter(|one| one.name == *name).max_by_key(|one| !one.events.is_empty());
            let ranks = run.ranks.iter().zip(ranks).filter_map(|(trace, counts)| {
                let counts = counts.as_ref()?;
                let at = named(trace);
                Some(RankCount {
                    rank: trace.rank,
                    host: trace.file.header.host.clone(),
                    count: at.map_or(Err(NoCount::NotRecorded), |at| counts[at].clone()),
                    missed_threads: at.map_or(0, |at| trace.facts.counters[at].missed_threads),
                })
            });
            Self {
                name: (*name).to_owned(),
                events: known.map(|one| description(&one.events)).unwrap_or_default(),
                built_in: known.is_some_and(|one| one.built_in),
                ranks: ranks.collect(),
            }
        };
        names.iter().map(of).collect()
    }

    /// Sum over the ranks that `wanted` selects; `None` unless each was read to its end.
    pub fn sum(&self, wanted: impl Fn(u32) -> bool) -> Option<f64> {
        let mut ranks = self.ranks.iter().filter(|one| wanted(one.rank)).peekable();
        ranks.peek()?;
        let whole = |count: &Count| count.until_s.is_none().then_some(count.value);
        ranks.map(|one| one.count.as_ref().ok().and_then(whole)).sum()
    }

    /// Sum over all ranks.
    pub fn total(&self) -> Option<f64> {
        self.sum(|_| true)
    }

    /// Whether any rank's count is scaled.
    pub fn is_scaled(&self) -> bool {
        self.ranks.iter().any(|one| one.count.as_ref().is_ok_and(|count| count.scaled))
    }
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    value: u64,
    state: u32,
}

/// Readings of one counter at the bounds of the stretches, and its last reading.
struct Bounds {
    begins: Vec<Option<Reading>>,
    ends: Vec<Option<Reading>>,
    last: Option<(u64, Reading)>,
}

/// The counts of a rank, in the order of its counter definitions.
pub(super) type Counts = Vec<Result<Count, NoCount>>;

/// Observes the counter readings of all ranks, for several selections.
pub(super) struct Readings<'s> {
    pub selections: Vec<&'s Resolved>,
}

pub(super) struct RankReadings<'a, 's> {
    rank: RankView<'a>,
    each: Vec<SelectionReadings<'s>>,
}

struct SelectionReadings<'s> {
    selection: &'s RankSelection,
    /// By counter, in the order of the definitions.
    bounds: Vec<Bounds>,
}

impl<'a, 's> CallObserver<'a> for Readings<'s> {
    type OfRank = RankReadings<'a, 's>;

    fn begin_rank(&self, rank: RankView<'a>) -> RankReadings<'a, 's> {
        let of = |resolved: &&'s Resolved| {
            let selection = &resolved.ranks[rank.position];
            SelectionReadings { selection, bounds: at_ends(rank.trace, rank.time, selection) }
        };
        RankReadings { rank, each: self.selections.iter().map(of).collect() }
    }
}

impl<'a> RankObserver<'a> for RankReadings<'a, '_> {
    fn begin_thread(&mut self, _thread: ThreadView<'a>) {}

    fn span(&mut self, span: &Span) {
        let Some(found) = reading_of(span.kind, span.payload) else { return };
        let facts = &self.rank.trace.facts;
        let ended = facts.counter_readings.iter().any(|one| one.phase == Phase::Finalize);
        let number = |counter: &Counter| counter.number == found.number;
        let Some(at) = facts.counters.iter().position(number) else { return };
        let reading = Reading { value: found.value, state: found.state };
        // For the whole of a rank that finished, no readings of events are needed.
        for of in self.each.iter_mut().filter(|of| !(of.selection.every_call && ended)) {
            of.bounds[at].take(span, reading, of.selection);
        }
    }

    #[inline]
    fn plain(&mut self, _call: &PlainCall) {}

    fn end_thread(&mut self) {}
}

impl RankReadings<'_, '_> {
    /// The counts in each selection; `None` if the rank does not take part.
    pub fn finish(self) -> Vec<Option<Counts>> {
        let RankView { trace, time, .. } = self.rank;
        let of = |of: SelectionReadings| {
            let each = trace.facts.counters.iter().zip(&of.bounds);
            let stretches = &of.selection.stretches;
            of.selection
                .takes_part
                .then(|| each.map(|(one, bounds)| count(one, bounds, time, stretches)).collect())
        };
        self.each.into_iter().map(of).collect()
    }
}

impl Bounds {
    fn take(&mut self, span: &Span, reading: Reading, selection: &RankSelection) {
        let stretches = &selection.stretches;
        // The readings of a marker end where the region begins, or begin where it ends.
        if !selection.every_call {
            if let Ok(stretch) = stretches.binary_search_by_key(&span.end_ticks, |one| one.0) {
                self.begins[stretch] = Some(reading);
            }
            let end = stretches.binary_search_by_key(&span.begin_ticks, |one| one.1);
            if let Ok(stretch) = end {
                self.ends[stretch] = Some(reading);
            }
        }
        if self.last.is_none_or(|(ticks, _)| span.end_ticks >= ticks) {
            self.last = Some((span.end_ticks, reading));
        }
    }
}

/// The readings at a rank's start and end.
fn at_ends(trace: &RankTrace, time: &RankTime, selection: &RankSelection) -> Vec<Bounds> {
    let counters = &trace.facts.counters;
    let stretches = &selection.stretches;
    let bounds = |_: &Counter| Bounds {
        begins: vec![None; stretches.len()],
        ends: vec![None; stretches.len()],
        last: None,
    };
    let mut all: Vec<Bounds> = counters.iter().map(bounds).collect();
    let position = |number: u32| counters.iter().position(|counter| counter.number == number);
    for reading in &trace.facts.counter_readings {
        for (number, value, state) in &reading.values {
            let Some(at) = position(*number) else { continue };
            let found = Reading { value: *value, state: *state };
            let ends = reading.phase == Phase::Finalize;
            let last = if ends { time.end_ticks } else { time.begin_ticks };
            let stretch = match ends {
                true => stretches.iter().rposition(|(_, end)| *end == time.end_ticks),
                false => stretches.iter().position(|(begin, _)| *begin == time.begin_ticks),
            };
            if let Some(stretch) = stretch {
                let side = if ends { &mut all[at].ends } else { &mut all[at].begins };
                side[stretch] = Some(found);
            }
            if all[at].last.is_none_or(|(ticks, _)| last >= ticks) {
                all[at].last = Some((last, found));
            }
        }
    }
    all
}

fn reading_of(kind: SpanKind, payload: [u64; 2]) -> Option<CounterSlot> {
    (kind == SpanKind::Tool).then(|| CounterSlot::from_payload(payload)).flatten()
}

fn count(
    counter: &Counter,
    bounds: &Bounds,
    time: &RankTime,
    stretches: &[(u64, u64)],
) -> Result<Count, NoCount> {
    if !counter.unavailable.is_empty() {
        return Err(NoCount::Unavailable(counter.unavailable.clone()));
    }
    let (mut value, mut state, mut until_s) = (0u64, 0, None);
    for ((begin, end), (from, to)) in stretches.iter().zip(bounds.begins.iter().zip(&bounds.ends)) {
        let from = from.ok_or(NoCount::NotReadAtBegin)?;
        let to = match (to, bounds.last) {
            (Some(to), _) => *to,
            // The rank did not finish.
            (None, Some((ticks, last))) if *end == time.end_ticks && ticks >= *begin => {
                until_s = Some(time.clock.seconds(ticks));
                last
            }
            (None, _) => return Err(NoCount::NotReadAtEnd),
        };
        value = value.saturating_add(to.value.saturating_sub(from.value));
        state |= from.state | to.state;
    }
    match state & UNREADABLE {
        0 => Ok(Count { value: value as f64, scaled: state & SCALED != 0, until_s }),
        _ => Err(NoCount::Unreadable),
    }
}
