//! A selection on each rank's own counter: a [`Selection`] comes in, every rank's stretches, the
//! selection's elapsed time τ and every rank's time outside of it go out.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::timeline::{GlobalTimeline, RankTime};
use crate::trace::{RankTrace, Run};

use super::selection::{Bound, Selection};
use super::spans::{Span, SpanKind, Spans};

/// Why a selection selects nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SelectionError {
    /// No region of that name.
    #[error("no region is named {name:?}; {}", regions_of_run(.known))]
    UnknownRegion {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The region is named, but no rank entered it between MPI_Init and MPI_Finalize.
    #[error("no rank entered region {0:?} between MPI_Init and MPI_Finalize")]
    EmptyRegion(String),
    /// No function of that name.
    #[error("--window: no function is named {0:?}; names are written as in C, such as MPI_Barrier")]
    UnknownFunction(String),
    /// Of a part of the selection only totals are kept.
    #[error(
        "of rank {rank} only totals are kept from {from_s:.6} to {to_s:.6} s, which the selection \
         meets: leave out --window and --region, select other seconds, or record with more --max-bytes"
    )]
    OnlyTotals {
        /// The first such rank.
        rank: u32,
        /// Begin of that time, global seconds.
        from_s: f64,
        /// Its end.
        to_s: f64,
    },
    /// The window meets no rank.
    #[error("--window {window}: {what}")]
    EmptyWindow {
        /// The window as it was asked for.
        window: String,
        /// Why it is empty.
        what: String,
    },
}

fn regions_of_run(known: &[String]) -> String {
    if known.is_empty() {
        return "the run has no regions (mark them with gammachi_region_begin/_end of gammachi.h)"
            .into();
    }
    format!("there are: {}", known.join(", "))
}

/// A rank's part of a selection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RankSelection {
    /// Whether the rank counts among the p ranks of the selection.
    pub takes_part: bool,
    /// Whether every recorded call counts, also outside of the stretches.
    pub every_call: bool,
    /// Begin and end of each stretch on the rank's counter, ascending, disjoint.
    pub stretches: Vec<(u64, u64)>,
    /// Seconds of τ outside of the stretches.
    pub outside_s: f64,
}

impl RankSelection {
    /// Whether what begins then counts in the selection.
    pub fn counts(&self, begin_ticks: u64) -> bool {
        if self.every_call {
            return true;
        }
        let index = self.stretches.partition_point(|(begin, _)| *begin <= begin_ticks);
        let before = index.checked_sub(1).and_then(|index| self.stretches.get(index));
        before.is_some_and(|(_, end)| begin_ticks < *end)
    }
}

/// A selection on every rank's counter.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resolved {
    /// Whether the whole run is selected.
    pub whole: bool,
    /// In the order of the ranks.
    pub ranks: Vec<RankSelection>,
    /// τ of the selection.
    pub elapsed_s: f64,
    /// τ of the whole run.
    pub run_elapsed_s: f64,
    /// Stretches a rank, where all that take part have equally many.
    pub occurrences: Option<usize>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

type Stretches = Option<Vec<(u64, u64)>>;

impl Resolved {
    pub fn new(
        run: &Run,
        timeline: &GlobalTimeline,
        selection: &Selection,
    ) -> Result<Self, SelectionError> {
        let earliest = timeline.ranks.iter().map(RankTime::begin_s).fold(f64::INFINITY, f64::min);
        let latest = timeline.ranks.iter().map(RankTime::end_s).fold(f64::NEG_INFINITY, f64::max);
        let run_elapsed_s = latest - earliest;
        let parts: Vec<Stretches> = match selection {
            Selection::Whole => {
                timeline.ranks.iter().map(|r| Some(vec![(r.begin_ticks, r.end_ticks)])).collect()
            }
            Selection::Region(name) => region(run, timeline, name)?,
            Selection::Window { from, to } => window(run, timeline, from, to, run_elapsed_s)?,
        };
        if *selection != Selection::Whole {
            without_totals(run, timeline, selection, &parts)?;
        }
        let mut notes = Vec::new();
        let absent: Vec<_> =
            run.ranks.iter().zip(&parts).filter(|(_, part)| part.is_none()).collect();
        if let Some((first, _)) = absent.first() {
            notes.push(format!(
                "{} of {} ranks take no part in the selection (the first: rank {}); efficiency is \
                 that of the others",
                absent.len(),
                parts.len(),
                first.rank
            ));
        }
        let mut resolved = Self {
            whole: *selection == Selection::Whole,
            ranks: Vec::new(),
            elapsed_s: 0.0,
            run_elapsed_s,
            occurrences: equal_counts(&parts),
            notes,
        };
        resolved.measure(timeline, parts);
        Ok(resolved)
    }

    /// Finds τ and every rank's time outside of its stretches.
    ///
    /// With equally many stretches a rank, τ = Σ_k (latest end of the k-th − earliest begin of the
    /// k-th); otherwise latest end − earliest begin of all.
    fn measure(&mut self, timeline: &GlobalTimeline, parts: Vec<Stretches>) {
        let pairs =
            || timeline.ranks.iter().zip(&parts).filter_map(|(r, p)| Some((r, p.as_ref()?)));
        let seconds = |rank: &RankTime, &(begin, end): &(u64, u64)| {
            (rank.clock.seconds(begin), rank.clock.seconds(end))
        };
        let hull =
            |hull: (f64, f64), (begin, end): (f64, f64)| (hull.0.min(begin), hull.1.max(end));
        const NOTHING: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut hulls = vec![NOTHING; self.occurrences.unwrap_or(1)];
        for (rank, stretches) in pairs() {
            for (index, stretch) in stretches.iter().enumerate() {
                let slot = if self.occurrences.is_some() { index } else { 0 };
                hulls[slot] = hull(hulls[slot], seconds(rank, stretch));
            }
        }
        if self.occurrences.is_none() {
            self.notes.push(
                "ranks have different numbers of occurrences: elapsed time is from the first begin \
                 to the last end, and what lies between a rank's occurrences counts as outside"
                    .into(),
            );
        }
        self.elapsed_s = hulls.iter().map(|(begin, end)| (end - begin).max(0.0)).sum();
        self.ranks = timeline
            .ranks
            .iter()
            .zip(parts)
            .map(|(rank, part)| {
                let takes_part = part.is_some();
                let stretches = part.unwrap_or_default();
                let outside_s = match (takes_part, stretches.is_empty()) {
                    (false, _) => 0.0,
                    (true, true) => self.elapsed_s,
                    (true, false) => {
                        let times = stretches.iter().map(|stretch| seconds(rank, stretch));
                        outside(&hulls, times, self.occurrences.is_some())
                    }
                };
                RankSelection { takes_part, every_call: self.whole, stretches, outside_s }
            })
            .collect();
    }
}

/// An error where totals stand for a part of what is selected; regions may begin or end unseen in them.
fn without_totals(
    run: &Run,
    timeline: &GlobalTimeline,
    selection: &Selection,
    parts: &[Stretches],
) -> Result<(), SelectionError> {
    let any_region = matches!(selection, Selection::Region(_));
    for ((trace, time), part) in run.ranks.iter().zip(&timeline.ranks).zip(parts) {
        let totals = trace.file.threads.iter().filter_map(|thread| thread.totals.as_ref());
        for header in totals.map(|totals| &totals.header) {
            let meets = part
                .iter()
                .flatten()
                .any(|(begin, end)| *begin < header.end_ticks && header.begin_ticks < *end);
            let regions = header.region_own_ticks | header.region_compute_ticks;
            if meets || any_region && (regions | header.open_regions) > 0 {
                return Err(SelectionError::OnlyTotals {
                    rank: trace.rank,
                    from_s: time.clock.seconds(header.begin_ticks),
                    to_s: time.clock.seconds(header.end_ticks),
                });
            }
        }
    }
    Ok(())
}

/// Seconds inside the hulls but outside of a rank's stretches.
fn outside(hulls: &[(f64, f64)], times: impl Iterator<Item = (f64, f64)>, paired: bool) -> f64 {
    if paired {
        return times.zip(hulls).map(|((b, e), (from, to))| (b - from) + (to - e)).sum();
    }
    let (from, to) = hulls[0];
    let (mut sum, mut at) = (0.0, from);
    for (begin, end) in times {
        sum += begin - at;
        at = end;
    }
    sum + (to - at)
}

/// How many stretches every rank has that has any.
fn equal_counts(parts: &[Stretches]) -> Option<usize> {
    let counts: BTreeSet<usize> =
        parts.iter().flatten().map(Vec::len).filter(|count| *count > 0).collect();
    (counts.len() == 1).then(|| counts.first().copied()).flatten()
}

fn region(
    run: &Run,
    timeline: &GlobalTimeline,
    name: &str,
) -> Result<Vec<Stretches>, SelectionError> {
    let known = run.region_names();
    if !known.contains(name) {
        let known = known.into_iter().map(str::to_owned).collect();
        return Err(SelectionError::UnknownRegion { name: name.to_owned(), known });
    }
    let pairs: Vec<_> = run.ranks.iter().zip(&timeline.ranks).collect();
    let parts: Vec<Stretches> = pairs
        .into_par_iter()
        .map(|(trace, time)| occurrences_of_region(trace, time, name))
        .collect();
    if parts.iter().all(Option::is_none) {
        return Err(SelectionError::EmptyRegion(name.to_owned()));
    }
    Ok(parts)
}

/// The outermost occurrences of a region on a rank, clipped to its stretch. One that never ends
/// lasts to the rank's end. Occurrences of different threads that overlap count as one.
fn occurrences_of_region(trace: &RankTrace, time: &RankTime, name: &str) -> Stretches {
    let named = trace.facts.regions.iter().filter(|(_, other)| other.as_str() == name);
    let ids: BTreeSet<u32> = named.map(|(id, _)| *id).collect();
    let mut found = Vec::new();
    for spans in Spans::of_threads(trace, time) {
        let (mut depth, mut begin) = (0u64, 0);
        let mut close = |begin: u64, end: u64| {
            let begin = begin.clamp(time.begin_ticks, time.end_ticks);
            let end = end.clamp(time.begin_ticks, time.end_ticks);
            if end > begin {
                found.push((begin, end));
            }
        };
        for span in spans {
            match span.kind {
                SpanKind::RegionBegin(id) if ids.contains(&id) => {
                    if depth == 0 {
                        begin = span.begin_ticks;
                    }
                    depth += 1;
                }
                SpanKind::RegionEnd(id) if ids.contains(&id) && depth > 0 => {
                    depth -= 1;
                    if depth == 0 {
                        close(begin, span.begin_ticks);
                    }
                }
                _ => {}
            }
        }
        if depth > 0 {
            close(begin, time.end_ticks);
        }
    }
    found.sort_unstable();
    found.dedup_by(|next, previous| {
        let overlap = next.0 < previous.1;
        if overlap {
            previous.1 = previous.1.max(next.1);
        }
        overlap
    });
    (!found.is_empty()).then_some(found)
}

fn window(
    run: &Run,
    timeline: &GlobalTimeline,
    from: &Bound,
    to: &Bound,
    run_elapsed_s: f64,
) -> Result<Vec<Stretches>, SelectionError> {
    let empty = |what| SelectionError::EmptyWindow { window: format!("{from},{to}"), what };
    for bound in [from, to] {
        if let Bound::Occurrence { function, .. } = bound {
            let knows = |rank: &RankTrace| rank.file.function_names().contains(function);
            if !run.ranks.iter().any(knows) {
                return Err(SelectionError::UnknownFunction(function.clone()));
            }
        }
    }
    if let Bound::Seconds(from) = from
        && *from >= run_elapsed_s
    {
        return Err(empty(format!("the run lasts from 0 to {run_elapsed_s:.6} s")));
    }
    let by_call = [from, to].iter().any(|bound| matches!(bound, Bound::Occurrence { .. }));
    let pairs: Vec<_> = run.ranks.iter().zip(&timeline.ranks).collect();
    let parts: Vec<Stretches> = pairs
        .into_par_iter()
        .map(|(trace, time)| {
            let begin = moment(trace, time, from, |span| span.returned.then_some(span.end_ticks));
            let end = moment(trace, time, to, |span| Some(span.begin_ticks));
            let stretch = begin
                .zip(end)
                .map(|(begin, end)| (begin.max(time.begin_ticks), end.min(time.end_ticks)));
            match stretch.filter(|(begin, end)| begin < end) {
                Some(stretch) => Some(vec![stretch]),
                // By seconds every rank takes part, also one that had ended before.
                None if !by_call => Some(Vec::new()),
                None => None,
            }
        })
        .collect();
    if parts.iter().flatten().all(Vec::is_empty) {
        return Err(empty(if by_call {
            "no rank makes these calls in this order between MPI_Init and MPI_Finalize".into()
        } else {
            "no rank was running then".into()
        }));
    }
    Ok(parts)
}

/// A bound on a rank's counter; `None` when the rank does not make that call.
fn moment(
    trace: &RankTrace,
    time: &RankTime,
    bound: &Bound,
    stamp: impl Fn(&Span) -> Option<u64>,
) -> Option<u64> {
    match bound {
        Bound::Seconds(seconds) => Some(time.clock.ticks_at(*seconds)),
        Bound::Occurrence { function, number } => {
            let names = trace.file.function_names().iter();
            let index = names.zip(0u16..).find(|(name, _)| *name == function)?.1;
            let function = trace_format::layout::FIRST_FUNCTION + index;
            nth_call(trace, time, function, *number).and_then(|span| stamp(&span))
        }
    }
}

/// The n-th call of a function on a rank, by begin over its threads.
fn nth_call(trace: &RankTrace, time: &RankTime, function: u16, number: u64) -> Option<Span> {
    let is_it = |span: &Span| span.kind == SpanKind::Call(function);
    let mut heads: Vec<_> =
        Spans::of_threads(trace, time).map(|spans| spans.filter(is_it).peekable()).collect();
    let mut seen = 0;
    loop {
        let begins = heads.iter_mut().enumerate();
        let (next, _) = begins
            .filter_map(|(index, head)| Some((index, head.peek()?.begin_ticks)))
            .min_by_key(|(_, begin)| *begin)?;
        seen += 1;
        let span = heads[next].next()?;
        if seen == number {
            return Some(span);
        }
    }
}
