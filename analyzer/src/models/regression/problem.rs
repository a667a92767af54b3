//! Scales a fitting problem.
//!
//! Columns of a performance model differ by 20 orders of magnitude (N³ beside 1). Every solver
//! tried gave wrong answers on the raw numbers and right ones after scaling. So each column is
//! divided by its largest magnitude and the times by theirs, and the coefficients are scaled back
//! at the end.

use nalgebra::{DMatrix, DVector};
use serde::Serialize;

/// The kind of residuals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Residual {
    /// (y − Fa)/y: a small run counts as much as a large one.
    Relative,
    /// y − Fa in seconds, as in Orii et al.
    Absolute,
}

/// A scaled fitting problem: find a ≥ 0 (or any a) with F·a ≈ y.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    /// Rows are points, columns are scaled basis functions; entries within ±1.
    pub f: DMatrix<f64>,
    /// Scaled times; all 1 for relative residuals.
    pub y: DVector<f64>,
    column_scale: Vec<f64>,
    y_scale: f64,
}

impl Problem {
    /// `f` is rows × columns, unscaled; `y` has one positive time per row.
    pub fn new(f: &DMatrix<f64>, y: &[f64], residual: Residual) -> Self {
        let mut scaled = f.clone();
        let (target, y_scale) = match residual {
            Residual::Relative => {
                for (mut row, y) in scaled.row_iter_mut().zip(y) {
                    row /= *y;
                }
                (DVector::from_element(y.len(), 1.0), 1.0)
            }
            Residual::Absolute => {
                let largest = y.iter().fold(0.0f64, |a, b| a.max(b.abs()));
                (DVector::from_iterator(y.len(), y.iter().map(|y| y / largest)), largest)
            }
        };
        let mut column_scale = Vec::with_capacity(scaled.ncols());
        for mut column in scaled.column_iter_mut() {
            let largest = column.amax();
            let scale = if largest > 0.0 { largest } else { 1.0 };
            column /= scale;
            column_scale.push(scale);
        }
        Self { f: scaled, y: target, column_scale, y_scale }
    }

    /// Coefficients of the unscaled columns.
    pub fn unscale(&self, a: &DVector<f64>) -> Vec<f64> {
        a.iter().zip(&self.column_scale).map(|(a, scale)| a * self.y_scale / scale).collect()
    }

    /// The same problem with weighted rows. Weights apply to squared residuals, so rows are
    /// multiplied by their square roots.
    pub fn weighted(&self, weights: &[f64]) -> Self {
        let mut weighted = self.clone();
        for (i, weight) in weights.iter().enumerate() {
            let root = weight.sqrt();
            weighted.f.row_mut(i).scale_mut(root);
            weighted.y[i] *= root;
        }
        weighted
    }

    /// y − F·a.
    pub fn residuals(&self, a: &DVector<f64>) -> DVector<f64> {
        &self.y - &self.f * a
    }
}
