//! Divides an export into parts: blocks of consecutive ranks with about the same number of calls.
//! The division depends on the run and on what is chosen of it, never on who writes it.

use std::ops::Range;

use super::content::Content;
use crate::processes::divide;

/// Calls of a part, unless the user wants another number: a file of some 100 MB.
pub const PART_CALLS: u64 = 1 << 22;

/// The parts of an export, and which of them each process writes.
#[derive(Debug, Clone)]
pub struct Parts {
    /// By part, positions of its ranks among [`super::content::Head::ranks`].
    ranks: Vec<Range<usize>>,
    /// By process, the parts that it writes.
    of_processes: Vec<Range<usize>>,
    /// Number of this process.
    process: usize,
}

impl Parts {
    /// Parts of about so many calls. A rank is never divided, so one with more calls is a part of
    /// its own.
    pub fn with_calls(content: &Content, calls: u64) -> Self {
        let weights: Vec<u64> =
            (0..content.head.ranks.len()).map(|rank| content.expected_calls(rank)).collect();
        let all = weights.iter().copied().fold(0, u64::saturating_add);
        let count = all.div_ceil(calls.max(1)).clamp(1, weights.len().max(1) as u64);
        let ranks = divide(&weights, count as usize);
        let of_part = |part: &Range<usize>| {
            weights[part.clone()].iter().fold(0, |a: u64, b| a.saturating_add(*b))
        };
        let processes = &content.run.processes;
        let of_processes = processes.divide(&ranks.iter().map(of_part).collect::<Vec<_>>());
        Self { ranks, of_processes, process: processes.number() }
    }

    /// One part with all ranks, written by the first process.
    pub fn one(content: &Content) -> Self {
        Self::with_calls(content, u64::MAX)
    }

    /// Number of parts.
    pub fn count(&self) -> usize {
        self.ranks.len()
    }

    /// The parts that this process writes.
    pub fn own(&self) -> Range<usize> {
        self.of_processes[self.process].clone()
    }

    /// Positions of a part's ranks among [`super::content::Head::ranks`].
    pub fn ranks(&self, part: usize) -> Range<usize> {
        self.ranks[part].clone()
    }

    /// The part of the rank at this position among [`super::content::Head::ranks`].
    pub fn part_of(&self, rank: usize) -> usize {
        self.ranks.partition_point(|ranks| ranks.end <= rank)
    }

    /// The process that writes a part.
    pub fn process_of(&self, part: usize) -> usize {
        self.of_processes.partition_point(|parts| parts.end <= part)
    }

    /// Positions in the run of the ranks whose messages this process matches: those of its parts,
    /// and ranks beside them that are not exported. Those of all processes cover the run.
    pub fn own_positions(&self, content: &Content) -> Range<usize> {
        let begin = |part: usize| match self.ranks.get(part).filter(|_| part > 0) {
            Some(ranks) => content.head.ranks[ranks.start].position,
            None if part == 0 => 0,
            None => content.run.ranks.len(),
        };
        let own = self.own();
        begin(own.start)..begin(own.end)
    }
}
