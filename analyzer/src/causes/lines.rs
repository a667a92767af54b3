//! Lines of the timeline: the threads of all ranks, numbered; from when to when each is known.

use crate::analysis::Analysis;

use super::whole_ticks::WholeTicks;

/// A thread of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Position of the rank in the run.
    pub position: usize,
    /// Its rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Thread as the file numbers it.
    pub thread: u32,
    /// From when it is known; of the first thread the rank's begin.
    pub begin: i64,
    /// Until when.
    pub end: i64,
}

/// All of a run, rank by rank.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    /// In the order of ranks and threads.
    pub all: Vec<Line>,
    /// The first line of each rank, and one behind the last.
    first: Vec<u32>,
}

impl Lines {
    /// Of a run.
    pub fn new(analysis: &Analysis, clock: &WholeTicks) -> Self {
        let mut lines = Self::default();
        for position in 0..analysis.run.ranks.len() {
            lines.first.push(lines.all.len() as u32);
            let rank = analysis.rank(position);
            let (begin, end) = (rank.time.begin_ticks, rank.time.end_ticks);
            let mut threads: Vec<(u32, Option<(u64, u64)>)> =
                rank.threads().map(|thread| (thread.thread.number, thread.stretch)).collect();
            // A rank without events has been outside MPI all the time.
            if threads.is_empty() {
                threads.push((0, Some((begin, end))));
            }
            for (thread, stretch) in threads {
                let (begin, end) = stretch.unwrap_or((begin, begin));
                let (begin, end) = (clock.at(position, begin), clock.at(position, end));
                let rank = rank.trace.rank;
                lines.all.push(Line { position, rank, thread, begin, end: end.max(begin) });
            }
        }
        lines.first.push(lines.all.len() as u32);
        lines
    }

    /// The line of a rank's thread.
    #[inline]
    pub fn of(&self, position: usize, thread: u32) -> Option<u32> {
        let (from, to) = (self.first[position], self.first[position + 1]);
        let is_it = |line: &u32| self.all[*line as usize].thread == thread;
        Some(from + thread)
            .filter(|line| *line < to && is_it(line))
            .or_else(|| (from..to).find(is_it))
    }

    /// The first line of a rank: that of the thread that called MPI first.
    #[inline]
    pub fn first_of(&self, position: usize) -> u32 {
        self.first[position]
    }

    /// Latest end of a rank, earliest begin; `None` without ranks.
    pub fn extent(&self) -> Option<(i64, i64)> {
        let begin = self.all.iter().map(|line| line.begin).min()?;
        let end = self.all.iter().map(|line| line.end).max()?;
        Some((begin, end))
    }
}
