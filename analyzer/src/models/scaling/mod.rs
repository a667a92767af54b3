//! The efficiency model (Orii 2009): fits a table of runs over the rank count, one [`Fit`] for each
//! combination of parameters.
//!
//! No sequential run is needed: Σγ at a reference rank count p₁ takes its place. The model and its
//! formulas are in [`curve`]; docs/guide/predict.md explains every figure to the user.

pub mod bootstrap;
mod by_structure;
mod comparison;
pub mod curve;
mod error;
pub mod findings;
pub mod fit;
mod fitting;
mod least_squares;
mod options;
mod prediction;
pub mod series;
mod warning;

use super::observations::Observations;
use super::structure::{Abstains, MachineTimes, SizedRun, Structure};

pub use by_structure::{AtProblemSize, Believed, ByStructure, Curves, Speaks, Structural};
pub use comparison::{Comparison, Step};
pub use curve::{Curve, Definition};
pub use error::{ScalingError, label};
pub use fit::{Fit, FittedPoint, Isoefficiency, LeftOut, Model, Prediction, Unsupported, Warning};
pub use least_squares::Weights;
pub use options::{Form, Options, PointChoice};
pub use series::{Point, Series, Work};

/// All fits of a table.
#[derive(Debug, Clone)]
pub struct Scaling {
    /// The table that they are from.
    pub source: String,
    /// One per combination of parameters, ascending.
    pub fits: Vec<Fit>,
    /// How the terms grow from fit to fit, where the fits differ in one numeric parameter.
    pub comparison: Option<Comparison>,
}

impl Scaling {
    /// Fits every series of a table.
    ///
    /// # Errors
    /// The table, the expression or an option is unsuitable.
    pub fn new(table: &Observations, options: &Options) -> Result<Self, ScalingError> {
        if let PointChoice::First(number) = options.points
            && number < 2
        {
            return Err(ScalingError::FewPoints(number));
        }
        let fits: Vec<Fit> = series::series(table, options.work.as_ref())?
            .into_iter()
            .map(|series| Fit::new(series, options))
            .collect::<Result<_, _>>()?;
        let comparison = Comparison::between_fits(&fits);
        Ok(Self { source: table.source().to_owned(), fits, comparison })
    }

    /// Predicts a problem size that was not measured from what runs at others do, beside what curves say of it.
    pub fn at_problem_size(
        &self,
        runs: Result<Vec<SizedRun>, Abstains>,
        size: f64,
        machine: &MachineTimes,
        curves: &[Curves],
    ) -> Structural {
        let runs = self.fits.iter().fold(runs, |runs, fit| fit.with_cores(runs))?;
        let structure = Structure::at_problem_size(runs, size, machine.clone())?;
        Ok(ByStructure::new(&structure, curves))
    }
}

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;
