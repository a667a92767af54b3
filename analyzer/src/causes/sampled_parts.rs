//! What was sampled in regions and iterations: samples of all threads of a rank, also of those that never call MPI, while
//! the rank is in the part.

use std::collections::BTreeMap;

use crate::trace::samples::RankSamples;

use super::hinted_search;
use super::integer_timeline::IntegerTimeline;

/// Samples by the number of the rank's stack.
pub type StackCounts = BTreeMap<u32, u64>;

/// What was sampled in the iterations of a phase, by the rank's position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseSamples {
    pub slow: Vec<StackCounts>,
    pub others: Vec<StackCounts>,
}

/// Counts the samples of a rank between moments.
#[derive(Debug)]
pub(super) struct SampleCounter<'a> {
    samples: &'a RankSamples,
    /// By thread, where the last search ended.
    hints: Vec<usize>,
}

impl<'a> SampleCounter<'a> {
    pub fn new(samples: &'a RankSamples) -> Self {
        Self { samples, hints: vec![0; samples.threads.len()] }
    }

    /// Adds the samples between two moments of the rank at a position.
    pub fn add(
        &mut self,
        (clock, position): (&IntegerTimeline, usize),
        (from, to): (i64, i64),
        counts: &mut StackCounts,
    ) {
        for (thread, hint) in self.samples.threads.iter().zip(&mut self.hints) {
            let mut up_to = |moment: i64| {
                let is_before = |(ticks, _): &(u64, u32)| clock.at(position, *ticks) < moment;
                hinted_search::partition_point(&thread.samples, hint, is_before)
            };
            let inside = up_to(from)..up_to(to);
            for (_, stack) in &thread.samples[inside] {
                *counts.entry(*stack).or_default() += 1;
            }
        }
    }
}
