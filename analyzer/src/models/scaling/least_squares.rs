//! Least squares of y(p) = c0 + c1·p + c2·p², factorised once for given rank counts and weights.
//!
//! The rank counts are divided by the largest before the QR factorisation and the coefficients
//! scaled back, because powers of raw rank counts differ by orders of magnitude.

use nalgebra::{DMatrix, DVector};

/// How the residuals of the points are weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weights {
    /// Equally: equation (11) as Orii 2009 fits it.
    #[default]
    Plain,
    /// By 1/(1+y): relative errors of τ.
    Relative,
}

/// The factorised problem.
#[derive(Debug, Clone)]
pub(super) struct Quadratic {
    /// 3 × n for n points: coefficients = `inverse` · y.
    inverse: DMatrix<f64>,
    /// Rank counts.
    p: Vec<f64>,
}

impl Quadratic {
    /// Factorises; `weights` has one number per point. `None` for fewer than three different rank
    /// counts.
    pub fn new(p: &[f64], weights: &[f64]) -> Option<Self> {
        let mut distinct = p.to_vec();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        if distinct.len() < 3 {
            return None;
        }
        let largest = distinct[distinct.len() - 1];
        let design = DMatrix::from_fn(p.len(), 3, |row, power| {
            weights[row] * (p[row] / largest).powi(power as i32)
        });
        let qr = design.qr();
        let r = qr.r();
        let mut inverse = qr.q().transpose();
        if !r.solve_upper_triangular_mut(&mut inverse) {
            return None;
        }
        for power in 0..3 {
            let scale = largest.powi(power);
            inverse.row_mut(power as usize).iter_mut().for_each(|value| *value /= scale);
        }
        for (column, weight) in weights.iter().enumerate() {
            inverse.column_mut(column).iter_mut().for_each(|value| *value *= weight);
        }
        Some(Self { inverse, p: p.to_vec() })
    }

    /// c0, c1, c2 for these y, one per point.
    pub fn solve(&self, y: &[f64]) -> [f64; 3] {
        let c = &self.inverse * DVector::from_column_slice(y);
        [c[0], c[1], c[2]]
    }

    /// Rank counts of the points.
    pub fn points(&self) -> &[f64] {
        &self.p
    }
}

/// Correlation coefficient of the values and their fit; 1 if either is constant.
pub(super) fn correlation(y: &[f64], fitted: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_y, mean_f) = (mean(y), mean(fitted));
    let (mut yy, mut ff, mut yf) = (0.0, 0.0, 0.0);
    for (y, f) in y.iter().zip(fitted) {
        let (dy, df) = (y - mean_y, f - mean_f);
        yy += dy * dy;
        ff += df * df;
        yf += dy * df;
    }
    if yy == 0.0 || ff == 0.0 { 1.0 } else { yf / (yy * ff).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovers_a_parabola_over_decades() {
        let p: Vec<f64> = (0..12).map(|k| 4f64.powi(k)).collect();
        let truth = [0.25, 3e-5, 2e-13];
        let y: Vec<f64> = p.iter().map(|p| truth[0] + p * (truth[1] + p * truth[2])).collect();
        for weights in [vec![1.0; 12], y.iter().map(|y| 1.0 / (1.0 + y)).collect()] {
            let c = Quadratic::new(&p, &weights).unwrap().solve(&y);
            for (c, truth) in c.iter().zip(truth) {
                assert!((c / truth - 1.0).abs() < 1e-7, "{c} {truth}");
            }
        }
    }

    #[test]
    fn needs_three_different_rank_counts() {
        assert!(Quadratic::new(&[1.0, 2.0, 2.0, 1.0], &[1.0; 4]).is_none());
        assert!(Quadratic::new(&[1.0, 2.0, 3.0], &[1.0; 3]).is_some());
    }
}
