//! Summarises repeated measurements as a [`Figure`].
//!
//! The figure is the median. Its uncertainty is the interval between two order statistics that
//! contains the true median with a probability of at least 95 % (exact for independent repetitions,
//! whatever their distribution). Outliers are listed but never removed: they do not affect the
//! median.

use serde::Serialize;

/// Maximum number of outliers listed with their repetition; further ones are only counted.
const MAX_OUTLIERS_LISTED: usize = 5;

/// Values of one quantity, in the order in which they were measured.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

/// A quantity with its uncertainty and spread.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Median over the repetitions.
    pub median: f64,
    /// Lower end of the median's 95 % interval.
    pub low: f64,
    /// Upper end of the median's 95 % interval.
    pub high: f64,
    /// Smallest value.
    pub min: f64,
    /// Lower quartile.
    pub p25: f64,
    /// Upper quartile.
    pub p75: f64,
    /// Largest value.
    pub max: f64,
    /// Number of timed repetitions.
    pub repetitions: usize,
    /// Number of values more than three times the interquartile range beyond a quartile.
    pub outliers: usize,
    /// The most extreme of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outliers_listed: Vec<Outlier>,
}

/// A value far from the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// Index of the repetition, from 0.
    pub repetition: usize,
    /// Its value.
    pub value: f64,
}

impl Sample {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The values in the order of measurement.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The median; NaN if nothing was measured.
    pub fn median(&self) -> f64 {
        quantile(&sorted(&self.0), 0.5)
    }

    /// The figure; `None` if nothing was measured.
    pub fn figure(&self) -> Option<Figure> {
        let sorted = sorted(&self.0);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let (p25, p75) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
        let (low, high) = median_interval(sorted.len());
        let reach = 3.0 * (p75 - p25);
        let mut outliers: Vec<Outlier> = (self.0.iter().enumerate())
            .filter(|(_, value)| **value < p25 - reach || **value > p75 + reach)
            .map(|(repetition, &value)| Outlier { repetition, value })
            .collect();
        let median = quantile(&sorted, 0.5);
        let count = outliers.len();
        outliers.sort_by(|a, b| (b.value - median).abs().total_cmp(&(a.value - median).abs()));
        outliers.truncate(MAX_OUTLIERS_LISTED);
        Some(Figure {
            median,
            low: sorted[low],
            high: sorted[high],
            min,
            p25,
            p75,
            max,
            repetitions: sorted.len(),
            outliers: count,
            outliers_listed: outliers,
        })
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl Figure {
    /// Interquartile range over median: how much single repetitions vary.
    pub fn spread(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.p75 - self.p25) / self.median.abs() }
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Quantile of sorted values, interpolated linearly; NaN if there are none.
pub fn quantile(sorted: &[f64], at: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = at * last as f64;
    let (low, high) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    low + (high - low) * position.fract()
}

/// Positions of the two order statistics of `count` values that enclose the true median with a
/// probability of at least 0.95; the outermost ones if `count` < 6, which cannot give that.
fn median_interval(count: usize) -> (usize, usize) {
    // The number of values below the median is binomial(count, 1/2): the largest k with
    // P(X ≤ k − 1) ≤ 0.025.
    let mut term = 0.5_f64.powi(count as i32);
    let mut below = term;
    let mut k = 0;
    while below <= 0.025 && k < count / 2 {
        k += 1;
        term *= (count + 1 - k) as f64 / k as f64;
        below += term;
    }
    let low = k.saturating_sub(1);
    (low, count - 1 - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_interval_matches_published_table() {
        // Order statistics (from 1) for 95 %: n = 6: 1 and 6; 10: 2 and 9; 20: 6 and 15; 30: 10 and 21.
        for (count, low, high) in
            [(1, 1, 1), (5, 1, 5), (6, 1, 6), (10, 2, 9), (20, 6, 15), (30, 10, 21)]
        {
            assert_eq!(median_interval(count), (low - 1, high - 1), "{count} values");
        }
    }

    #[test]
    fn lists_outliers_which_do_not_affect_figure() {
        let mut sample: Sample = (0..20).map(|i| 10.0 + f64::from(i % 4)).collect();
        sample.add(900.0);
        let figure = sample.figure().expect("values");
        assert_eq!(figure.outliers, 1);
        assert_eq!(figure.outliers_listed, [Outlier { repetition: 20, value: 900.0 }]);
        assert_eq!((figure.median, figure.repetitions), (12.0, 21));
        assert!(Sample::default().figure().is_none());
    }
}
