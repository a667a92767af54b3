//! A part of a run on the common time axis: what a region, a window, an iteration or several of them
//! select. Waits are clipped to it, so that those of adjacent parts add up.

use crate::metrics::{Bound, Metrics, Selection};

use super::lines::{CommonAxis, Lines};
use super::wait::Wait;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Stretches of the rank at each position, ascending and disjoint; `None` if it takes no part.
    of_ranks: Vec<Option<Vec<(i64, i64)>>>,
    /// Its length (T); no rank is in it for longer.
    pub ticks: i64,
    /// Whether the k-th stretches of all ranks belong together.
    is_paired: bool,
    is_iteration: bool,
    /// Whether it may end inside calls.
    is_cut_by_time: bool,
}

impl Part {
    /// The part that metrics are for; `None` if that is the whole run, from `whole.0` to `whole.1`.
    pub(super) fn new(
        metrics: &Metrics,
        CommonAxis { clock, lines }: CommonAxis,
        whole: (i64, i64),
    ) -> Option<Self> {
        let in_seconds = match &metrics.selection {
            Selection::Whole => return None,
            Selection::Window { from: Bound::Seconds(from), to: Bound::Seconds(to) } => {
                let clip = |at: i64| at.clamp(whole.0, whole.1);
                Some((clip(clock.at_seconds(*from)), clip(clock.at_seconds(*to))))
            }
            _ => None,
        };
        let of_rank = |(position, stretches): (usize, &Option<Vec<(u64, u64)>>)| {
            // What a rank waits before its begin and after its end lies in seconds, too.
            if let Some(window) = in_seconds {
                return Some(vec![window]);
            }
            let (begin, end) = lines.stretch_of(position);
            let at = |ticks| clock.at(position, ticks).clamp(begin, end);
            Some(stretches.as_ref()?.iter().map(|(from, to)| (at(*from), at(*to))).collect())
        };
        let of_ranks: Vec<_> = metrics.stretches.iter().enumerate().map(of_rank).collect();
        let is_paired = metrics.occurrences.is_some();
        let is_iteration = matches!(metrics.selection, Selection::Iteration(_));
        let in_seconds = |part: &Selection| match part {
            Selection::Window { to, .. } => matches!(to, Bound::Seconds(_)),
            _ => false,
        };
        let is_cut_by_time = metrics.selection.parts().iter().any(in_seconds);
        let mut part = Self { of_ranks, ticks: 0, is_paired, is_iteration, is_cut_by_time };
        part.ticks = part.length(|_, _, end| end);
        Some(part)
    }

    /// Number of ranks that take part.
    pub fn ranks(&self) -> usize {
        self.of_ranks.iter().flatten().count()
    }

    /// Whether the rank at a position takes part.
    pub fn has(&self, position: usize) -> bool {
        self.of_ranks[position].is_some()
    }

    /// The stretches of the rank at a position.
    pub fn stretches(&self, position: usize) -> &[(i64, i64)] {
        self.of_ranks[position].as_deref().unwrap_or_default()
    }

    /// Ticks between two moments of the rank at a position.
    pub fn inside(&self, position: usize, (from, to): (i64, i64)) -> i64 {
        let stretches = self.stretches(position);
        let first = stretches.partition_point(|(_, end)| *end <= from);
        let overlapping = stretches[first..].iter().take_while(|(begin, _)| *begin < to);
        overlapping.map(|(begin, end)| to.min(*end) - from.max(*begin)).sum()
    }

    /// Ticks of a wait. Those of a run of polls count from its begin on, as in the profiles.
    pub(super) fn ticks_of(&self, wait: &Wait, lines: &Lines) -> i64 {
        let position = lines.all[wait.line as usize].position;
        self.inside(position, (wait.begin, wait.begin + wait.ticks))
    }

    /// The moments at which the profiles of the rank at a position must be cut.
    pub(crate) fn moments(&self, position: usize) -> impl Iterator<Item = i64> {
        self.stretches(position).iter().flat_map(|(begin, end)| [*begin, *end])
    }

    /// Whether it ends at a time, which may be inside calls, rather than at something that the ranks
    /// do.
    pub fn is_cut_by_time(&self) -> bool {
        self.is_cut_by_time
    }

    /// Whether the k-th stretches of all ranks belong together.
    pub fn is_paired(&self) -> bool {
        self.is_paired
    }

    /// Its length if the stretches ended at other moments, given by the rank's position, the number
    /// of the stretch and its end. If all ranks have equally many stretches, it is the sum over k of
    /// the latest end less the earliest begin of the k-th, else the latest end less the earliest
    /// begin of all. Of an iteration it is the latest end less the latest begin, or the time of the
    /// rank that is longest in it.
    pub fn length(&self, end_of: impl Fn(usize, usize, i64) -> i64) -> i64 {
        let ranks = self.of_ranks.iter().enumerate();
        let all = ranks.flat_map(|(position, stretches)| {
            let stretches = stretches.iter().flatten().enumerate();
            stretches.map(move |(number, stretch)| (position, number, *stretch))
        });
        let all = all.map(|(position, number, (begin, end))| {
            (number, (begin, end_of(position, number, end)))
        });
        let all: Vec<(usize, (i64, i64))> = all.collect();
        if self.is_iteration {
            let latest = all.iter().map(|(_, (begin, _))| *begin).max().unwrap_or(0);
            let lengths = all.iter().flat_map(|(_, (begin, end))| [end - begin, end - latest]);
            return lengths.fold(0, i64::max);
        }
        let mut hulls: Vec<(i64, i64)> = Vec::new();
        for (number, (begin, end)) in all {
            let number = if self.is_paired { number } else { 0 };
            match hulls.get_mut(number) {
                Some(hull) => *hull = (hull.0.min(begin), hull.1.max(end)),
                None => hulls.push((begin, end)),
            }
        }
        hulls.iter().map(|(begin, end)| end - begin).sum()
    }
}
