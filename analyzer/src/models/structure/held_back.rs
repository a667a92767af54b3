//! A run that is predicted from others, to know how far these can be believed.

/// What the other runs predict for the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldBack {
    pub p: u32,
    pub predicted_s: f64,
    pub measured_s: f64,
}

impl HeldBack {
    /// Relative error.
    pub fn error(&self) -> f64 {
        (self.predicted_s / self.measured_s - 1.0).abs()
    }

    /// Error of the logarithm, by which intervals grow in both directions.
    pub(super) fn log_error(&self) -> f64 {
        (self.predicted_s / self.measured_s).ln().abs()
    }
}
