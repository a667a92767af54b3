//! The stacks that were sampled while a line did what made it late, and on the lines that waited for it.

use std::collections::BTreeMap;

/// By delaying line and context of the delay.
#[derive(Debug, Clone, Default)]
pub(super) struct SampledDelays(pub(super) BTreeMap<(u32, u32), SampledDelay>);

/// What was sampled of a delay.
#[derive(Debug, Clone, Default)]
pub struct SampledDelay {
    /// Sum of the delays of all waits for it, ticks.
    pub ticks: i64,
    /// On the delaying line, in the intervals that explain these waits. A sample counts as often as waits go back to
    /// its interval.
    pub delaying: StackWeights,
    /// On the lines that waited, in their intervals.
    pub waiting: StackWeights,
}

/// Samples by line and stack, as its rank numbers them.
pub type StackWeights = BTreeMap<(u32, u32), Weight>;

/// What samples count together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weight {
    /// Sum of their weights.
    pub sum: f64,
    /// Sum of the squares: the variance, as samples are independent.
    pub squares: f64,
}

impl Weight {
    pub fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.squares += other.squares;
    }
}

impl SampledDelays {
    /// Gives delays other contexts.
    pub fn rename(&mut self, name: impl Fn(u32, u32) -> u32) {
        for ((line, context), delay) in std::mem::take(&mut self.0) {
            let known = self.0.entry((line, name(line, context))).or_default();
            known.ticks += delay.ticks;
            let sides =
                [(&mut known.delaying, delay.delaying), (&mut known.waiting, delay.waiting)];
            for (of, more) in sides {
                more.into_iter().for_each(|(key, weight)| of.entry(key).or_default().add(weight));
            }
        }
    }
}
