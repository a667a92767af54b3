//! Published tables, and properties that must hold for any data.

mod against_enumeration;
mod invariance;
mod published;

use super::model::{Model, Options, Part};
use super::{Basis, Method, Points};
use crate::statistics::{median, normal, quantile};

/// Points of two or more variables on a grid, in the order of the names.
fn grid(variables: &[(&str, &[f64])], constants: &[(&str, f64)]) -> Points {
    let mut values: Vec<Vec<f64>> = vec![Vec::new()];
    for (_, levels) in variables {
        values = values
            .iter()
            .flat_map(|point| levels.iter().map(|level| [point.as_slice(), &[*level]].concat()))
            .collect();
    }
    Points {
        variables: variables.iter().map(|(name, _)| (*name).to_owned()).collect(),
        constants: constants.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        locations: (0..values.len()).map(|i| format!("line {}", i + 2)).collect(),
        values,
        ..Points::default()
    }
}

/// The same points, with the times that these coefficients give.
fn timed(mut points: Points, basis: &Basis, coefficients: &[f64]) -> Points {
    let matrix = points.matrix(basis).expect("columns have values");
    let times = matrix * nalgebra::DVector::from_column_slice(coefficients);
    points.times = times.iter().copied().collect();
    points
}

fn fit(points: &Points, basis: &Basis, method: Method) -> Part {
    let options = Options { replicas: 0, ..Options::for_method(method) };
    Part::fit(points, basis, &options, "test").expect("it can be fitted")
}

fn predict(part: &Part, method: Method, at: &Points) -> Vec<f64> {
    Model::from_part(part.clone(), method).times_at(at).expect("columns have values")
}
