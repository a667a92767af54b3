//! How well a model describes the points that it was fitted to.

use super::Model;

/// Relative errors of a model at the points of all its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitQuality {
    /// Largest |y − ŷ|/y.
    pub max_relative: f64,
    /// Root of the mean square of (y − ŷ)/y.
    pub rms_relative: f64,
}

impl FitQuality {
    /// The quality of a model.
    pub fn of(model: &Model) -> Self {
        let mut errors = Vec::new();
        for part in &model.parts {
            let pairs = part.points.times.iter().zip(&part.fitted);
            errors.extend(pairs.map(|(time, fitted)| 1.0 - fitted / time));
        }
        let squares: f64 = errors.iter().map(|e| e * e).sum();
        Self {
            max_relative: errors.iter().fold(0.0, |a: f64, b| a.max(b.abs())),
            rms_relative: (squares / errors.len().max(1) as f64).sqrt(),
        }
    }
}
