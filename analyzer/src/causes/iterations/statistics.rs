//! What stands out among iterations: slow ones, a trend, a period; and the most typical one.

use super::phase::{Iteration, Phase};

/// An iteration is slow if it exceeds the median by this many spreads (1.4826 times the median
/// deviation) and by this part of the median.
const SLOW_SPREADS: f64 = 5.0;
const SLOW_PART: f64 = 0.1;
/// If more iterations than this, and a larger part of all, are so long, these are no exceptions.
const MAX_SLOW: usize = 10;
const MAX_SLOW_PART: f64 = 0.1;
/// Least iterations for a trend.
const MIN_FOR_TREND: usize = 10;
/// A trend changes the length by at least this part of the median, and at least this part of the
/// pairs follow it.
const TREND_PART: f64 = 0.05;
const TREND_PAIRS: f64 = 0.5;
/// Most iterations that are compared in pairs for a trend.
const MAX_FOR_TREND: usize = 500;
const LONGEST_PERIOD: usize = 100;
/// A period must occur at least this often.
const MIN_PERIODS: usize = 4;

/// What stands out among the iterations of a phase; lengths in ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Half of the iterations are longer.
    pub median: i64,
    /// Half of them are farther from the median than this.
    pub mad: i64,
    /// Iterations far above the median, the slowest first.
    pub slow: Vec<usize>,
    /// If the iterations grow or shrink: by how much the last one is longer than the first, along a
    /// straight line through all of them.
    pub trend: Option<i64>,
    /// Iterations that take longer at regular intervals.
    pub period: Option<Period>,
    /// The iteration nearest to the medians of time, computing and waiting.
    pub representative: usize,
}

/// One iteration in every `length` takes longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Iterations from one long one to the next.
    pub length: usize,
    /// The first long one.
    pub first: usize,
    /// By how much the long ones are longer than the median, in the median.
    pub longer: i64,
}

pub(super) fn median_of(mut values: Vec<i64>) -> i64 {
    if values.is_empty() {
        return 0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable(middle).1
}

fn deviation(values: &[i64], median: i64) -> i64 {
    median_of(values.iter().map(|value| (value - median).abs()).collect())
}

impl Phase {
    /// What stands out among its iterations.
    pub fn statistics(&self) -> Statistics {
        let of = |part: fn(&Iteration) -> i64| -> Vec<i64> {
            self.iterations.iter().map(part).collect()
        };
        let times = of(|iteration| iteration.ticks);
        let median = median_of(times.clone());
        let mad = deviation(&times, median);
        let limit = (1.4826 * SLOW_SPREADS * mad as f64).max(SLOW_PART * median as f64);
        let mut slow: Vec<usize> =
            (0..times.len()).filter(|at| (times[*at] - median) as f64 > limit).collect();
        if slow.len() > MAX_SLOW && slow.len() as f64 > MAX_SLOW_PART * times.len() as f64 {
            slow.clear();
        }
        slow.sort_by_key(|at| (std::cmp::Reverse(times[*at]), *at));
        let parts = [times.clone(), of(|i| i.computing), of(|i| i.waiting)];
        let medians = parts.each_ref().map(|values| {
            let median = median_of(values.clone());
            (median, deviation(values, median).max(median / 1_000).max(1) as f64)
        });
        let distance = |at: usize| -> f64 {
            let of_part = |(values, (median, spread)): (&Vec<i64>, &(i64, f64))| {
                (values[at] - median).abs() as f64 / spread
            };
            parts.iter().zip(&medians).map(of_part).sum()
        };
        let representative = (0..times.len()).min_by(|a, b| distance(*a).total_cmp(&distance(*b)));
        Statistics {
            median,
            mad,
            slow,
            trend: trend(&times, median),
            period: period(&times, median, mad),
            representative: representative.unwrap_or(0),
        }
    }
}

/// Rise of the Theil–Sen line, if most pairs (Kendall) agree with it.
fn trend(times: &[i64], median: i64) -> Option<i64> {
    if times.len() < MIN_FOR_TREND {
        return None;
    }
    let step = times.len().div_ceil(MAX_FOR_TREND);
    let at: Vec<usize> = (0..times.len()).step_by(step).collect();
    let (mut slopes, mut up, mut down) = (Vec::new(), 0u64, 0u64);
    for (number, from) in at.iter().enumerate() {
        for to in &at[number + 1..] {
            let rise = times[*to] - times[*from];
            up += u64::from(rise > 0);
            down += u64::from(rise < 0);
            slopes.push(rise as f64 / (to - from) as f64);
        }
    }
    let middle = slopes.len() / 2;
    let slope = *slopes.select_nth_unstable_by(middle, f64::total_cmp).1;
    let rise = slope * (times.len() - 1) as f64;
    let agree = (up as f64 - down as f64) / slopes.len() as f64;
    let is_trend = rise.abs() > TREND_PART * median as f64 && agree.abs() > TREND_PAIRS;
    is_trend.then_some(rise as i64)
}

/// The shortest period whose iterations exceed the others by more than these scatter.
fn period(times: &[i64], median: i64, mad: i64) -> Option<Period> {
    let limit = (1.4826 * SLOW_SPREADS * mad as f64).max(SLOW_PART * median as f64);
    (2..=LONGEST_PERIOD.min(times.len() / MIN_PERIODS)).find_map(|length| {
        let of_class = |first: usize| -> Vec<i64> {
            times.iter().skip(first).step_by(length).copied().collect()
        };
        (0..length).find_map(|first| {
            let class = of_class(first);
            let least = class.iter().min().copied().unwrap_or(0);
            // All of this class stand out, not some by chance, and no other class does.
            let longer = median_of(class) - median;
            let others = (0..length).filter(|other| *other != first);
            let none_of_others = || {
                others
                    .map(|other| median_of(of_class(other)))
                    .all(|of| (of - median) as f64 <= limit)
            };
            let stands_out = (least - median) as f64 > limit / 2.0 && longer as f64 > limit;
            (stands_out && none_of_others()).then_some(Period { length, first, longer })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_trend_and_ignores_noise() {
        let rising: Vec<i64> = (0..100).map(|k| 1_000 + 10 * k + (k * 7919 % 13)).collect();
        let found = trend(&rising, 1_500).expect("it rises");
        assert!((980..1_000).contains(&found), "{found}");
        let noise: Vec<i64> = (0..100).map(|k| 1_000 + (k * 7919 % 97)).collect();
        assert_eq!(trend(&noise, 1_048), None);
    }

    #[test]
    fn finds_every_tenth_but_not_chance() {
        let mut times: Vec<i64> = (0..100).map(|k| 1_000 + (k * 31 % 7)).collect();
        for at in (3..100).step_by(10) {
            times[at] += 500;
        }
        let found = period(&times, 1_003, 2).expect("a period");
        assert_eq!((found.length, found.first), (10, 3));
        assert!((495..505).contains(&found.longer));
        times[13] -= 500;
        assert_eq!(period(&times, 1_003, 2), None);
    }
}
