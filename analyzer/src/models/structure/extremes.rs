//! How much longer the longest of many stretches of computation is than the mean: what all ranks wait for.

use super::labels::Label;

/// Stretches of one label in one run, as if ranks drew from them.
pub(super) struct Stretches<'l> {
    /// Seconds and how many take so long, the shortest first.
    of: &'l [(f64, f64)],
    count: f64,
    mean: f64,
}

impl<'l> Stretches<'l> {
    /// `None` if there are none.
    pub fn of(label: &'l Label) -> Option<Self> {
        let of = &label.stretches;
        let count: f64 = of.iter().map(|(_, count)| count).sum();
        let mean = of.iter().map(|(seconds, count)| seconds * count).sum::<f64>() / count;
        (count > 0.0 && mean > 0.0).then_some(Self { of, count, mean })
    }

    /// Standard deviation relative to the mean.
    pub fn spread(&self) -> f64 {
        let squares = self.of.iter().map(|(seconds, count)| count * (seconds - self.mean).powi(2));
        (squares.sum::<f64>() / self.count).sqrt() / self.mean
    }

    /// How much longer than the mean the longest of so many is expected to be, relative to the mean.
    pub fn longest(&self, draws: f64) -> f64 {
        let (mut below, mut passed, mut sum) = (0.0f64, 0.0f64, 0.0);
        for (seconds, count) in self.of {
            passed += count;
            let up_to = (passed / self.count).min(1.0).powf(draws);
            sum += seconds * (up_to - below);
            below = up_to;
        }
        sum / self.mean - 1.0
    }
}
