//! Delay costs (Böhme et al. 2016): charges every tick of waiting once, to whatever made the
//! delaying rank late.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::divider::Divider;
use super::origins::Part;
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

/// Charges while waits come.
#[derive(Debug, Default)]
pub(super) struct ChargeSums {
    causes: FxHashMap<(u32, u32), Cost>,
    unattributed: i64,
    divider: Divider,
}

impl ChargeSums {
    /// Charges so many ticks of a wait to the delays to which it goes back.
    pub fn add(&mut self, wait: &Wait, counting: i64, parts: &[Part]) {
        self.unattributed += counting;
        let nobodys = wait.ticks - parts.iter().map(|part| part.ticks).sum::<i64>();
        let weights = parts.iter().map(|part| part.ticks).chain([nobodys]);
        let shares = self.divider.divide(counting, weights, wait.ticks);
        for (Part { line, context, .. }, ticks) in parts.iter().zip(shares) {
            let cost = self.causes.entry((*line, *context)).or_default();
            let is_direct = *line == wait.delayed_by;
            *(if is_direct { &mut cost.direct } else { &mut cost.indirect }) += ticks;
            self.unattributed -= ticks;
        }
    }

    /// Those of all waits. `name` gives the context after which a delay of a line is named.
    pub fn finish(self, name: impl Fn(u32, u32) -> u32) -> Charges {
        let mut causes: BTreeMap<(u32, u32), Cost> = BTreeMap::new();
        for ((line, context), Cost { direct, indirect }) in self.causes {
            let cost = causes.entry((line, name(line, context))).or_default();
            cost.direct += direct;
            cost.indirect += indirect;
        }
        Charges { causes, unattributed: self.unattributed }
    }
}
