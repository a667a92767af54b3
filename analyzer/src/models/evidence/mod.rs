//! Predicts a time at any rank count, with an interval, from a few measured points by weighing evidence.
//!
//! Computation, imbalance and overhead are modelled apart (`part`), each as a sum of terms none of
//! which is ever negative (`terms`). No single sum is chosen: all are weighed by how well they explain
//! the points. Where the ranks' computation is known, three ways of taking the time apart count alike.
//! docs/measurements/accuracy.md says how well this predicts programs that it was not made on.

mod orthant;
mod part;
mod terms;
#[cfg(test)]
mod tests;

use part::{Curve, PartPoint};
use terms::{COMPUTATION, Family, IMBALANCE, OVERHEAD};

pub use terms::Shape;

/// Rank counts that a prediction takes at least.
pub const LEAST_POINTS: usize = 3;
/// Upper by lower end of an interval that is too wide to say anything.
pub const WIDEST: f64 = 10.0;

/// Draws of each way of taking the time apart.
const DRAWS: usize = 1000;
/// Fixed: the same points give the same answer.
const SEED: u64 = 0x6761_6d6d_6163_6869;
/// Noise of a time that was measured once, relative.
const UNREPEATED: f64 = 0.003;
/// No measurement is better, relative.
const LEAST_NOISE: f64 = 5e-4;
/// Growth of a curve's discrepancy beyond the points, per root of a doubling of the rank count.
const GROWTH: f64 = 0.6;
/// Least discrepancy that grows so.
const LEAST_GROWN: f64 = 0.02;
/// Changes of regime that a doubling beyond the points brings: an eager limit, another algorithm, a link
/// that others share. No curve sees them come; every interval has room for one.
const CHANGES: f64 = 0.15;
/// Standard deviation of the logarithm by which overhead then changes.
const CHANGE: f64 = 0.8;
/// Share of the changes that make it smaller.
const SMALLER: f64 = 0.2;

/// What was measured at one rank count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Rank count.
    pub p: f64,
    /// Work relative to that of the reference; 1 in strong scaling.
    pub work: f64,
    /// Smallest time of the repetitions, seconds.
    pub tau_s: f64,
    /// Computation of a rank, where known.
    pub computation: Option<Computation>,
}

/// Computation of the ranks of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Computation {
    /// Mean of the ranks, seconds.
    pub mean_s: f64,
    /// Maximum of the ranks, seconds, where known.
    pub most_s: Option<f64>,
}

/// Noise of the smallest of so many repetitions whose times have this standard deviation, both relative:
/// what only slows disturbs the smallest less and less.
pub fn noise_of_minimum(relative_sd: f64, repetitions: f64) -> f64 {
    1.2 * relative_sd / repetitions.powf(0.75)
}

/// A time that was not measured.
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
    /// Whether the interval is too wide to say anything.
    pub fn is_void(&self) -> bool {
        self.hi_s > WIDEST * self.lo_s
    }
}

/// One way in which the points may have come about.
#[derive(Debug, Clone)]
struct Draw {
    computation: Option<Curve>,
    imbalance: Option<Curve>,
    overhead: Curve,
    /// Standard normal deviates of imbalance and overhead beyond the points.
    beyond: [f64; 2],
    /// Doublings beyond the points at which the regime changes, and the logarithm by which overhead does.
    change: (f64, f64),
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

/// What the points say, as many equally likely sums of curves.
#[derive(Debug, Clone)]
pub struct Evidence {
    draws: Vec<Draw>,
    largest: f64,
}

impl Evidence {
    /// Weighs the points; `None` for fewer than [`LEAST_POINTS`]. `noise` is that of their times, relative,
    /// where repetitions tell it.
    pub fn of(points: &[Measured], noise: Option<f64>) -> Option<Self> {
        if points.len() < LEAST_POINTS {
            return None;
        }
        let lower = noise.map_or(0.0, |noise| noise.min(0.3));
        let noise = noise.map_or(UNREPEATED, |noise| noise.max(LEAST_NOISE));
        let mean = |point: &Measured| point.computation.map(|c| c.mean_s);
        let most = |point: &Measured| point.computation.and_then(|c| c.most_s);
        let means: Option<Vec<f64>> = points.iter().map(mean).collect();
        let maxima: Option<Vec<f64>> = points.iter().map(most).collect();
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
                        change: change(&mut random),
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
        Some(Self { draws, largest: points.iter().map(|point| point.p).fold(0.0, f64::max) })
    }

    /// Times at p ranks with work w, seconds, one a draw: a draw keeps its place from p to p.
    pub fn times(&self, p: f64, work: f64) -> Vec<f64> {
        let doublings = (p / self.largest).log2().max(0.0);
        let beyond = |curve: &Curve, z: f64| {
            let growth = GROWTH * curve.discrepancy.max(LEAST_GROWN) * doublings.sqrt();
            curve.at(p, work) * (growth * z).exp()
        };
        let time = |draw: &Draw| {
            let computation = draw.computation.as_ref().map_or(0.0, |curve| curve.at(p, work));
            let imbalance = draw.imbalance.as_ref().map_or(0.0, |c| beyond(c, draw.beyond[0]));
            let changed = if draw.change.0 < doublings { draw.change.1.exp() } else { 1.0 };
            let overhead = beyond(&draw.overhead, draw.beyond[1]) * changed;
            (computation + imbalance + overhead) * (1.0 - draw.excess).max(0.5)
        };
        self.draws.iter().map(time).collect()
    }

    /// The time at p ranks with work w.
    pub fn at(&self, p: f64, work: f64) -> Forecast {
        let mut times = self.times(p, work);
        times.sort_by(f64::total_cmp);
        let share = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        Forecast { tau_s: share(0.5), lo_s: share(0.05), hi_s: share(0.95) }
    }

    /// The curve that is nearest to the medians up to 32 times the largest rank count measured, for work
    /// that does not change: shapes with their coefficients, seconds, none negative.
    pub fn typical(&self) -> Vec<(Shape, f64)> {
        let places: Vec<f64> = (-1..=5).map(|k| self.largest * 2f64.powi(k)).collect();
        let medians: Vec<f64> = places
            .iter()
            .map(|p| {
                let mut all: Vec<f64> = self.draws.iter().map(|d| d.fitted(*p, 1.0)).collect();
                all.sort_by(f64::total_cmp);
                all[all.len() / 2]
            })
            .collect();
        let off = |draw: &&Draw| -> f64 {
            let pairs = places.iter().zip(&medians);
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
        let has = |draw: &&Draw| {
            draw.curves().flat_map(|curve| &curve.terms).any(|(s, c)| *s == shape && *c > 0.0)
        };
        self.draws.iter().filter(has).count() as f64 / self.draws.len() as f64
    }
}

/// Where the regime changes first, doublings beyond the points, and the logarithm of the factor.
fn change(random: &mut fastrand::Rng) -> (f64, f64) {
    let at = -(1.0 - random.f64()).ln() / CHANGES;
    let sign = if random.f64() < SMALLER { -1.0 } else { 1.0 };
    (at, sign * CHANGE * normal(random).abs())
}

/// A standard normal deviate (Box and Muller 1958).
fn normal(random: &mut fastrand::Rng) -> f64 {
    let (u, v) = (1.0 - random.f64(), random.f64());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
