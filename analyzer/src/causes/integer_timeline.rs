//! Times as whole ticks of the reference counter.
//!
//! Lengths are integers here, because charges must add up to the tick.

use crate::timeline::{Alignment, GlobalTimeline, RankTime, shared_counters};
use crate::trace::Run;

/// Bound if one of the clocks is not known at all: no wait is certain then.
const UNKNOWN_BOUND: i64 = i64::MAX;

/// The ranks' counters on one axis of whole ticks; 0 is the earliest begin of a rank.
#[derive(Debug, Clone)]
pub struct IntegerTimeline<'a> {
    ranks: &'a [RankTime],
    /// Ticks per second of the axis, which are those of the reference counter.
    pub ticks_per_s: f64,
    /// For each rank the rank whose counter it reads.
    counters: Vec<usize>,
}

/// Allowance in ticks for rounding in the last bits: equal readings of one counter are converted
/// along different paths, and must not fall below the same whole tick.
const ROUNDING: f64 = 1.0 / 64.0;

impl<'a> IntegerTimeline<'a> {
    /// The ranks' counters of a run, aligned by its timeline.
    pub fn new(run: &Run, timeline: &'a GlobalTimeline) -> Self {
        let ranks = timeline.ranks.as_slice();
        let reference = ranks.iter().find(|rank| rank.clock.alignment == Alignment::Reference);
        let frequency = reference.or(ranks.first()).map(|rank| rank.frequency.ticks_per_s);
        Self { ranks, ticks_per_s: frequency.unwrap_or(1e9), counters: shared_counters(run, ranks) }
    }

    /// Converts a reading of the counter of the rank at a position, rounded down.
    #[inline]
    pub fn at(&self, rank: usize, ticks: u64) -> i64 {
        self.at_seconds(self.ranks[rank].clock.seconds(ticks))
    }

    /// Converts seconds of the global timeline, rounded down.
    #[inline]
    pub fn at_seconds(&self, seconds: f64) -> i64 {
        floor(seconds * self.ticks_per_s + ROUNDING)
    }

    /// Converts a length on a rank's counter, rounded to the nearest tick of the axis.
    pub fn ticks_of(&self, rank: usize, ticks: u64) -> i64 {
        (self.ranks[rank].clock.duration_s(ticks) * self.ticks_per_s).round() as i64
    }

    /// Converts a length or a time to seconds.
    pub fn seconds(&self, ticks: i64) -> f64 {
        ticks as f64 / self.ticks_per_s
    }

    /// β(r, s): largest error in ticks when times of two ranks are compared; 0 if both read the
    /// same counter. Each rank is given with a reading of its counter.
    pub fn bound(&self, (r, at_r): (usize, u64), (s, at_s): (usize, u64)) -> i64 {
        if r == s || self.counters[r] == self.counters[s] {
            return 0;
        }
        // A rank whose clock is assumed to be another's has that one's bound.
        let bound_ns = |rank: usize, ticks| {
            let of = |rank: usize| self.ranks[rank].clock.bound_ns_at(ticks);
            of(rank).or_else(|| of(self.counters[rank]))
        };
        match (bound_ns(r, at_r), bound_ns(s, at_s)) {
            (Some(a), Some(b)) => ((a + b) * 1e-9 * self.ticks_per_s).ceil() as i64,
            _ => UNKNOWN_BOUND,
        }
    }
}

/// Rounds down, without a call into the mathematical library, which takes longer than all of the rest.
#[inline]
fn floor(number: f64) -> i64 {
    let whole = number as i64;
    whole.saturating_sub(i64::from(whole as f64 > number))
}

#[cfg(test)]
mod tests {
    use super::floor;

    #[test]
    fn rounds_down_as_the_library_does() {
        let two_to = |exponent: i32| 2f64.powi(exponent);
        let numbers =
            [0.0, 0.5, 1.0, 2.75, two_to(52) + 0.5, two_to(53), two_to(63), two_to(70), f64::NAN];
        for number in numbers.into_iter().flat_map(|number| [number, -number]) {
            assert_eq!(floor(number), number.floor() as i64, "{number}");
        }
    }
}
