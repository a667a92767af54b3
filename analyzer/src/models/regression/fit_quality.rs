//! How well a model describes the points that it was fitted to.

use serde::Serialize;

use super::model::Model;
use super::problem::Residual;

/// Relative errors of a model at the points of all its parts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FitQuality {
    /// Largest |y − ŷ|/y.
    pub max_relative: f64,
    /// Root of the mean square of (y − ŷ)/y.
    pub rms_relative: f64,
    /// What the fit minimises, as a share of the times: `rms_relative`, or for residuals in seconds
    /// √(Σ(y − ŷ)²/Σy²), because such a fit may miss short times.
    #[serde(skip)]
    pub misfit: f64,
}

impl FitQuality {
    /// The quality of a model.
    pub fn measure(model: &Model) -> Self {
        let pairs: Vec<(f64, f64)> = model
            .parts
            .iter()
            .flat_map(|part| part.points.times.iter().copied().zip(part.fitted.iter().copied()))
            .collect();
        let relative = |(time, fitted): &(f64, f64)| 1.0 - fitted / time;
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(|pair| of(pair).powi(2)).sum();
        let squares: f64 = sum(&relative);
        let rms_relative = (squares / pairs.len().max(1) as f64).sqrt();
        let seconds: f64 = sum(&|(time, fitted)| time - fitted);
        let times: f64 = sum(&|(time, _)| *time);
        let misfit = match model.parts.iter().all(|part| part.residual == Residual::Relative) {
            true => rms_relative,
            false => (seconds / times).sqrt(),
        };
        Self {
            max_relative: pairs.iter().map(|pair| relative(pair).abs()).fold(0.0, f64::max),
            rms_relative,
            misfit,
        }
    }
}
