//! Draws curves with non-negative coefficients that could explain the points of one part of the
//! time (computation, imbalance or overhead).
//!
//! Every sum of at most four terms is weighed by its evidence: prior probability × density of the
//! points × probability that no coefficient is negative. A sum is not the truth: its discrepancy is
//! a random function of the rank count, and the size of the discrepancy is weighed in the same way.

use nalgebra::{DMatrix, DVector};

use super::orthant;
use super::terms::{Family, MAX_TERMS, Shape};

/// A part of the time at one rank count.
#[derive(Debug, Clone, Copy)]
pub struct PartPoint {
    /// Rank count.
    pub p: f64,
    /// Relative work.
    pub work: f64,
    /// The part, seconds.
    pub value_s: f64,
    /// Standard deviation of its measurement, seconds.
    pub sd_s: f64,
}

/// A curve that could explain the points.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Coefficients, seconds, none negative.
    pub terms: Vec<(Shape, f64)>,
    /// Its relative discrepancy.
    pub discrepancy: f64,
}

impl Curve {
    /// Seconds at p ranks with work w.
    pub fn at(&self, p: f64, work: f64) -> f64 {
        self.terms.iter().map(|(shape, c)| c * shape.at(p, work)).sum()
    }
}

struct Candidate {
    columns: Vec<usize>,
    discrepancy: f64,
    log_weight: f64,
    mean: DVector<f64>,
    /// Lower triangular factor of the coefficients' covariance.
    factor: DMatrix<f64>,
}

/// Draws `number` curves of a part. There must be points.
pub fn draw(points: &[PartPoint], family: &Family, number: usize) -> Vec<Curve> {
    let design = Design::new(points, family);
    let subsets = design.subsets(family);
    let mut candidates = Vec::new();
    for (discrepancy, chance) in family.discrepancies {
        let Some(white) = design.whiten(points, *discrepancy) else { continue };
        let of_subset = |(columns, prior): &(Vec<usize>, f64)| {
            white.candidate(&design, columns, prior + chance.ln(), *discrepancy)
        };
        candidates.extend(subsets.iter().filter_map(of_subset));
    }
    let best = candidates.iter().map(|c| c.log_weight).fold(f64::NEG_INFINITY, f64::max);
    // The probability of the orthant still lowers the weights, seldom to less than a thousandth.
    candidates.retain(|candidate| candidate.log_weight > best - 16.0);
    let mut drawn: Vec<(usize, DVector<f64>, f64)> = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        // 2^k: the half-normal prior has twice the density of the normal one.
        let weight = (candidate.log_weight - best).exp() * 2f64.powi(candidate.mean.len() as i32);
        let draws = orthant::draws(&candidate.mean, &candidate.factor);
        drawn.extend(draws.into_iter().map(|(c, share)| (index, c, weight * share)));
    }
    let curves = resample(&drawn, number);
    curves
        .into_iter()
        .map(|at| {
            let (index, c, _) = &drawn[at];
            let candidate = &candidates[*index];
            let term = |(i, column): (usize, &usize)| {
                (design.shapes[*column], c[i] / design.at_largest[*column])
            };
            Curve {
                terms: candidate.columns.iter().enumerate().map(term).collect(),
                discrepancy: candidate.discrepancy,
            }
        })
        .collect()
}

/// Indices of `number` draws, spread evenly over the weights.
fn resample(drawn: &[(usize, DVector<f64>, f64)], number: usize) -> Vec<usize> {
    let total: f64 = drawn.iter().map(|(_, _, weight)| weight).sum();
    let (mut passed, mut at) = (0.0, 0);
    let mut chosen = Vec::with_capacity(number);
    for i in 0..number {
        let goal = total * (i as f64 + 0.5) / number as f64;
        while at + 1 < drawn.len() && passed + drawn[at].2 < goal {
            passed += drawn[at].2;
            at += 1;
        }
        chosen.push(at);
    }
    chosen
}

/// Columns, scaled to 1 at the largest rank count, and the priors of their coefficients.
struct Design {
    shapes: Vec<Shape>,
    forced: usize,
    at_largest: Vec<f64>,
    columns: DMatrix<f64>,
    prior_sd: Vec<f64>,
}

impl Design {
    fn new(points: &[PartPoint], family: &Family) -> Self {
        let largest = points.iter().max_by(|a, b| a.p.total_cmp(&b.p)).copied();
        let largest = largest.unwrap_or(PartPoint { p: 1.0, work: 1.0, value_s: 0.0, sd_s: 1.0 });
        let mut shapes: Vec<Shape> = Vec::new();
        let all = family.forced.iter().copied().chain(family.offered.iter().map(|(s, _)| *s));
        // Where the work grows in proportion to p, shared work is constant; the two would be the
        // same column.
        for shape in all {
            let ratio = |other: Shape, point: &PartPoint| {
                shape.at(point.p, point.work) * other.at(largest.p, largest.work)
                    - other.at(point.p, point.work) * shape.at(largest.p, largest.work)
            };
            let same = |other: &Shape| points.iter().all(|point| ratio(*other, point).abs() < 1e-9);
            if points.len() < 2 || !shapes.iter().any(same) {
                shapes.push(shape);
            }
        }
        let at_largest: Vec<f64> = shapes.iter().map(|s| s.at(largest.p, largest.work)).collect();
        let columns = DMatrix::from_fn(points.len(), shapes.len(), |i, j| {
            shapes[j].at(points[i].p, points[i].work) / at_largest[j]
        });
        let prior_sd = shapes
            .iter()
            .enumerate()
            .map(|(j, shape)| {
                if family.forced.contains(shape) {
                    return 30.0 * largest.value_s.max(largest.sd_s);
                }
                // A coefficient cannot make its term larger than the part at any point.
                let bound = |(i, point): (usize, &PartPoint)| {
                    let f = columns[(i, j)];
                    (f > 0.0).then(|| (point.value_s.abs() + 1.5 * point.sd_s) / f)
                };
                let bounds = points.iter().enumerate().filter_map(bound);
                shape.scale() * bounds.fold(f64::INFINITY, f64::min).min(1e300)
            })
            .collect();
        Self { shapes, forced: family.forced.len(), at_largest, columns, prior_sd }
    }

    /// Sums of terms, each with the logarithm of its prior probability.
    fn subsets(&self, family: &Family) -> Vec<(Vec<usize>, f64)> {
        let offered: Vec<(usize, f64)> = (self.forced..self.shapes.len())
            .map(|j| {
                let of = |(shape, _): &&(Shape, f64)| *shape == self.shapes[j];
                (j, family.offered.iter().find(of).map_or(0.0, |(_, chance)| *chance))
            })
            .collect();
        let mut all = Vec::new();
        for mask in 0u32..1 << offered.len() {
            if mask.count_ones() as usize > MAX_TERMS {
                continue;
            }
            let mut columns: Vec<usize> = (0..self.forced).collect();
            let mut prior = 0.0;
            for (bit, (j, chance)) in offered.iter().enumerate() {
                let taken = mask >> bit & 1 == 1;
                prior += if taken { chance.ln() } else { (1.0 - chance).ln() };
                if taken {
                    columns.push(*j);
                }
            }
            let clash =
                |a: &usize| columns.iter().any(|b| self.shapes[*a].excludes(self.shapes[*b]));
            if !columns.is_empty() && !columns.iter().any(clash) {
                all.push((columns, prior));
            }
        }
        all
    }

    /// Transforms points and columns so that noise plus discrepancy is independent with variance 1.
    fn whiten(&self, points: &[PartPoint], discrepancy: f64) -> Option<White> {
        let largest = points.iter().map(|point| point.p).fold(0.0, f64::max);
        let level: Vec<f64> = points.iter().map(|p| p.value_s.max(p.sd_s / 2.0)).collect();
        let below: Vec<f64> = points.iter().map(|point| (largest / point.p).log2()).collect();
        let covariance = DMatrix::from_fn(points.len(), points.len(), |i, j| {
            let walk = discrepancy.powi(2) * level[i] * level[j] * below[i].min(below[j]);
            let own = points[i].sd_s.powi(2) + (discrepancy * level[i]).powi(2);
            walk + if i == j { own } else { 0.0 }
        });
        let factor = covariance.cholesky()?.unpack();
        let values = DVector::from_iterator(points.len(), points.iter().map(|p| p.value_s));
        let values = factor.solve_lower_triangular(&values)?;
        let columns = factor.solve_lower_triangular(&self.columns)?;
        Some(White {
            log_density: -factor.diagonal().map(f64::ln).sum() - values.norm_squared() / 2.0,
            gram: columns.transpose() * &columns,
            products: columns.transpose() * values,
        })
    }
}

struct White {
    log_density: f64,
    gram: DMatrix<f64>,
    products: DVector<f64>,
}

impl White {
    fn candidate(
        &self,
        design: &Design,
        columns: &[usize],
        log_prior: f64,
        discrepancy: f64,
    ) -> Option<Candidate> {
        let size = columns.len();
        let sd = |i: usize| design.prior_sd[columns[i]];
        // In units of the prior standard deviations, so that the precision matrix is well scaled.
        let precision = DMatrix::from_fn(size, size, |i, j| {
            let unit = if i == j { 1.0 } else { 0.0 };
            unit + sd(i) * self.gram[(columns[i], columns[j])] * sd(j)
        });
        let b = DVector::from_fn(size, |i, _| sd(i) * self.products[columns[i]]);
        let cholesky = precision.cholesky()?;
        let mean = cholesky.solve(&b);
        let log_determinant = 2.0 * cholesky.l_dirty().diagonal().map(f64::ln).sum();
        let log_weight = log_prior + self.log_density + (b.dot(&mean) - log_determinant) / 2.0;
        let factor = cholesky.inverse().cholesky()?.unpack();
        let scale = DVector::from_fn(size, |i, _| sd(i));
        Some(Candidate {
            columns: columns.to_vec(),
            discrepancy,
            log_weight,
            mean: mean.component_mul(&scale),
            factor: DMatrix::from_diagonal(&scale) * factor,
        })
    }
}
