//! Estimates the offset between two counters, and its error bound, from two-way exchanges.
//!
//! This defines the meaning of the numbers in a [`crate::header::ClockExchange`], so recorder and
//! analyzer share it. In each sample, the child's counter reads s before sending, the parent's
//! reads a when it answers, and the child's reads r after receiving. Whatever the network did, the
//! child's counter was between s and r when the parent's was a.
//!
//! - Estimate: the mean midpoint offset a − (s + r)/2 of the tenth of the samples with the lowest
//!   round trip r − s.
//! - Bound: the largest distance from the estimate to an end of the intersection of all intervals
//!   [a − r, a − s], but at least half the mean round trip of the samples used: an asymmetric path
//!   cannot be told from an offset, but it cannot shift the mean further than that.

/// One two-way exchange, in ticks of two counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoWay {
    /// Child's counter before sending.
    pub sent: u64,
    /// Parent's counter when it answered.
    pub answered: u64,
    /// Child's counter after receiving.
    pub received: u64,
}

impl TwoWay {
    /// Child's ticks from sending to receiving.
    pub fn round_trip(&self) -> u64 {
        self.received.wrapping_sub(self.sent)
    }

    /// Child's counter half-way, rounded down.
    pub fn middle(&self) -> u64 {
        self.sent.wrapping_add(self.round_trip() / 2)
    }
}

/// Two readings taken at the same moment, within the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockEstimate {
    /// Number of samples in the mean.
    pub kept: u32,
    /// Child's counter.
    pub child_ticks: u64,
    /// Parent's counter at that moment.
    pub parent_ticks: u64,
    /// Maximum error of the estimate in child's ticks, 2 of which are for rounding.
    pub bound_ticks: u64,
    /// Lowest round trip, child's ticks.
    pub min_round_trip_ticks: u64,
    /// Median round trip, child's ticks.
    pub median_round_trip_ticks: u64,
}

/// Error that rounding the midpoints and the means may add, in ticks.
const ROUNDING_TICKS: u64 = 2;

/// Mean of values relative to the first, so that nothing is lost to rounding.
fn mean(values: impl Iterator<Item = u64> + Clone) -> u64 {
    let Some(first) = values.clone().next() else { return 0 };
    let (sum, count) = values.fold((0i128, 0i128), |(sum, count), value| {
        (sum + i128::from(value.wrapping_sub(first) as i64), count + 1)
    });
    first.wrapping_add((sum / count) as i64 as u64)
}

/// The estimate and its bound. `None` without samples.
pub fn estimate(samples: &[TwoWay]) -> Option<ClockEstimate> {
    let mut sorted = samples.to_vec();
    sorted.sort_by_key(TwoWay::round_trip);
    let kept = &sorted[..sorted.len().div_ceil(10)];
    let best = kept.first()?;
    let child_ticks = mean(kept.iter().map(TwoWay::middle));
    let parent_ticks = mean(kept.iter().map(|sample| sample.answered));
    // Offsets relative to the estimate: parent − child − (parent_ticks − child_ticks).
    let theta = parent_ticks.wrapping_sub(child_ticks);
    let relative = |parent: u64, child: u64| parent.wrapping_sub(child).wrapping_sub(theta) as i64;
    let low = sorted.iter().map(|sample| relative(sample.answered, sample.received)).max()?;
    let high = sorted.iter().map(|sample| relative(sample.answered, sample.sent)).min()?;
    let half_trip = mean(kept.iter().map(TwoWay::round_trip)) / 2;
    let apart = low.unsigned_abs().max(high.unsigned_abs());
    Some(ClockEstimate {
        kept: kept.len() as u32,
        child_ticks,
        parent_ticks,
        bound_ticks: apart.max(half_trip) + ROUNDING_TICKS,
        min_round_trip_ticks: best.round_trip(),
        median_round_trip_ticks: sorted[sorted.len() / 2].round_trip(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exchanges with these one-way times, a millisecond apart, with a parent that is `offset`
    /// ahead.
    fn samples(offset: i64, ways: &[(u64, u64)]) -> Vec<TwoWay> {
        let sample = |(index, (out, back)): (usize, &(u64, u64))| {
            let sent = 5_000_000_000 + index as u64 * 1_000_000;
            let answered = (sent + out).wrapping_add_signed(offset);
            TwoWay { sent, answered, received: sent + out + back }
        };
        ways.iter().enumerate().map(sample).collect()
    }

    fn error(found: &ClockEstimate, offset: i64) -> i64 {
        found.parent_ticks.wrapping_sub(found.child_ticks) as i64 - offset
    }

    #[test]
    fn finds_offset_with_its_sign() {
        for offset in [7_000_000_000i64, -3_000_000_000, 0] {
            let found = estimate(&samples(offset, &[(500, 500); 20])).unwrap();
            assert_eq!(error(&found, offset), 0);
            assert_eq!((found.kept, found.bound_ticks), (2, 502));
        }
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn one_preempted_exchange_in_ten_does_not_shift_estimate() {
        let mut ways = vec![(510, 490); 100];
        let calm = estimate(&samples(1000, &ways)).unwrap();
        ways.iter_mut().step_by(10).for_each(|way| way.1 += 12_000_000);
        let disturbed = estimate(&samples(1000, &ways)).unwrap();
        assert_eq!(error(&calm, 1000), error(&disturbed, 1000));
        assert_eq!(calm.bound_ticks, disturbed.bound_ticks);
    }

    #[test]
    fn asymmetric_path_shifts_estimate_within_its_bound() {
        let found = estimate(&samples(0, &[(100_000, 20_000); 100])).unwrap();
        assert_eq!(error(&found, 0), 40_000);
        assert!((60_000..60_010).contains(&found.bound_ticks), "{found:?}");
    }

    #[test]
    fn bound_holds_for_any_paths() {
        // One-way times from a small linear generator, without any regularity.
        let mut state = 12_345u64;
        let mut draw = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % limit
        };
        for round in 0..2000 {
            let count = 1 + draw(120);
            let limit = 1 + draw(100_000);
            let ways: Vec<_> = (0..count).map(|_| (draw(limit), draw(limit / 3 + 1))).collect();
            let offset = draw(1 << 30) as i64 - (1 << 29);
            let found = estimate(&samples(offset, &ways)).unwrap();
            assert!(error(&found, offset).unsigned_abs() <= found.bound_ticks, "{round} {found:?}");
        }
    }
}
