//! Chooses between methods and between models by how well each extrapolates within the data: each
//! is fitted to the small configurations and predicts the large ones.

use std::sync::Arc;

use serde::Serialize;

use super::basis::Basis;
use super::error::RegressionError;
use super::method::Method;
use super::model::{Model, Options, Part};
use super::points::Points;
use crate::statistics::nearest_rank;

/// How well a method or model extrapolates: relative errors at points that were held back.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Score {
    /// Name of the method or model.
    pub name: String,
    /// Median of |predicted/measured − 1|; `None` where it could not be fitted.
    pub median: Option<f64>,
    /// Its 95th percentile.
    pub p95: Option<f64>,
    /// Its largest value.
    #[serde(rename = "max")]
    pub largest: Option<f64>,
    /// Why it could not be fitted.
    #[serde(skip)]
    pub failure: Option<Arc<RegressionError>>,
}

/// Which points were held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBack {
    /// Those named by the user.
    Named,
    /// Those with the largest values of each variable in turn.
    Largest,
}

/// Scores of several methods or models on the same points.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Which points were held back.
    pub what: HeldBack,
    /// Number of points held back, over all splits.
    pub held: usize,
    /// In the order of the methods or models compared.
    pub scores: Vec<Score>,
}

/// A split of the points: indices to fit, and indices to predict.
type Split = (Vec<usize>, Vec<usize>);

/// Splits that hold back the largest, or the two largest, values of one variable. At least three
/// values, four points, and as many points as are held back must remain.
pub fn inner_splits(points: &Points) -> Vec<Split> {
    let mut splits = Vec::new();
    for v in 0..points.variables.len() {
        let mut levels: Vec<f64> = points.values.iter().map(|point| point[v]).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        for held in 1..=2usize {
            if levels.len() < 3 + held {
                continue;
            }
            let limit = levels[levels.len() - held];
            let (large, small): (Vec<usize>, Vec<usize>) =
                (0..points.len()).partition(|&i| points.values[i][v] >= limit);
            if small.len() >= 4 && small.len() >= large.len() {
                splits.push((small, large));
            }
        }
    }
    splits
}

fn score(name: &str, points: &Points, splits: &[Split], basis: &Basis, method: Method) -> Score {
    let options = Options { replicas: 0, ..Options::for_method(method) };
    let mut errors = Vec::new();
    let mut failure = None;
    for (fit, held) in splits {
        let outcome = Part::fit(&points.select(fit), basis, &options, "the small configurations")
            .and_then(|part| Model::from_part(part, method).times_at(&points.select(held)));
        match outcome {
            Ok(times) => {
                let pairs = times.iter().zip(held);
                errors.extend(pairs.map(|(time, &i)| (time / points.times[i] - 1.0).abs()));
            }
            Err(error) => failure = Some(Arc::new(error)),
        }
    }
    errors.sort_by(f64::total_cmp);
    let at = |share| nearest_rank(&errors, share).filter(|_| failure.is_none());
    Score { name: name.to_owned(), median: at(0.5), p95: at(0.95), largest: at(1.0), failure }
}

/// Compares all methods with the same columns on held-back points: `held` if the user named some,
/// else the largest configurations within the data.
///
/// # Errors
/// Nothing can be held back.
pub fn compare(
    fit: &Points,
    held: Option<&Points>,
    basis: &Basis,
) -> Result<Comparison, RegressionError> {
    let (points, splits, what) = match held {
        Some(held) => {
            let mut all = fit.clone();
            all.values.extend(held.values.iter().cloned());
            all.times.extend(&held.times);
            all.locations.extend(held.locations.iter().cloned());
            // Methods that fit columns do not use them.
            all.computations.clear();
            all.lacks.clear();
            let split = ((0..fit.len()).collect(), (fit.len()..all.len()).collect());
            (all, vec![split], HeldBack::Named)
        }
        None => {
            let splits = inner_splits(fit);
            (fit.clone(), splits, HeldBack::Largest)
        }
    };
    if splits.is_empty() {
        return Err(RegressionError::NothingToHoldBack);
    }
    let scores = Method::ALL
        .into_iter()
        .map(|method| score(method.name(), &points, &splits, basis, method))
        .collect();
    let held = splits.iter().map(|(_, held)| held.len()).sum();
    Ok(Comparison { what, held, scores })
}

/// Compares models and returns the index of the chosen one: the first, unless the best model's
/// median error is less than two thirds of the first's. `None` where nothing can be held back.
pub fn choose(points: &Points, bases: &[Basis], method: Method) -> Option<(usize, Comparison)> {
    let splits = inner_splits(points);
    if splits.is_empty() || bases.is_empty() {
        return None;
    }
    let scores: Vec<Score> =
        bases.iter().map(|basis| score(&basis.name, points, &splits, basis, method)).collect();
    let error = |index: usize| scores[index].median.unwrap_or(f64::INFINITY);
    let best = (0..scores.len()).min_by(|&i, &j| error(i).total_cmp(&error(j)))?;
    let chosen = if error(best) < 2.0 / 3.0 * error(0) { best } else { 0 };
    let held = splits.iter().map(|(_, held)| held.len()).sum();
    Some((chosen, Comparison { what: HeldBack::Largest, held, scores }))
}
