//! Everything that `gammachi calibrate logpq` reports.

use super::messages::RunPrediction;
use super::parameters::Parameters;
use super::study::Study;

/// Everything that the screen, the JSON document and the figures show.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    /// Where the parameters come from.
    pub source: String,
    /// One for each class of pairs.
    pub parameters: Vec<Parameters>,
    /// Cannon's product, with the parameters of the first class that its ranks would use.
    pub cannon: Option<Study>,
    /// Name of that class.
    pub cannon_class: String,
    /// Recorded runs: each whole run, then its regions.
    pub runs: Vec<RunPrediction>,
    /// Remarks.
    pub notes: Vec<String>,
}
