//! Intervals of differences of times (decision 89).
//!
//! Iterations of a run are not independent of each other, and runs differ by more than their iterations say: where the
//! program lies in memory, which cores it got. So runs are what is sampled, and iterations are sampled in them: a
//! bootstrap draws runs, in each of these blocks of iterations in a row. Its spread, enlarged for few runs, is used
//! with Student's distribution, whose degrees of freedom (Welch 1947) come from the runs alone.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Intervals hold so often where their assumptions do: one time in a hundred each end is passed.
pub const CONFIDENCE: f64 = 0.98;
/// Chance that an end of an interval is passed.
pub const ALPHA: f64 = 0.01;
/// Samples that are drawn.
const DRAWS: usize = 400;
/// Spread of runs that is taken where nobody measured it: one run of each.
pub const ASSUMED_SPREAD: f64 = 0.01;
/// No program's runs are known to repeat better.
const LEAST_SPREAD: f64 = 0.0003;
/// Fewer degrees of freedom say too little of how runs scatter for a guard to decide.
pub const LEAST_DEGREES: f64 = 2.5;
/// More runs of each are not proposed.
pub const MOST_RUNS: usize = 100;

/// How many values one is made of: what a run's figures are reduced to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// Adds up.
    Mean,
    /// Does not mind slow iterations: what a typical one takes.
    Median,
}

impl Location {
    fn of(self, values: &mut [f64]) -> f64 {
        match self {
            Self::Mean => values.iter().sum::<f64>() / values.len().max(1) as f64,
            Self::Median => median(values),
        }
    }
}

/// The middle of some values, or the mean of the two in the middle; 0 of none.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

/// What is known of a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Before, in the unit of the values.
    pub before: f64,
    /// After.
    pub after: f64,
    /// Ends of the interval of the difference; `None`: its spread is not known at all.
    pub interval: Option<(f64, f64)>,
    /// Chance of such a difference, or a larger one, either way, where there is none.
    pub p: f64,
    /// Degrees of freedom; infinite where the spread of runs is assumed.
    pub degrees: f64,
    /// Standard deviation of a run's value, as a part of it; the larger one of both sides.
    pub spread: f64,
    /// Fewest runs of a side.
    pub runs: usize,
    /// Whether nobody measured how much runs scatter.
    pub is_assumed: bool,
}

impl Estimate {
    /// After less before.
    pub fn difference(&self) -> f64 {
        self.after - self.before
    }

    /// The difference as a part of before.
    pub fn relative(&self) -> f64 {
        self.of_before(self.difference())
    }

    /// The interval as a part of before.
    pub fn relative_interval(&self) -> Option<(f64, f64)> {
        self.interval.map(|(lo, hi)| (self.of_before(lo), self.of_before(hi)))
    }

    fn of_before(&self, value: f64) -> f64 {
        if self.before > 0.0 { value / self.before } else { 0.0 }
    }

    /// Whether it is certainly more, or certainly less.
    pub fn is_certain(&self) -> bool {
        self.interval.is_some_and(|(lo, hi)| lo > 0.0 || hi < 0.0)
    }

    /// How many runs of each it takes until the interval is as narrow as `most` to either side; `None`: more than
    /// [`MOST_RUNS`].
    pub fn runs_for(&self, most: f64) -> Option<usize> {
        let spread = self.spread.max(LEAST_SPREAD);
        (2..=MOST_RUNS).find(|runs| {
            let n = *runs as f64;
            quantile(2.0 * n - 2.0) * spread * (2.0 / n).sqrt() <= most
                && 2.0 * n - 2.0 >= LEAST_DEGREES
        })
    }
}

/// Student's quantile for [`ALPHA`]; the normal one's for infinitely many degrees of freedom.
fn quantile(degrees: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, degrees).ok().filter(|_| degrees.is_finite());
    match student {
        Some(student) => student.inverse_cdf(1.0 - ALPHA),
        None => Normal::standard().inverse_cdf(1.0 - ALPHA),
    }
}

fn two_sided(t: f64, degrees: f64) -> f64 {
    let below = match StudentsT::new(0.0, 1.0, degrees).ok().filter(|_| degrees.is_finite()) {
        Some(student) => student.cdf(-t.abs()),
        None => Normal::standard().cdf(-t.abs()),
    };
    (2.0 * below).clamp(f64::MIN_POSITIVE, 1.0)
}

/// Random numbers that are the same in every call (Steele, Lea and Flood 2014, SplitMix64): the same runs give the
/// same answer.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * limit as u128) >> 64) as usize
    }
}

/// One side: each run's figures in their order.
struct Side<'v> {
    runs: &'v [Vec<f64>],
    /// Mean of the runs' locations.
    value: f64,
    /// Standard deviation of a run's location; `None` of one run.
    spread: Option<f64>,
    /// Standard deviation of the mean, as the bootstrap tells it.
    error: f64,
}

impl<'v> Side<'v> {
    fn new(runs: &'v [Vec<f64>], location: Location, seed: u64) -> Self {
        let locations: Vec<f64> = runs.iter().map(|run| location.of(&mut run.clone())).collect();
        let n = locations.len().max(1) as f64;
        let value = locations.iter().sum::<f64>() / n;
        let spread = deviation(&locations);
        // Of one figure a run nothing is drawn that is not known: the spread of draws of runs.
        let error = match runs.iter().all(|run| run.len() < 2) {
            true => spread.unwrap_or(0.0) * (n - 1.0).sqrt() / n,
            false => drawn_error(runs, location, seed),
        };
        Self { runs, value, spread, error }
    }

    /// Variance of the mean; of one run with the spread that others of its kind have.
    fn variance(&self, of_others: f64) -> f64 {
        let n = self.runs.len() as f64;
        let least = (LEAST_SPREAD * self.value).powi(2) / n;
        let measured = match self.spread {
            // Draws from n runs scatter too little by (n - 1) / n.
            Some(_) => self.error.powi(2) * n / (n - 1.0),
            None => of_others.powi(2) + self.error.powi(2),
        };
        measured.max(least)
    }
}

/// Standard deviation of a sample; `None` of fewer than two values.
fn deviation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt())
}

/// Standard deviation of the mean over runs, of samples that are drawn: runs, and in each blocks of iterations.
fn drawn_error(runs: &[Vec<f64>], location: Location, seed: u64) -> f64 {
    let mut numbers = Numbers(seed);
    let mut figures = Vec::new();
    let means: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let of_runs = (0..runs.len()).map(|_| {
                let run = &runs[numbers.below(runs.len())];
                draw(run, &mut figures, &mut numbers);
                location.of(&mut figures)
            });
            of_runs.sum::<f64>() / runs.len().max(1) as f64
        })
        .collect();
    deviation(&means).unwrap_or(0.0)
}

/// Blocks of a run's figures, as many in all as it has.
fn draw(run: &[f64], figures: &mut Vec<f64>, numbers: &mut Numbers) {
    figures.clear();
    let length = (run.len() as f64).cbrt().ceil() as usize;
    while figures.len() < run.len() {
        let from = numbers.below(run.len() + 1 - length.min(run.len()));
        figures.extend(run[from..].iter().take(length));
    }
    figures.truncate(run.len());
}

/// Compares two sets of runs. Each run has its figures in order of time, all of a run as many; one figure, if
/// nothing but its total is known.
pub fn compare(before: &[Vec<f64>], after: &[Vec<f64>], location: Location) -> Estimate {
    let (b, a) = (Side::new(before, location, 1), Side::new(after, location, 2));
    let known = b.spread.into_iter().chain(a.spread).reduce(f64::max);
    let assumed = ASSUMED_SPREAD * b.value.max(a.value).abs();
    let spread = known.unwrap_or(assumed);
    let (of_b, of_a) = (b.variance(spread), a.variance(spread));
    let variance = of_b + of_a;
    let degrees = match (before.len(), after.len()) {
        (1, 1) => f64::INFINITY,
        (1, n) | (n, 1) => n as f64 - 1.0,
        (n, m) => {
            let part = |variance: f64, n: usize| variance.powi(2) / (n as f64 - 1.0);
            variance.powi(2) / (part(of_b, n) + part(of_a, m)).max(f64::MIN_POSITIVE)
        }
    };
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

/// Which of several chances are too small to be one (Benjamini and Hochberg 1995), at such a rate of false
/// discoveries.
pub fn discoveries(chances: &[f64], rate: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let tests = chances.len() as f64;
    let small = |(rank, at): (usize, &usize)| chances[*at] <= rate * (rank + 1) as f64 / tests;
    let last = order.iter().enumerate().rposition(|(rank, at)| small((rank, at)));
    let mut found = vec![false; chances.len()];
    for at in order.iter().take(last.map_or(0, |last| last + 1)) {
        found[*at] = true;
    }
    found
}
