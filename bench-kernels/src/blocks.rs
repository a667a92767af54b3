//! Times calls in blocks of equal size and summarises the blocks.
//!
//! The *median* block gives the cost of the path: blocks in which a recorder changed its window, or
//! the system interrupted, are outliers and do not affect it. The *mean* includes all of them.

use serde::Serialize;

use crate::counter;

/// How a loop is divided into blocks.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of timed blocks.
    pub blocks: usize,
    /// Number of blocks made before, which do not count: the first calls resolve symbols and fill
    /// caches.
    pub warmup_blocks: usize,
    /// Number of times that a block repeats the closure.
    pub turns: u64,
    /// Number of MPI calls that this rank makes in one repetition.
    pub calls_per_turn: u64,
}

impl Plan {
    /// At least `calls` calls in blocks of at least `block_calls`, with `calls_per_turn` calls per
    /// repetition.
    pub fn new(calls: u64, block_calls: u64, warmup_blocks: usize, calls_per_turn: u64) -> Self {
        let turns = block_calls.div_ceil(calls_per_turn).max(1);
        let blocks = calls.div_ceil(turns * calls_per_turn).max(1);
        Self { blocks: blocks as usize, warmup_blocks, turns, calls_per_turn }
    }

    /// Number of MPI calls that this rank makes in one block.
    pub fn block_calls(&self) -> u64 {
        self.turns * self.calls_per_turn
    }
}

/// Times of equal blocks.
#[derive(Clone, Debug)]
pub struct Blocks {
    block_ticks: Vec<u64>,
    calls: u64,
}

impl Blocks {
    /// Allocates room for `capacity` blocks of `calls` calls each now, not while timing.
    pub fn with_capacity(capacity: usize, calls: u64) -> Self {
        Self { block_ticks: Vec::with_capacity(capacity), calls }
    }

    /// Times one block: `turns` repetitions of `turn`, which is passed their number.
    #[inline(always)]
    pub fn time(&mut self, turns: u64, turn: impl FnMut(u64)) {
        self.block_ticks.push(ticks_of(turns, turn));
    }

    /// Runs the whole plan: first the warm-up, then the timed blocks.
    #[inline(always)]
    pub fn run(plan: &Plan, mut turn: impl FnMut(u64)) -> Self {
        let mut blocks = Self::with_capacity(plan.blocks, plan.block_calls());
        for _ in 0..plan.warmup_blocks {
            ticks_of(plan.turns, &mut turn);
        }
        for _ in 0..plan.blocks {
            blocks.time(plan.turns, &mut turn);
        }
        blocks
    }

    /// The figures of these blocks in ns per call.
    pub fn summary(&self, ns_per_tick: f64) -> Summary {
        let mut sorted = self.block_ticks.clone();
        sorted.sort_unstable();
        let calls = self.calls * sorted.len() as u64;
        let total: u64 = sorted.iter().sum();
        let per_call = |ticks: f64| ticks * ns_per_tick / self.calls.max(1) as f64;
        Summary {
            calls,
            block_calls: self.calls,
            blocks: sorted.len(),
            p10_ns: per_call(quantile(&sorted, 0.1)),
            median_ns: per_call(quantile(&sorted, 0.5)),
            mean_ns: total as f64 * ns_per_tick / calls.max(1) as f64,
            p99_ns: per_call(quantile(&sorted, 0.99)),
            p999_ns: per_call(quantile(&sorted, 0.999)),
            p9999_ns: per_call(quantile(&sorted, 0.9999)),
            max_ns: per_call(sorted.last().copied().unwrap_or_default() as f64),
        }
    }
}

/// Ticks from before the first turn to after the last.
#[inline(always)]
fn ticks_of(turns: u64, mut turn: impl FnMut(u64)) -> u64 {
    let begin = counter::read();
    for number in 0..turns {
        turn(number);
    }
    counter::read().wrapping_sub(begin)
}

/// Cost of one loop in ns per call of this rank.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Number of calls timed.
    pub calls: u64,
    /// Number of calls in one block.
    pub block_calls: u64,
    /// Number of blocks timed.
    pub blocks: usize,
    /// 10th percentile over blocks: the path when the machine does nothing else. If it is far below
    /// the median, the run was disturbed.
    pub p10_ns: f64,
    /// Median over blocks: the cost of the path.
    pub median_ns: f64,
    /// Mean over all calls, including window changes and interruptions.
    pub mean_ns: f64,
    /// 99th percentile over blocks.
    pub p99_ns: f64,
    /// 99.9th percentile over blocks.
    pub p999_ns: f64,
    /// 99.99th percentile over blocks.
    pub p9999_ns: f64,
    /// The longest block.
    pub max_ns: f64,
}

/// Quantile of sorted values, interpolated linearly; 0 if there are none.
fn quantile(sorted: &[u64], at: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = at * last as f64;
    let low = sorted[position.floor() as usize] as f64;
    let high = sorted[position.ceil() as usize] as f64;
    low + (high - low) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_makes_at_least_requested_calls() {
        let plan = Plan::new(10_001, 4_000, 2, 2);
        assert_eq!((plan.turns, plan.blocks, plan.block_calls()), (2_000, 3, 4_000));
        let plan = Plan::new(1, 3, 0, 2);
        assert_eq!((plan.turns, plan.blocks, plan.block_calls()), (2, 1, 4));
    }

    #[test]
    fn outlier_affects_mean_but_not_median() {
        let blocks = Blocks { block_ticks: vec![100, 900, 100, 100, 100], calls: 10 };
        let summary = blocks.summary(0.5);
        assert_eq!(summary.calls, 50);
        assert_eq!(summary.median_ns, 5.0);
        assert_eq!(summary.mean_ns, 13.0);
        assert!((summary.p99_ns - 43.4).abs() < 1e-9, "{}", summary.p99_ns);
    }

    #[test]
    fn makes_every_turn() {
        let mut turns = 0;
        let blocks = Blocks::run(&Plan::new(100, 10, 3, 1), |_| turns += 1);
        assert_eq!(turns, 130);
        assert_eq!(blocks.summary(1.0).blocks, 10);
    }
}
