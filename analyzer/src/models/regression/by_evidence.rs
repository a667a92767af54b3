//! Models times whose only variable is the rank count, by weighing evidence
//! ([`crate::models::evidence`]).

use crate::models::evidence::{Evidence, MIN_POINTS, Measured};

use super::basis::Basis;
use super::error::RegressionError;
use super::model::{Options, Part, SELECTED};
use super::points::{Identifiability, Points};

impl Part {
    /// Fits points whose only variable is a rank count. The columns are those of the curve nearest
    /// to the medians.
    ///
    /// # Errors
    /// Too few points, or a rank count that is not above 0.
    pub fn by_evidence(
        points: &Points,
        options: &Options,
        source_name: &str,
    ) -> Result<Self, RegressionError> {
        let points = points.sorted();
        let measured = |i: usize| Measured {
            p: points.values[i][0],
            work: 1.0,
            tau_s: points.times[i],
            computation: points.computations.get(i).copied(),
            lacks_cores: points.lacks.get(i).is_some_and(Option::is_some),
        };
        let all: Vec<Measured> = (0..points.len()).map(measured).collect();
        if let Some(wrong) = all.iter().position(|point| point.p <= 0.0) {
            return Err(RegressionError::RankCount {
                location: points.locations[wrong].clone(),
                variable: points.variables[0].clone(),
                value: all[wrong].p,
            });
        }
        let noise = points.excess.map(|excess| excess.mean);
        let evidence = Evidence::fit(&all, noise).ok_or_else(|| RegressionError::TooFewPoints {
            source_name: source_name.to_owned(),
            points: points.len(),
            required: MIN_POINTS,
            method: "evidence",
        })?;
        let terms = evidence.typical();
        let columns: Vec<String> =
            terms.iter().map(|(shape, _)| shape.expression(&points.variables[0])).collect();
        let basis = Basis::generated("evidence", &columns);
        let matrix = points.matrix(&basis)?;
        let coefficients: Vec<f64> = terms.iter().map(|(_, c)| *c).collect();
        let fitted = &matrix * nalgebra::DVector::from_column_slice(&coefficients);
        let fitted: Vec<f64> = fitted.iter().copied().collect();
        let off = |(time, fitted): (&f64, &f64)| (time / fitted - 1.0).powi(2);
        let squares: f64 = points.times.iter().zip(&fitted).map(off).sum();
        Ok(Self {
            label: String::new(),
            factor: 1.0,
            identifiability: Identifiability::analyse(&matrix, &points.times),
            basis,
            coefficients,
            // The typical curve has them all, so they count as selected whatever their share.
            support: terms.iter().map(|(shape, _)| evidence.share(*shape).max(SELECTED)).collect(),
            replica_share: None,
            spread: (squares / points.len() as f64).sqrt(),
            residual: options.residual,
            tie_moved: None,
            points,
            fitted,
            replicas: Vec::new(),
            evidence: Some(evidence),
        })
    }
}
