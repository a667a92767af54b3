//! Delay costs (Böhme et al. 2016): charges every tick of waiting once, to whatever made the
//! delaying rank late.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::divider::Divider;
use super::origins::Part;
use super::reasons::Reasons;
use super::wait::Wait;

/// Ticks of waiting that something caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Waits for the rank that was late.
    pub direct: i64,
    /// Waits further down the chain, for ranks that waited themselves.
    pub indirect: i64,
}

impl Cost {
    /// Direct and indirect costs.
    pub fn total(self) -> i64 {
        self.direct + self.indirect
    }
}

/// Who caused how much waiting.
#[derive(Debug, Clone, Default)]
pub struct Charges {
    /// By line and context.
    pub causes: BTreeMap<(u32, u32), Cost>,
    /// Ticks that no delay explains.
    pub unattributed: i64,
}

impl Charges {
    /// Charges waits to the delays to which they go back, by the ticks that count of each.
    pub(super) fn new(
        waits: &[Wait],
        reasons: &Reasons,
        ticks_of: &(dyn Fn(u32) -> i64 + Sync),
    ) -> Self {
        let mut causes: FxHashMap<(u32, u32), Cost> = FxHashMap::default();
        let mut unattributed = 0;
        let mut divider = Divider::default();
        for (number, wait) in (0u32..).zip(waits) {
            let counting = ticks_of(number);
            if counting == 0 {
                continue;
            }
            unattributed += counting;
            let parts = reasons.origins.parts_of(number);
            let nobodys = wait.ticks - parts.iter().map(|part| part.ticks).sum::<i64>();
            let weights = parts.iter().map(|part| part.ticks).chain([nobodys]);
            let shares = divider.divide(counting, weights, wait.ticks);
            for (Part { line, context, .. }, ticks) in parts.iter().zip(shares) {
                let cost = causes.entry((*line, *context)).or_default();
                let is_direct = *line == wait.delayed_by;
                *(if is_direct { &mut cost.direct } else { &mut cost.indirect }) += ticks;
                unattributed -= ticks;
            }
        }
        Self { causes: causes.into_iter().collect(), unattributed }
    }
}
