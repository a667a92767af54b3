//! How much of the waiting may have been spent without a core.
//!
//! The kernel's figures are known where the recorder reads them, at the begin and end of a rank, and
//! not for each wait. So a line waited without a core at most as long as it was without one, and at
//! most as long as it waited.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::trace::Run;

use super::lines::CommonAxis;
use super::states::State;
use super::wait::Wait;

/// Time in which lines were ready to run but had no core.
#[derive(Debug, Clone, Default)]
pub struct OffCpu {
    /// For each line the ticks in the whole run, or to the last reading of a rank that died; `None`
    /// if they are not known.
    pub of_line: Vec<Option<i64>>,
    /// For each state how much of the waiting that can be at most, ticks; `None` if it is not
    /// known.
    pub at_most: BTreeMap<State, Option<i64>>,
}

impl OffCpu {
    /// From the kernel's figures and the waits, each with its ticks that count.
    pub(super) fn new<'w>(
        run: &Run,
        CommonAxis { clock, lines }: CommonAxis,
        waits: impl Iterator<Item = (&'w Wait, i64)>,
    ) -> Self {
        let of_line = lines.all.iter().map(|line| {
            let ns = run.ranks[line.position].facts.off_cpu_ns(line.thread)?;
            Some((ns as f64 * 1e-9 * clock.ticks_per_s) as i64)
        });
        let of_line: Vec<Option<i64>> = of_line.collect();
        let mut waited: FxHashMap<(State, u32), i64> = FxHashMap::default();
        for (wait, ticks) in waits {
            *waited.entry((wait.state, wait.line)).or_default() += ticks;
        }
        let mut at_most: BTreeMap<State, Option<i64>> = BTreeMap::new();
        for ((state, line), ticks) in waited {
            // These lie before the first and after the last reading, or may.
            let facts = &run.ranks[lines.all[line as usize].position].facts;
            let is_outside = state.is_at_the_ends() || facts.last_before_death().is_some();
            let off = of_line[line as usize].filter(|_| !is_outside);
            let sum = at_most.entry(state).or_insert(Some(0));
            *sum = sum.zip(off).map(|(sum, off)| sum + off.min(ticks));
        }
        Self { of_line, at_most }
    }
}
