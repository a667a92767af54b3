//! All that `gammachi logpq` has to say, in one value.

use super::Parameters;
use super::messages::RunPrediction;
use super::study::Study;

/// What goes to the screen, the JSON document and the figures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    /// Where the parameters come from.
    pub source: String,
    /// One for each class of pairs.
    pub parameters: Vec<Parameters>,
    /// Cannon's product, by the first class that the product's ranks would use.
    pub cannon: Option<Study>,
    /// Which class that is.
    pub cannon_class: String,
    /// Recorded runs: the whole, then each region.
    pub runs: Vec<RunPrediction>,
    /// What a reader should know.
    pub notes: Vec<String>,
}
