//! Lines of the timeline: the threads of all ranks, numbered, with the begin and end of each.

use crate::analysis::{Analysis, RankView};

use super::integer_timeline::IntegerTimeline;

/// A thread of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Position of the rank in the run.
    pub position: usize,
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Number of the thread in the rank's file.
    pub thread: u32,
    /// Begin of its rank. When a thread was created is not recorded; until its first call it
    /// computes.
    pub begin: i64,
    /// Last known moment.
    pub end: i64,
    /// Whether its rank entered MPI_Finalize: one that was killed waits for nobody after its end.
    pub finalizes: bool,
}

/// All lines of a run, rank by rank.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    /// Ordered by rank and thread.
    pub all: Vec<Line>,
    /// First line of each rank; one more entry ends the last rank.
    first: Vec<u32>,
}

/// Whether a rank has threads besides its first.
pub(super) fn has_several_threads(rank: RankView<'_>) -> bool {
    rank.threads().any(|thread| thread.thread.number != 0)
}

/// What gives moments of all lines on one axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommonAxis<'c> {
    pub clock: &'c IntegerTimeline<'c>,
    pub lines: &'c Lines,
}

impl Lines {
    /// The lines of a run.
    pub fn new(analysis: &Analysis, clock: &IntegerTimeline) -> Self {
        let mut lines = Self::default();
        for position in 0..analysis.run.ranks.len() {
            lines.first.push(lines.all.len() as u32);
            let rank = analysis.rank(position);
            let (begin, end) = (rank.time.begin_ticks, rank.time.end_ticks);
            let of_rank = clock.at(position, begin);
            let mut threads: Vec<(u32, Option<(u64, u64)>)> =
                rank.threads().map(|thread| (thread.thread.number, thread.stretch)).collect();
            // A first thread without events was outside MPI all the time.
            if !threads.iter().any(|(number, _)| *number == 0) {
                threads.insert(0, (0, Some((begin, end))));
            }
            for (thread, stretch) in threads {
                let (_, end) = stretch.unwrap_or((begin, begin));
                let end = clock.at(position, end).max(of_rank);
                let finalizes = rank.trace.facts.end_ticks.is_some();
                let rank = rank.trace.rank;
                lines.all.push(Line { position, rank, thread, begin: of_rank, end, finalizes });
            }
        }
        lines.first.push(lines.all.len() as u32);
        lines
    }

    /// The line of a rank's thread.
    #[inline]
    pub fn number_of(&self, position: usize, thread: u32) -> Option<u32> {
        let (from, to) = (self.first[position], self.first[position + 1]);
        let is_it = |line: &u32| self.all[*line as usize].thread == thread;
        Some(from + thread)
            .filter(|line| *line < to && is_it(line))
            .or_else(|| (from..to).find(is_it))
    }

    /// First line of a rank: the thread that called MPI_Init.
    #[inline]
    pub fn first_of(&self, position: usize) -> u32 {
        self.first[position]
    }

    /// The lines of a rank.
    pub(super) fn of_rank(&self, position: usize) -> std::ops::Range<u32> {
        self.first[position]..self.first[position + 1]
    }

    /// Begin and end of a rank.
    pub(super) fn stretch_of(&self, position: usize) -> (i64, i64) {
        let first = &self.all[self.first_of(position) as usize];
        (first.begin, first.end)
    }

    /// Earliest begin and latest end of any line; `None` if there are no ranks.
    pub fn extent(&self) -> Option<(i64, i64)> {
        let begin = self.all.iter().map(|line| line.begin).min()?;
        let end = self.all.iter().map(|line| line.end).max()?;
        Some((begin, end))
    }
}

/// Largest clock errors of each rank against the one that begins first and the one that ends last,
/// ticks.
pub(super) type EndBounds = Vec<[i64; 2]>;

/// The errors of all ranks, by position.
pub(super) fn end_bounds(analysis: &Analysis, clock: &IntegerTimeline) -> EndBounds {
    let ranks = || 0..analysis.run.ranks.len();
    let begin = |position: usize| analysis.rank(position).time.begin_ticks;
    let end = |position: usize| analysis.rank(position).time.end_ticks;
    let first = ranks().min_by_key(|position| clock.at(*position, begin(*position)));
    let last = ranks().max_by_key(|position| clock.at(*position, end(*position)));
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let bound = |position| {
        [
            clock.bound((position, begin(position)), (first, begin(first))),
            clock.bound((position, end(position)), (last, end(last))),
        ]
    };
    ranks().map(bound).collect()
}
