//! Resolves a [`Selection`] on each rank's own counter: every rank's stretches, the selection's
//! elapsed time (τ), and every rank's part of τ outside its stretches.

use std::collections::BTreeSet;

use crate::analysis::Analysis;
use crate::did_you_mean;
use crate::timeline::{GlobalTimeline, RankTime};
use crate::trace::{RankTrace, Run};

use super::marks::{Found, Marks, RankMarks, Targets};
use super::note::Note;
use super::selection::{Bound, Iteration, Selection};

/// Why a selection cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SelectionError {
    /// There is no region of that name.
    #[error("no region is named {name:?}; {}", regions_of_run(.name, .known))]
    UnknownRegion {
        /// The requested name.
        name: String,
        /// The names of the run's regions.
        known: Vec<String>,
    },
    /// The region exists, but no rank entered it between MPI_Init and MPI_Finalize.
    #[error("no rank entered region {0:?} between MPI_Init and MPI_Finalize")]
    EmptyRegion(String),
    #[error(
        "no function is named {name:?}; names are written as in C, such as MPI_Barrier{question}"
    )]
    UnknownFunction {
        /// The requested name.
        name: String,
        /// The function that may have been meant, as a question; or empty.
        question: String,
    },
    /// Only totals are kept for a part of the selection.
    #[error(
        "for rank {rank} only totals are kept from {from_s:.6} to {to_s:.6} s, and the selection \
         overlaps that time"
    )]
    OnlyTotals {
        /// The first such rank.
        rank: u32,
        /// Start of that time, global seconds.
        from_s: f64,
        /// Its end.
        to_s: f64,
    },
    /// Regions, windows and iterations that never coincide.
    #[error("nothing is selected by {0} together")]
    NothingInCommon(String),
    /// The window contains no time of any rank.
    #[error("nothing is selected from {from} to {to}: {why}")]
    EmptyWindow {
        /// Where the window begins.
        from: Bound,
        /// Where it ends.
        to: Bound,
        why: EmptyWindow,
    },
}

/// Why a window contains no time of any rank.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum EmptyWindow {
    /// It begins after the end of the run.
    #[error("the run lasts from 0 to {run_elapsed_s:.6} s")]
    AfterRun {
        /// End of the run, global seconds.
        run_elapsed_s: f64,
    },
    /// Its bounds are calls that no rank makes in this order.
    #[error("no rank makes these calls in this order between MPI_Init and MPI_Finalize")]
    NoCalls,
    /// No rank was running at that time.
    #[error("no rank was running then")]
    NoRank,
}

fn regions_of_run(name: &str, known: &[String]) -> String {
    if known.is_empty() {
        return "the run has no regions (mark them with gammachi_region_begin/_end of gammachi.h)"
            .into();
    }
    let question = did_you_mean::question(name, known.iter().map(String::as_str));
    format!("there are: {}{question}", known.join(", "))
}

/// A rank's part of a selection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RankSelection {
    /// Whether the rank counts among the p ranks of the selection.
    pub takes_part: bool,
    /// Whether every recorded call counts, even outside the stretches.
    pub every_call: bool,
    /// Start and end of each stretch on the rank's counter, ascending, disjoint.
    pub stretches: Vec<(u64, u64)>,
    /// Seconds of τ outside the stretches.
    pub outside_s: f64,
}

impl RankSelection {
    /// Whether a call that begins at this moment counts in the selection.
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
    /// Whether one iteration is.
    is_iteration: bool,
    /// In the order of the ranks.
    pub ranks: Vec<RankSelection>,
    /// τ of the selection.
    pub elapsed_s: f64,
    /// τ of the whole run.
    pub run_elapsed_s: f64,
    /// Stretches per rank, if all participating ranks have equally many.
    pub occurrences: Option<usize>,
    /// Remarks on the selection.
    pub notes: Vec<Note>,
}

type Stretches = Option<Vec<(u64, u64)>>;

impl Resolved {
    /// Resolves several selections. The events are read once for all of them, and not at all unless
    /// some selection names a region or a call.
    pub fn all(analysis: &Analysis, selections: &[Selection]) -> Vec<Result<Self, SelectionError>> {
        let Analysis { run, timeline, .. } = *analysis;
        let targets: Vec<Targets> = selections.iter().map(Targets::for_selection).collect();
        let found: Vec<Vec<Found>> = match targets.iter().all(Targets::is_empty) {
            true => run
                .ranks
                .iter()
                .map(|_| targets.iter().map(|_| Found::default()).collect())
                .collect(),
            false => {
                let of_ranks = analysis.calls(&Marks { targets: &targets });
                analysis.processes.join(of_ranks.into_iter().map(RankMarks::finish).collect())
            }
        };
        let each = selections.iter().enumerate();
        each.map(|(index, selection)| {
            let found: Vec<&Found> = found.iter().map(|of_rank| &of_rank[index]).collect();
            Self::new(run, timeline, selection, &found)
        })
        .collect()
    }

    fn new(
        run: &Run,
        timeline: &GlobalTimeline,
        selection: &Selection,
        found: &[&Found],
    ) -> Result<Self, SelectionError> {
        let earliest = timeline.ranks.iter().map(RankTime::begin_s).fold(f64::INFINITY, f64::min);
        let latest = timeline.ranks.iter().map(RankTime::end_s).fold(f64::NEG_INFINITY, f64::max);
        let run_elapsed_s = latest - earliest;
        let whole = || timeline.ranks.iter().map(|r| Some(vec![(r.begin_ticks, r.end_ticks)]));
        let of_part = |part: &Selection| match part {
            Selection::Whole | Selection::All(_) => Ok(whole().collect()),
            Selection::Region(name) => region(run, found, name),
            Selection::Window { from, to } => {
                window((run, timeline), found, (from, to), run_elapsed_s)
            }
            Selection::Iteration(Iteration { of_ranks, .. }) => {
                Ok(of_ranks.iter().map(|stretch| Some(vec![*stretch])).collect())
            }
        };
        let mut parts: Vec<Stretches> = match selection.parts() {
            [] => whole().collect(),
            [first, others @ ..] => {
                let mut all = of_part(first)?;
                for other in others {
                    let other: Vec<Stretches> = of_part(other)?;
                    all = all.into_iter().zip(other).map(common).collect();
                }
                all
            }
        };
        if selection.parts().len() > 1 && parts.iter().flatten().all(Vec::is_empty) {
            return Err(SelectionError::NothingInCommon(selection.to_string()));
        }
        if let Selection::Iteration(_) = selection {
            clip(&mut parts, timeline);
        }
        if *selection != Selection::Whole {
            check_for_totals(run, timeline, selection, &parts)?;
        }
        let mut notes = Vec::new();
        let absent: Vec<_> =
            run.ranks.iter().zip(&parts).filter(|(_, part)| part.is_none()).collect();
        if let Some((first, _)) = absent.first() {
            let (ranks, of, first) = (absent.len(), parts.len(), first.rank);
            notes.push(Note::NotParticipating { ranks, of, first });
        }
        let mut resolved = Self {
            whole: *selection == Selection::Whole,
            is_iteration: matches!(selection, Selection::Iteration(_)),
            ranks: Vec::new(),
            elapsed_s: 0.0,
            run_elapsed_s,
            occurrences: equal_counts(&parts),
            notes,
        };
        resolved.measure(timeline, parts);
        Ok(resolved)
    }

    /// Each rank's stretches; `None` of a rank that does not take part.
    pub fn stretches(&self) -> Vec<Option<Vec<(u64, u64)>>> {
        self.ranks.iter().map(|of| of.takes_part.then(|| of.stretches.clone())).collect()
    }

    /// Computes τ and every rank's time outside its stretches.
    ///
    /// If all ranks have equally many stretches, τ = Σ_k (latest end of the k-th − earliest start
    /// of the k-th); otherwise it is the latest end − the earliest start of all. Of an iteration it
    /// is the latest end − the latest start, or the time of the rank that is longest in it: so it
    /// does not count what ranks do in the iteration before, while others have begun this one.
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
            self.notes.push(Note::OccurrencesDiffer);
        }
        self.elapsed_s = hulls.iter().map(|(begin, end)| (end - begin).max(0.0)).sum();
        if self.is_iteration {
            let all =
                || pairs().flat_map(|(rank, of)| of.iter().map(move |one| seconds(rank, one)));
            let latest = all().map(|(begin, _)| begin).fold(f64::NEG_INFINITY, f64::max);
            let between = all().map(|(_, end)| end - latest);
            self.elapsed_s =
                all().map(|(begin, end)| end - begin).chain(between).fold(0.0, f64::max);
        }
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
                    (true, false) if self.is_iteration => {
                        let times = stretches.iter().map(|stretch| seconds(rank, stretch));
                        self.elapsed_s - times.map(|(begin, end)| end - begin).sum::<f64>()
                    }
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

/// What two stretches of a rank have in common. A rank that takes part in both takes part.
fn common((one, other): (Stretches, Stretches)) -> Stretches {
    let (one, other) = one.zip(other)?;
    let (mut common, mut at) = (Vec::new(), 0);
    for (begin, end) in one {
        while at < other.len() && other[at].1 <= begin {
            at += 1;
        }
        let overlapping = other[at..].iter().take_while(|(from, _)| *from < end);
        common.extend(overlapping.map(|(from, to)| (begin.max(*from), end.min(*to))));
    }
    Some(common)
}

/// Clips stretches to those of the ranks.
fn clip(parts: &mut [Stretches], timeline: &GlobalTimeline) {
    for (part, rank) in parts.iter_mut().zip(&timeline.ranks) {
        for (begin, end) in part.iter_mut().flatten() {
            *begin = (*begin).clamp(rank.begin_ticks, rank.end_ticks);
            *end = (*end).clamp(*begin, rank.end_ticks.max(*begin));
        }
    }
}

/// Fails if only totals are kept for a part of the selection, in which regions may begin or end
/// unseen.
fn check_for_totals(
    run: &Run,
    timeline: &GlobalTimeline,
    selection: &Selection,
    parts: &[Stretches],
) -> Result<(), SelectionError> {
    let any_region = selection.parts().iter().any(|part| matches!(part, Selection::Region(_)));
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

/// Seconds inside the hulls but outside a rank's stretches.
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

/// The number of stretches of every rank that has any; `None` if the ranks differ.
fn equal_counts(parts: &[Stretches]) -> Option<usize> {
    let counts: BTreeSet<usize> =
        parts.iter().flatten().map(Vec::len).filter(|count| *count > 0).collect();
    (counts.len() == 1).then(|| counts.first().copied()).flatten()
}

fn region(run: &Run, found: &[&Found], name: &str) -> Result<Vec<Stretches>, SelectionError> {
    let known = run.region_names();
    if !known.contains(name) {
        let known = known.into_iter().map(str::to_owned).collect();
        return Err(SelectionError::UnknownRegion { name: name.to_owned(), known });
    }
    let parts = found.iter().map(|found| found.occurrences.clone());
    let parts: Vec<Stretches> = parts.map(|found| (!found.is_empty()).then_some(found)).collect();
    if parts.iter().all(Option::is_none) {
        return Err(SelectionError::EmptyRegion(name.to_owned()));
    }
    Ok(parts)
}

fn window(
    (run, timeline): (&Run, &GlobalTimeline),
    found: &[&Found],
    (from, to): (&Bound, &Bound),
    run_elapsed_s: f64,
) -> Result<Vec<Stretches>, SelectionError> {
    let empty = |why| SelectionError::EmptyWindow { from: from.clone(), to: to.clone(), why };
    for bound in [from, to] {
        if let Bound::Occurrence { function, .. } = bound {
            let knows = |rank: &RankTrace| rank.file.function_names().contains(function);
            if !run.ranks.iter().any(knows) {
                let all = run.ranks.iter().flat_map(|rank| rank.file.function_names());
                let question = did_you_mean::question(function, all.map(String::as_str));
                return Err(SelectionError::UnknownFunction { name: function.clone(), question });
            }
        }
    }
    if let Bound::Seconds(from) = from
        && *from >= run_elapsed_s
    {
        return Err(empty(EmptyWindow::AfterRun { run_elapsed_s }));
    }
    let by_call = [from, to].iter().any(|bound| matches!(bound, Bound::Occurrence { .. }));
    let of_rank = |(time, found): (&RankTime, &&Found)| {
        let [first, second] = &found.calls;
        let begin =
            moment(time, from, first.filter(|call| call.returned).map(|call| call.end_ticks));
        let end = moment(time, to, second.map(|call| call.begin_ticks));
        let stretch = begin
            .zip(end)
            .map(|(begin, end)| (begin.max(time.begin_ticks), end.min(time.end_ticks)));
        match stretch.filter(|(begin, end)| begin < end) {
            Some(stretch) => Some(vec![stretch]),
            // In a window of seconds every rank takes part, even one that had ended before.
            None if !by_call => Some(Vec::new()),
            None => None,
        }
    };
    let parts: Vec<Stretches> = timeline.ranks.iter().zip(found).map(of_rank).collect();
    if parts.iter().flatten().all(Vec::is_empty) {
        return Err(empty(if by_call { EmptyWindow::NoCalls } else { EmptyWindow::NoRank }));
    }
    Ok(parts)
}

/// A bound on a rank's counter; `None` if the rank does not make that call.
fn moment(time: &RankTime, bound: &Bound, of_call: Option<u64>) -> Option<u64> {
    match bound {
        Bound::Seconds(seconds) => Some(time.clock.ticks_at(*seconds)),
        Bound::Occurrence { .. } => of_call,
    }
}
