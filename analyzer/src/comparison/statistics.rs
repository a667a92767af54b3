//! Intervals of differences of times (decision 89).
//!
//! Iterations of a run are not independent of each other, and runs differ by more than their
//! iterations suggest, for example in memory layout and cores. So the samples are runs, and
//! iterations within them: a bootstrap draws runs, and from each of these blocks of consecutive
//! iterations. Its spread, enlarged for few runs, is used with Student's distribution, whose
//! degrees of freedom (Welch 1947) come from the runs alone.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::statistics;

/// Coverage of intervals if their assumptions hold: each end is exceeded once in a hundred cases.
pub const CONFIDENCE: f64 = 0.98;
/// Probability that an end of an interval is exceeded.
pub const ALPHA: f64 = 0.01;
/// Number of bootstrap samples.
const DRAWS: usize = 400;
/// Relative spread of runs that is assumed if it was not measured: one run on each side.
pub const ASSUMED_SPREAD: f64 = 0.01;
/// Minimum relative spread. No program's runs are known to repeat better.
const MIN_SPREAD: f64 = 0.0003;
/// Minimum degrees of freedom for a decision of a guard: with fewer, the scatter of runs is not
/// known well enough.
pub const MIN_DEGREES: f64 = 2.5;
/// Maximum number of runs per side that is proposed.
pub const MAX_RUNS: usize = 100;

/// How the figures of a run are reduced to one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// The mean; means add up.
    Mean,
    /// The median: the time of a typical iteration, regardless of slow ones.
    Median,
}

impl Location {
    fn estimate(self, values: &mut [f64]) -> f64 {
        match self {
            Self::Mean => values.iter().sum::<f64>() / values.len().max(1) as f64,
            Self::Median => statistics::median(values).unwrap_or(0.0),
        }
    }
}

/// The estimate of a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Value before, in the unit of the values.
    pub before: f64,
    /// Value after.
    pub after: f64,
    /// Interval of the difference; `None` if its spread is unknown.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p-value: the probability of such a difference, or a larger one, without a change.
    pub p: f64,
    /// Degrees of freedom; infinite if the spread of runs is assumed.
    pub degrees: f64,
    /// Standard deviation of a run's value, relative to it; the larger one of both sides.
    pub spread: f64,
    /// Number of runs on the side with fewer.
    pub runs: usize,
    /// Whether the spread of runs is assumed, not measured.
    pub is_assumed: bool,
}

impl Estimate {
    /// After minus before.
    pub fn difference(&self) -> f64 {
        self.after - self.before
    }

    /// The difference relative to the value before.
    pub fn relative(&self) -> f64 {
        self.relative_to_before(self.difference())
    }

    /// The interval relative to the value before.
    pub fn relative_interval(&self) -> Option<(f64, f64)> {
        self.interval.map(|(lo, hi)| (self.relative_to_before(lo), self.relative_to_before(hi)))
    }

    /// The same without an interval, because nothing tells how much it would scatter.
    pub(super) fn of_unknown_scatter(self) -> Self {
        Self { interval: None, p: 1.0, ..self }
    }

    fn relative_to_before(&self, value: f64) -> f64 {
        if self.before > 0.0 { value / self.before } else { 0.0 }
    }

    /// Whether the difference is significant.
    pub fn is_certain(&self) -> bool {
        self.interval.is_some_and(|(lo, hi)| lo > 0.0 || hi < 0.0)
    }

    /// The least difference that would be significant with this probability of error; `None` if the scatter is unknown.
    pub fn detectable(&self, alpha: f64) -> Option<f64> {
        let (lo, hi) = self.interval?;
        let factor = upper_quantile(alpha / 2.0, self.degrees) / quantile(self.degrees);
        Some((hi - lo) / 2.0 * factor)
    }

    /// Number of runs per side until the half-width of the interval is at most `most`; `None` if
    /// more than [`MAX_RUNS`].
    pub fn runs_for(&self, most: f64) -> Option<usize> {
        let spread = self.spread.max(MIN_SPREAD);
        (2..=MAX_RUNS).find(|runs| {
            let n = *runs as f64;
            quantile(2.0 * n - 2.0) * spread * (2.0 / n).sqrt() <= most
                && 2.0 * n - 2.0 >= MIN_DEGREES
        })
    }
}

/// Student's quantile for [`ALPHA`]; the normal quantile for infinitely many degrees of freedom.
fn quantile(degrees: f64) -> f64 {
    upper_quantile(ALPHA, degrees)
}

fn upper_quantile(alpha: f64, degrees: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, degrees).ok().filter(|_| degrees.is_finite());
    match student {
        Some(student) => student.inverse_cdf(1.0 - alpha),
        None => Normal::standard().inverse_cdf(1.0 - alpha),
    }
}

fn two_sided(t: f64, degrees: f64) -> f64 {
    let below = match StudentsT::new(0.0, 1.0, degrees).ok().filter(|_| degrees.is_finite()) {
        Some(student) => student.cdf(-t.abs()),
        None => Normal::standard().cdf(-t.abs()),
    };
    (2.0 * below).clamp(f64::MIN_POSITIVE, 1.0)
}

/// Random numbers that are the same in every call (Steele, Lea and Flood 2014, SplitMix64): the
/// same runs give the same result.
struct SplitMix64(u64);

impl SplitMix64 {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * limit as u128) >> 64) as usize
    }
}

/// One side: the figures of each run, in order.
struct Side<'v> {
    runs: &'v [Vec<f64>],
    /// Mean of the runs' values.
    value: f64,
    /// Standard deviation of a run's value; `None` for a single run.
    spread: Option<f64>,
    /// Standard deviation of the mean, from the bootstrap.
    error: f64,
}

impl<'v> Side<'v> {
    fn new(runs: &'v [Vec<f64>], location: Location, seed: u64) -> Self {
        let locations: Vec<f64> =
            runs.iter().map(|run| location.estimate(&mut run.clone())).collect();
        let n = locations.len().max(1) as f64;
        let value = locations.iter().sum::<f64>() / n;
        let spread = deviation(&locations);
        // With one figure per run, the bootstrap has a closed form: the spread of draws of runs.
        let error = match runs.iter().all(|run| run.len() < 2) {
            true => spread.unwrap_or(0.0) * (n - 1.0).sqrt() / n,
            false => drawn_error(runs, location, seed),
        };
        Self { runs, value, spread, error }
    }

    /// Variance of the mean. A single run gets the spread that other runs of its kind have.
    fn variance(&self, of_others: f64) -> f64 {
        let n = self.runs.len() as f64;
        let least = (MIN_SPREAD * self.value).powi(2) / n;
        let measured = match self.spread {
            // Draws from n runs underestimate the variance by the factor (n - 1) / n.
            Some(_) => self.error.powi(2) * n / (n - 1.0),
            None => of_others.powi(2) + self.error.powi(2),
        };
        measured.max(least)
    }
}

/// Standard deviation of a sample; `None` for fewer than two values.
fn deviation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt())
}

/// Standard deviation of the mean over runs, by bootstrap: draws runs, and blocks of iterations in
/// each.
fn drawn_error(runs: &[Vec<f64>], location: Location, seed: u64) -> f64 {
    let mut numbers = SplitMix64(seed);
    let mut figures = Vec::new();
    let means: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let of_runs = (0..runs.len()).map(|_| {
                let run = &runs[numbers.below(runs.len())];
                draw(run, &mut figures, &mut numbers);
                location.estimate(&mut figures)
            });
            of_runs.sum::<f64>() / runs.len().max(1) as f64
        })
        .collect();
    deviation(&means).unwrap_or(0.0)
}

/// Draws blocks of a run's figures, in total as many figures as it has.
fn draw(run: &[f64], figures: &mut Vec<f64>, numbers: &mut SplitMix64) {
    figures.clear();
    let length = (run.len() as f64).cbrt().ceil() as usize;
    while figures.len() < run.len() {
        let from = numbers.below(run.len() + 1 - length.min(run.len()));
        figures.extend(run[from..].iter().take(length));
    }
    figures.truncate(run.len());
}

/// Degrees of freedom of a difference (Welch 1947), from the variances of both means and the numbers of runs.
fn degrees([of_b, of_a]: [f64; 2], runs: [usize; 2]) -> f64 {
    match runs {
        [1, 1] => f64::INFINITY,
        [1, n] | [n, 1] => n as f64 - 1.0,
        [n, m] => {
            let part = |variance: f64, n: usize| variance.powi(2) / (n as f64 - 1.0);
            (of_b + of_a).powi(2) / (part(of_b, n) + part(of_a, m)).max(f64::MIN_POSITIVE)
        }
    }
}

/// Compares two sets of runs. Each run has its figures in chronological order, or a single figure
/// if only its total is known.
pub fn compare(before: &[Vec<f64>], after: &[Vec<f64>], location: Location) -> Estimate {
    let (b, a) = (Side::new(before, location, 1), Side::new(after, location, 2));
    let known = b.spread.into_iter().chain(a.spread).reduce(f64::max);
    let assumed = ASSUMED_SPREAD * b.value.max(a.value).abs();
    let spread = known.unwrap_or(assumed);
    let (of_b, of_a) = (b.variance(spread), a.variance(spread));
    let variance = of_b + of_a;
    let degrees = degrees([of_b, of_a], [before.len(), after.len()]);
    let is_single_figure = before.iter().chain(after).all(|run| run.len() < 2);
    let is_known = known.is_some() || !is_single_figure;
    let difference = a.value - b.value;
    let error = variance.sqrt();
    let half = quantile(degrees) * error;
    Estimate {
        before: b.value,
        after: a.value,
        interval: is_known.then_some((difference - half, difference + half)),
        p: if is_known && error > 0.0 { two_sided(difference / error, degrees) } else { 1.0 },
        degrees,
        spread: if b.value > 0.0 { spread / b.value } else { 0.0 },
        runs: before.len().min(after.len()),
        is_assumed: known.is_none(),
    }
}

/// A figure of a run that is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    pub value: f64,
    /// Variance of the count alone.
    pub variance: f64,
    /// By how much more the value may be, because something was not counted.
    pub hidden: f64,
}

/// Compares two sets of runs by figures that vary by counting alone, and more if runs differ. A single run is taken to
/// differ from others of its kind as those of the other side do, or else by [`ASSUMED_SPREAD`].
pub fn compare_counted(before: &[Counted], after: &[Counted]) -> Estimate {
    let mean = |side: &[Counted], of: fn(&Counted) -> f64| {
        side.iter().map(of).sum::<f64>() / side.len().max(1) as f64
    };
    let [b, a] = [before, after].map(|side| mean(side, |one| one.value));
    let spreads = [before, after]
        .map(|side| deviation(&side.iter().map(|one| one.value).collect::<Vec<f64>>()));
    let known = spreads.iter().copied().flatten().reduce(f64::max);
    let spread = known.unwrap_or(ASSUMED_SPREAD * b.max(a));
    let variance = |side: &[Counted], own: Option<f64>, value: f64| {
        let counting = mean(side, |one| one.variance);
        let of_run = match own {
            Some(own) => own.powi(2).max(counting),
            None => counting + spread.powi(2),
        };
        of_run.max((MIN_SPREAD * value).powi(2)) / side.len() as f64
    };
    let variances = [variance(before, spreads[0], b), variance(after, spreads[1], a)];
    let degrees = degrees(variances, [before.len(), after.len()]);
    let error = (variances[0] + variances[1]).sqrt();
    let half = quantile(degrees) * error;
    let hidden = [before, after].map(|side| mean(side, |one| one.hidden));
    let interval = (a - b - half - hidden[0], a - b + half + hidden[1]);
    let least = (a - b).abs() - if a > b { hidden[0] } else { hidden[1] };
    Estimate {
        before: b,
        after: a,
        interval: Some(interval),
        p: if error > 0.0 { two_sided(least.max(0.0) / error, degrees) } else { 1.0 },
        degrees,
        spread: if b > 0.0 { spread / b } else { 0.0 },
        runs: before.len().min(after.len()),
        is_assumed: known.is_none(),
    }
}

/// Which of several p-values are significant (Benjamini and Hochberg 1995) at a given rate of false
/// discoveries.
pub fn discoveries(p_values: &[f64], rate: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let tests = p_values.len() as f64;
    let small = |(rank, at): (usize, &usize)| p_values[*at] <= rate * (rank + 1) as f64 / tests;
    let last = order.iter().enumerate().rposition(|(rank, at)| small((rank, at)));
    let mut found = vec![false; p_values.len()];
    for at in order.iter().take(last.map_or(0, |last| last + 1)) {
        found[*at] = true;
    }
    found
}
