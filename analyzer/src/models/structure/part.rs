//! What takes part of a predicted time.

use super::regimes::Regime;

/// A label's part of a predicted time.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub name: String,
    pub first_use: bool,
    pub seconds: f64,
    /// Events on the path.
    pub count: f64,
    /// The law of the count, if it has one.
    pub count_law: Option<String>,
    /// Bytes of an event.
    pub bytes: f64,
    /// Their law.
    pub bytes_law: Option<String>,
    /// Bytes of a message in the run that is nearest, and of those asked for, if libraries may send these
    /// in another way.
    pub leaves_sizes: Option<(f64, f64)>,
    /// Where its calls begin to be carried out in another way than in any run.
    pub regime: Option<Regime>,
    /// Standard deviation of its logarithm.
    pub(super) sd: f64,
}

/// Standard deviation of the sum of parts, relative to it.
pub(super) fn uncertainty(parts: &[Part]) -> f64 {
    let squares = parts.iter().map(|part| (part.sd * part.seconds).powi(2)).sum::<f64>();
    squares.sqrt() / parts.iter().map(|part| part.seconds).sum::<f64>()
}
