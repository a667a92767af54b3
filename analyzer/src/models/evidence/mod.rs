//! Predicts a time at any rank count, with an interval, by weighing the evidence of a few measured
//! points.
//!
//! Computation, imbalance and overhead are modelled separately (`part`), each as a sum of
//! non-negative terms (`terms`). No single sum is chosen; all are weighed by how well they explain
//! the points. Where the ranks' computation is known, three ways of splitting the time are used
//! with equal weight. Points that a form of the papers meets to their digits (`exact`) need no
//! weighing. Measured times bound the possible ones near them (`neighbours`).
//! docs/measurements/accuracy.md tells how well this predicts programs that it
//! was not developed on.

mod exact;
mod measured;
mod neighbours;
mod orthant;
mod part;
mod terms;
#[cfg(test)]
mod tests;

use crate::statistics::{nearest_rank, normal};
pub use measured::{Computation, Measured};
pub use neighbours::Contradiction;
use neighbours::Neighbours;

use part::{Curve, PartPoint};
pub use terms::Shape;
use terms::{COMPUTATION, Family, IMBALANCE, OVERHEAD};

/// Minimum number of rank counts for a prediction.
pub const MIN_POINTS: usize = 3;
/// Largest factor between a time and an end of its interval; beyond it only the interval is given.
pub const MAX_FACTOR: f64 = 2.0;

/// Draws for each way of splitting the time.
const DRAWS: usize = 1000;
/// Fixed, so that the same points give the same result.
const SEED: u64 = 0x6761_6d6d_6163_6869;
/// Relative noise assumed for a time that was measured once.
const NOISE_OF_ONE_RUN: f64 = 0.003;
/// Lower limit of relative noise: no measurement is better.
const MIN_NOISE: f64 = 5e-4;
/// Growth of a curve's discrepancy beyond the points, per square root of the doublings of the rank
/// count.
const GROWTH: f64 = 0.6;
/// Lower limit of the discrepancy that grows in this way.
const MIN_GROWING_DISCREPANCY: f64 = 0.02;
/// Power of a curve's distance from the median: sums of terms, weighed by a few points, scatter
/// more than they err.
const DAMPING: f64 = 0.8;
/// Standard deviations, upwards and downwards, of the logarithm of the factor by which the time may
/// leave all curves, per square root of the doublings beyond the points: an eager limit, another
/// algorithm, a shared link. It slows programs down more often than not.
const DEPARTURE_LOG_SD: (f64, f64) = (0.15, 0.03);

/// Relative noise of the smallest of this many repetitions, given the relative standard deviation
/// of their times. Noise that only slows a run down affects the smallest less and less.
pub fn noise_of_minimum(relative_sd: f64, repetitions: f64) -> f64 {
    1.2 * relative_sd / repetitions.powf(0.75)
}

/// A predicted time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Median, seconds.
    pub tau_s: f64,
    /// Lower end of the 90 % interval, seconds.
    pub lo_s: f64,
    /// Upper end, seconds.
    pub hi_s: f64,
}

impl Forecast {
    /// Whether an end of the interval lies further than [`MAX_FACTOR`] from the time, so that the
    /// time alone would mislead.
    pub fn is_too_wide(&self) -> bool {
        self.hi_s > MAX_FACTOR * self.tau_s || MAX_FACTOR * self.lo_s < self.tau_s
    }
}

/// One possible explanation of the points.
#[derive(Debug, Clone)]
struct Draw {
    computation: Option<Curve>,
    imbalance: Option<Curve>,
    overhead: Curve,
    /// Standard normal deviates for the discrepancy of imbalance and overhead beyond the points.
    beyond: [f64; 2],
    /// Logarithm of the factor by which the time leaves the curves, one doubling beyond the points.
    departure: f64,
    /// By how much minima lie above the undisturbed time, relative.
    excess: f64,
}

impl Draw {
    fn curves(&self) -> impl Iterator<Item = &Curve> {
        self.computation.iter().chain(&self.imbalance).chain([&self.overhead])
    }

    fn fitted(&self, p: f64, work: f64) -> f64 {
        self.curves().map(|curve| curve.at(p, work)).sum()
    }
}

/// The evidence of the points: many equally likely sums of curves.
#[derive(Debug, Clone)]
pub struct Evidence {
    draws: Vec<Draw>,
    largest: f64,
    /// The form that meets all points.
    exact: Option<Curve>,
    neighbours: Neighbours,
}

impl Evidence {
    /// Weighs the points; `None` for fewer than [`MIN_POINTS`]. `noise` is the relative noise of
    /// their times, if repetitions give it. A time that alone contradicts all others does not bend
    /// the curves.
    pub fn fit(points: &[Measured], noise: Option<f64>) -> Option<Self> {
        if points.len() < MIN_POINTS {
            return None;
        }
        let of_all = Self::through(points, noise);
        Some(of_all.without_the_worst(points, noise).unwrap_or(of_all))
    }

    /// The evidence of all points but the one that is furthest off, if several contradict these
    /// curves, but none the curves through the others.
    fn without_the_worst(&self, points: &[Measured], noise: Option<f64>) -> Option<Self> {
        if self.neighbours.contradictions().count() < 2 || points.len() <= MIN_POINTS {
            return None;
        }
        let worst = self.neighbours.furthest_off()?;
        let others: Vec<Measured> =
            points.iter().filter(|point| *point != &worst).copied().collect();
        let mut evidence = Self::through(&others, noise);
        let agree = evidence.neighbours.contradictions().next().is_none();
        evidence.compare_with(points);
        (agree && evidence.neighbours.contradictions().next().is_some()).then_some(evidence)
    }

    /// Notes how the measured times relate to the curves.
    fn compare_with(&mut self, points: &[Measured]) {
        self.largest = points.iter().map(|point| point.p).fold(0.0, f64::max);
        let curves_s = |point: &Measured| median(self.on_curves(point.p, point.work));
        let all = points.iter().map(|point| (*point, curves_s(point))).collect();
        self.neighbours = Neighbours::new(all);
    }

    /// The evidence of all points.
    fn through(points: &[Measured], noise: Option<f64>) -> Self {
        let lower = noise.map_or(0.0, |noise| noise.min(0.3));
        let noise = noise.map_or(NOISE_OF_ONE_RUN, |noise| noise.max(MIN_NOISE));
        let mean = |point: &Measured| point.computation.map(|c| c.mean_s);
        let maximum = |point: &Measured| point.computation.and_then(|c| c.max_s);
        let means: Option<Vec<f64>> = points.iter().map(mean).collect();
        let maxima: Option<Vec<f64>> = points.iter().map(maximum).collect();
        let of = |value: &dyn Fn(usize) -> f64, sd: &dyn Fn(usize) -> f64| -> Vec<PartPoint> {
            let part = |(i, point): (usize, &Measured)| PartPoint {
                p: point.p,
                work: point.work,
                value_s: value(i),
                sd_s: sd(i),
            };
            points.iter().enumerate().map(part).collect()
        };
        let of_tau = |i: usize| noise * points[i].tau_s;
        let curves = |points: &[PartPoint], family: &Family| part::draw(points, family, DRAWS);
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut draws = Vec::new();
        let mut add =
            |computation: Option<&[Curve]>, imbalance: Option<&[Curve]>, rest: &[Curve]| {
                let mut order = || {
                    let mut order: Vec<usize> = (0..DRAWS).collect();
                    random.shuffle(&mut order);
                    order
                };
                let (first, second) = (order(), order());
                for (i, overhead) in rest.iter().enumerate() {
                    draws.push(Draw {
                        computation: computation.map(|curves| curves[first[i]].clone()),
                        imbalance: imbalance.map(|curves| curves[second[i]].clone()),
                        overhead: overhead.clone(),
                        beyond: [normal(&mut random), normal(&mut random)],
                        departure: departure(&mut random),
                        excess: lower * normal(&mut random).abs(),
                    });
                }
            };
        if let Some(means) = &means {
            let computation = curves(&of(&|i| means[i], &|i| 2e-4 * means[i]), &COMPUTATION);
            if let Some(maxima) = &maxima {
                let uneven = of(&|i| (maxima[i] - means[i]).max(0.0), &|i| 1e-3 * means[i]);
                let left = of(&|i| points[i].tau_s - maxima[i], &of_tau);
                let imbalance = curves(&uneven, &IMBALANCE);
                add(Some(&computation), Some(&imbalance), &curves(&left, &OVERHEAD));
            }
            let left = of(&|i| points[i].tau_s - means[i], &of_tau);
            add(Some(&computation), None, &curves(&left, &OVERHEAD));
        }
        add(None, None, &curves(&of(&|i| points[i].tau_s, &of_tau), &OVERHEAD));
        random.shuffle(&mut draws);
        let mut evidence = Self {
            draws,
            largest: 0.0,
            exact: exact::curve(points),
            neighbours: Neighbours::new(Vec::new()),
        };
        evidence.compare_with(points);
        evidence
    }

    /// The form of the papers that meets all points to their digits: shapes with their
    /// coefficients, seconds.
    pub fn exact(&self) -> Option<&[(Shape, f64)]> {
        self.exact.as_ref().map(|curve| &*curve.terms)
    }

    /// The measured times that contradict the curves, in the order of the points.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        self.neighbours.contradictions().collect()
    }

    /// Times at p ranks with work w, seconds: one per draw, with the draws in the same order for
    /// every p.
    pub fn times(&self, p: f64, work: f64) -> Vec<f64> {
        let on_curves = self.on_curves(p, work);
        let mut times = self.around(median(on_curves.clone()), on_curves, p);
        self.neighbours.bound(&mut times, p, work);
        times
    }

    /// The time at p ranks with work w.
    pub fn at(&self, p: f64, work: f64) -> Forecast {
        let tau_s = median(self.on_curves(p, work));
        let mut times = self.times(p, work);
        times.sort_by(f64::total_cmp);
        let share = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        Forecast { tau_s, lo_s: share(0.05).min(tau_s), hi_s: share(0.95).max(tau_s) }
    }

    /// Doublings of the rank count beyond the points.
    fn doublings(&self, p: f64) -> f64 {
        (p / self.largest).log2().max(0.0)
    }

    /// Times on the curves with their discrepancies, seconds.
    fn on_curves(&self, p: f64, work: f64) -> Vec<f64> {
        if let Some(exact) = &self.exact {
            return vec![exact.at(p, work); self.draws.len()];
        }
        let distance = self.doublings(p).sqrt();
        let beyond = |curve: &Curve, z: f64| {
            let growth = GROWTH * curve.discrepancy.max(MIN_GROWING_DISCREPANCY) * distance;
            curve.at(p, work) * (growth * z).exp()
        };
        let time = |draw: &Draw| {
            let computation = draw.computation.as_ref().map_or(0.0, |curve| curve.at(p, work));
            let imbalance = draw.imbalance.as_ref().map_or(0.0, |c| beyond(c, draw.beyond[0]));
            let overhead = beyond(&draw.overhead, draw.beyond[1]);
            (computation + imbalance + overhead) * (1.0 - draw.excess).max(0.5)
        };
        self.draws.iter().map(time).collect()
    }

    /// Brings times on the curves nearer to their median and lets them leave the curves.
    fn around(&self, median_s: f64, on_curves: Vec<f64>, p: f64) -> Vec<f64> {
        let distance = self.doublings(p).sqrt();
        let time = |(draw, time_s): (&Draw, f64)| {
            let damped = (time_s / median_s).powf(DAMPING);
            median_s * damped * (draw.departure * distance).exp()
        };
        self.draws.iter().zip(on_curves).map(time).collect()
    }

    /// The draw nearest to the medians up to 32 times the largest measured rank count, for constant
    /// work: shapes with their coefficients, seconds, none negative.
    pub fn typical(&self) -> Vec<(Shape, f64)> {
        if let Some(exact) = &self.exact {
            return exact.terms.clone();
        }
        let rank_counts: Vec<f64> = (-1..=5).map(|k| self.largest * 2f64.powi(k)).collect();
        let medians: Vec<f64> = rank_counts
            .iter()
            .map(|p| median(self.draws.iter().map(|draw| draw.fitted(*p, 1.0)).collect()))
            .collect();
        let off = |draw: &&Draw| -> f64 {
            let pairs = rank_counts.iter().zip(&medians);
            pairs.map(|(p, median)| (draw.fitted(*p, 1.0) / median).ln().powi(2)).sum()
        };
        let best = self.draws.iter().min_by(|a, b| off(a).total_cmp(&off(b)));
        let mut sum: Vec<(Shape, f64)> = Vec::new();
        for (shape, c) in best.iter().flat_map(|draw| draw.curves()).flat_map(|c| &c.terms) {
            match sum.iter_mut().find(|(other, _)| other == shape) {
                Some((_, total)) => *total += c,
                None => sum.push((*shape, *c)),
            }
        }
        sum
    }

    /// Share of the draws that have each shape.
    pub fn share(&self, shape: Shape) -> f64 {
        if let Some(exact) = &self.exact {
            return if exact.terms.iter().any(|(of, _)| *of == shape) { 1.0 } else { 0.0 };
        }
        let has = |draw: &&Draw| {
            draw.curves().flat_map(|curve| &curve.terms).any(|(s, c)| *s == shape && *c > 0.0)
        };
        self.draws.iter().filter(has).count() as f64 / self.draws.len() as f64
    }
}

/// Draws by how much a time leaves the curves, one doubling beyond the points.
fn departure(random: &mut fastrand::Rng) -> f64 {
    let (up, down) = DEPARTURE_LOG_SD;
    let z = normal(random);
    z * if z > 0.0 { up } else { down }
}

/// The middle of values that are not empty; of two middle ones the larger.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    nearest_rank(&values, 0.5).unwrap_or(f64::NAN)
}
