//! Regression for prediction (Orii et al.): fits a [`Model`] with the columns of a [`Basis`] to
//! [`Points`].
//!
//! y(x) = Σ a_k f_k(x) with a ≥ 0. Columns are scaled before anything is solved. Residuals are
//! relative unless the method comes from Orii et al. The fit reports which columns the points
//! cannot tell apart ([`Identifiability`]), and every prediction carries the interval of its
//! bootstrap replicas.
//!
//! | module | what it does |
//! |---|---|
//! | `points`, `basis` | the points to fit and the columns to fit them with |
//! | `method` | one name per method; `robust`, `candidates`, `nonnegative`, `lasso`, `linear_program` and `face` do the work on a scaled `problem` |
//! | `by_evidence` | fits where the rank count is the only variable |
//! | `bootstrap` | replicas and intervals |
//! | `choice` | judges methods and models by how well they extrapolate within the data |
//! | `two_step` | Method 2 of Orii et al. |
//! | `from_table` | turns a table of observations into points |

mod basis;
mod bootstrap;
mod by_evidence;
mod candidates;
mod choice;
mod error;
mod face;
mod findings;
mod fit_quality;
mod from_table;
mod lasso;
mod linear_program;
mod method;
mod model;
mod nonnegative;
mod points;
mod problem;
mod robust;
mod two_step;

use nalgebra::{DMatrix, DVector};

use crate::models::evidence::Forecast;

pub use basis::{Basis, BasisError, is_rank_count};
pub use choice::{Comparison, HeldBack, Score, choose, compare, inner_splits};
pub use error::RegressionError;
pub use findings::{Findings, HeldOut, Term};
pub use fit_quality::FitQuality;
pub use from_table::{Condition, ConditionError, points_from};
pub use method::Method;
pub use model::{Model, Options, Part, Prediction, PredictionWarning, SELECTED};
pub use points::{Excess, Identifiability, Points};
pub use problem::Residual;
pub use two_step::{FirstStep, TwoStep, two_step};

/// Largest misfit ([`FitQuality::misfit`]) with which a model predicts.
const MAX_MISFIT: f64 = 0.3;

impl Part {
    /// Fits one part.
    ///
    /// # Errors
    /// Undefined names, functions without a value, constant variables, too few points, or a solver
    /// that gives up.
    pub fn fit(
        points: &Points,
        basis: &Basis,
        options: &Options,
        source_name: &str,
    ) -> Result<Self, RegressionError> {
        let points = points.sorted();
        let matrix = points.matrix(basis)?;
        check(&points, basis, options.method, source_name)?;
        let found = method::fit(options.method, options.residual, &matrix, &points.times, None)?;
        let coefficients = DVector::from_vec(found.values);
        let times =
            |values: &DVector<f64>| -> Vec<f64> { (&matrix * values).iter().copied().collect() };
        let fitted = times(&coefficients);
        let source = |fitted, spread, selects| bootstrap::Source { fitted, spread, selects };
        let mut sources = vec![source(fitted.clone(), found.spread, true)];
        if options.method == Method::Robust && options.replicas > 0 {
            let all = Some(method::ReplicaColumns::All);
            let all = method::fit(options.method, options.residual, &matrix, &points.times, all)?;
            sources.push(source(times(&DVector::from_vec(all.values)), all.spread, false));
        }
        // Replicas of the linear program scatter less than its predictions err, so there are none.
        let number = if options.method == Method::Minimax { 0 } else { options.replicas };
        let replicas = bootstrap::replicas(
            options.method,
            options.residual,
            &matrix,
            &sources,
            points.excess,
            (number, options.seed),
        );
        let replica_share = (!replicas.is_empty()).then(|| {
            let selecting: Vec<&bootstrap::Replica> =
                replicas.iter().filter(|r| r.selected).collect();
            let with = |j: usize| selecting.iter().filter(|r| r.support[j] >= SELECTED).count();
            (0..basis.columns.len()).map(|j| with(j) as f64 / selecting.len() as f64).collect()
        });
        Ok(Self {
            label: String::new(),
            factor: 1.0,
            basis: basis.clone(),
            identifiability: Identifiability::analyse(&matrix, &points.times),
            coefficients: coefficients.iter().copied().collect(),
            support: found.support,
            replica_share,
            spread: found.spread,
            residual: options.residual,
            tie_moved: found.moved,
            points,
            fitted,
            replicas,
            evidence: None,
        })
    }
}

impl Part {
    /// Seconds of every replica at a point, whose columns are row `i` of `matrix`.
    fn replica_times(&self, values: &[f64], matrix: &DMatrix<f64>, i: usize) -> Vec<f64> {
        if let Some(evidence) = &self.evidence {
            let times = evidence.times(values[0], 1.0);
            return times.into_iter().map(|time| self.factor * time).collect();
        }
        // The columns of a dictionary only resemble the true ones, so their error grows with the
        // distance.
        let growth = match self.basis.is_generic() {
            true => bootstrap::FORM_GROWTH * self.doublings_outside(values).sqrt(),
            false => 0.0,
        };
        let deviates = bootstrap::deviates(self.replicas.len());
        let pairs = self.replicas.iter().zip(deviates);
        let time = |(replica, z): (&bootstrap::Replica, f64)| {
            self.factor * matrix.row(i).tr_dot(&replica.coefficients) * (growth * z).exp()
        };
        pairs.map(time).collect()
    }

    /// Doublings or halvings from the measured ranges to a point, summed over all variables.
    fn doublings_outside(&self, values: &[f64]) -> f64 {
        let of = |(v, value): (usize, &f64)| {
            let measured = || self.points.values.iter().map(|point| point[v]);
            let largest = measured().fold(f64::NEG_INFINITY, f64::max);
            let smallest = measured().fold(f64::INFINITY, f64::min);
            match *value {
                value if value > largest && largest > 0.0 => (value / largest).log2(),
                value if value < smallest && value > 0.0 => (smallest / value).log2(),
                _ => 0.0,
            }
        };
        values.iter().enumerate().map(of).sum()
    }
}

fn check(
    points: &Points,
    basis: &Basis,
    method: Method,
    source_name: &str,
) -> Result<(), RegressionError> {
    let required = match method {
        Method::Lsm => basis.columns.len().max(3),
        _ => 3,
    };
    if points.len() < required {
        return Err(RegressionError::TooFewPoints {
            source_name: source_name.to_owned(),
            points: points.len(),
            required,
            method: method.name(),
        });
    }
    for (v, variable) in points.variables.iter().enumerate() {
        let first = points.values[0][v];
        if points.values.iter().all(|point| point[v] == first) {
            return Err(RegressionError::ConstantVariable {
                source_name: source_name.to_owned(),
                variable: variable.clone(),
                value: first,
            });
        }
    }
    Ok(())
}

impl Model {
    /// A model of one part.
    pub fn from_part(part: Part, method: Method) -> Self {
        Self { method, parts: vec![part] }
    }

    /// The model's times at points, seconds.
    ///
    /// # Errors
    /// A function has no value at a point.
    pub fn times_at(&self, points: &Points) -> Result<Vec<f64>, RegressionError> {
        let mut times = DVector::zeros(points.len());
        for part in &self.parts {
            let coefficients = DVector::from_column_slice(&part.coefficients);
            times += points.matrix(&part.basis)? * coefficients * part.factor;
        }
        Ok(times.iter().copied().collect())
    }

    /// Predicts at new points.
    ///
    /// # Errors
    /// A function has no value at a point.
    pub fn predict(&self, points: &Points) -> Result<Vec<Prediction>, RegressionError> {
        let matrices: Vec<DMatrix<f64>> =
            self.parts.iter().map(|part| points.matrix(&part.basis)).collect::<Result<_, _>>()?;
        let times = self.times_at(points)?;
        let poor = Some(FitQuality::measure(self).misfit).filter(|misfit| *misfit > MAX_MISFIT);
        let at = |i: usize| {
            let mut warnings = self.distance(&points.values[i]);
            if let Some(misfit) = poor {
                warnings.push(PredictionWarning::PoorFit(misfit));
                let values = points.values[i].clone();
                return Prediction { values, value: None, lo: None, hi: None, warnings };
            }
            for (part, matrix) in self.parts.iter().zip(&matrices) {
                let row: Vec<f64> = matrix.row(i).iter().copied().collect();
                let few = part.basis.columns.len() <= part.points.len();
                if few && part.identifiability.undecided(&row) > 1e-6 {
                    warnings.push(PredictionWarning::Undecided);
                }
            }
            let parts = self.parts.iter().zip(&matrices);
            let of_parts: Vec<Vec<f64>> = parts
                .map(|(part, matrix)| part.replica_times(&points.values[i], matrix, i))
                .collect();
            let replicas = of_parts.iter().map(Vec::len).min().unwrap_or(0);
            let mut values: Vec<f64> =
                (0..replicas).map(|r| of_parts.iter().map(|times| times[r]).sum()).collect();
            let interval = bootstrap::interval(&mut values);
            let positive = |value: f64| (value > 0.0).then_some(value);
            let mut value = positive(times[i]);
            let (mut lo, mut hi) = (None, None);
            if value.is_none() {
                warnings.push(PredictionWarning::NotPositive);
            } else if let Some((low, high)) = interval {
                (lo, hi) = (positive(low), positive(high));
                if lo.is_none() {
                    warnings.push(PredictionWarning::IntervalBelowZero);
                }
                let forecast = Forecast { tau_s: times[i], lo_s: low, hi_s: high };
                if self.parts.iter().any(|part| part.evidence.is_some()) && forecast.is_too_wide() {
                    value = None;
                    warnings.push(PredictionWarning::TooWide);
                }
            }
            Prediction { values: points.values[i].clone(), value, lo, hi, warnings }
        };
        Ok((0..points.len()).map(at).collect())
    }

    /// The method that found the coefficients, as named on the command line.
    pub fn method_name(&self) -> &'static str {
        match self.parts.iter().all(|part| part.evidence.is_some()) {
            true => "evidence",
            false => self.method.name(),
        }
    }

    /// One warning for each variable that lies outside its measured range.
    fn distance(&self, values: &[f64]) -> Vec<PredictionWarning> {
        let mut warnings = Vec::new();
        let Some(part) = self.parts.first() else { return warnings };
        for (v, name) in part.points.variables.iter().enumerate() {
            let measured = || self.parts.iter().flat_map(|p| p.points.values.iter().map(|x| x[v]));
            let largest = measured().fold(f64::NEG_INFINITY, f64::max);
            let smallest = measured().fold(f64::INFINITY, f64::min);
            let value = values[v];
            if value > largest && largest > 0.0 {
                warnings.push(PredictionWarning::Beyond {
                    variable: name.clone(),
                    times: value / largest,
                    assumes_regime: part.evidence.is_some(),
                });
            } else if value < smallest && value > 0.0 {
                let times = smallest / value;
                warnings.push(PredictionWarning::Below { variable: name.clone(), times });
            }
        }
        warnings
    }
}

#[cfg(test)]
mod tests;
