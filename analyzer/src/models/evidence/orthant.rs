//! Normal distributions truncated to non-negative coordinates.
//!
//! The simulator of Geweke, Hajivassiliou and Keane: the coordinates are drawn one after another,
//! each from a normal distribution truncated at 0, at the points of a Halton sequence. The product
//! of the shares kept estimates the probability. The same input gives the same points.

use nalgebra::{DMatrix, DVector};
use statrs::distribution::{ContinuousCDF, Normal};

/// Number of points of the sequence.
const POINTS: usize = 64;

const BASES: [usize; 6] = [2, 3, 5, 7, 11, 13];

/// Draws non-negative points of a normal distribution in at most six dimensions. Their weights sum
/// to the probability that no coordinate is negative.
///
/// The distribution has this mean and the covariance `factor`·`factor`ᵀ, where `factor` is lower
/// triangular with a positive diagonal.
pub fn draws(mean: &DVector<f64>, factor: &DMatrix<f64>) -> Vec<(DVector<f64>, f64)> {
    let standard = Normal::standard();
    let size = mean.len();
    let mut z = vec![0.0; size];
    let draw = |point: usize| {
        let mut weight = 1.0 / POINTS as f64;
        let mut at = DVector::zeros(size);
        for i in 0..size {
            let shift: f64 = mean[i] + (0..i).map(|j| factor[(i, j)] * z[j]).sum::<f64>();
            let above = standard.cdf(shift / factor[(i, i)]).max(1e-300);
            weight *= above;
            // Mirrored, so that the share above 0 stays accurate even where it is tiny.
            z[i] = -standard.inverse_cdf(above * halton(point + 1, BASES[i]));
            at[i] = (shift + factor[(i, i)] * z[i]).max(0.0);
        }
        (at, weight)
    };
    (0..POINTS).map(draw).collect()
}

fn halton(mut index: usize, base: usize) -> f64 {
    let (mut value, mut digit) = (0.0, 1.0);
    while index > 0 {
        digit /= base as f64;
        value += digit * (index % base) as f64;
        index /= base;
    }
    value
}
