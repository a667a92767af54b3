//! The paper's Method 2: select in each variable apart, multiply the survivors, select again.

use super::{Basis, Method, Options, Part, Points, RegressionError};
use crate::models::expression::Expression;

/// Points that a slice needs for a fit in its one variable.
pub(super) const LEAST_IN_SLICE: usize = 3;

/// What the first step found.
#[derive(Debug, Clone)]
pub struct TwoStep {
    /// Survivors of each of the two variables, and in how many slices of how many each was selected.
    pub survivors: [Vec<(Expression, usize, usize)>; 2],
    /// Products of the survivors: the columns of the second selection.
    pub basis: Basis,
}

/// Finds the columns in each variable with the other fixed, and multiplies them.
///
/// Candidates of a variable are the columns of `basis` that have no other variable in them, or, where
/// there is none but a constant, the one-variable dictionary. A candidate survives where at least
/// half of the slices that have points enough select it; the constant always survives, for it stands
/// for all that the other variable does.
///
/// # Errors
/// A variable that the points do not have, no slice with at least 3 points, a fit that fails.
pub fn two_step(
    points: &Points,
    variables: [&str; 2],
    basis: Option<&Basis>,
    method: Method,
    source_name: &str,
) -> Result<TwoStep, RegressionError> {
    // The mean of candidates would keep nearly every column alive.
    let method = if method == Method::Robust { Method::Sparse } else { method };
    let first = survivors(points, variables, basis, method, source_name)?;
    let second = survivors(points, [variables[1], variables[0]], basis, method, source_name)?;
    let expressions = |found: &[(Expression, usize, usize)]| -> Vec<Expression> {
        found.iter().map(|(expression, _, _)| expression.clone()).collect()
    };
    let basis = Basis::product(&expressions(&first), &expressions(&second));
    Ok(TwoStep { survivors: [first, second], basis })
}

fn survivors(
    points: &Points,
    [variable, fixed]: [&str; 2],
    basis: Option<&Basis>,
    method: Method,
    source_name: &str,
) -> Result<Vec<(Expression, usize, usize)>, RegressionError> {
    let index = points.variables.iter().position(|name| name == variable).ok_or_else(|| {
        RegressionError::UnknownVariable {
            variable: variable.to_owned(),
            known: points.variables.clone(),
        }
    })?;
    let candidates = candidates(variable, &points.variables, basis);
    let others = fixed_with(points, index, fixed);
    let mut counts = vec![0; candidates.columns.len()];
    let mut slices = 0;
    for slice in slices_along(points, &others) {
        let mut part = points.select(&slice);
        // The other variables are constants of this slice.
        for &v in &others {
            part.constants.push((points.variables[v].clone(), points.values[slice[0]][v]));
        }
        part.variables = vec![variable.to_owned()];
        part.values = slice.iter().map(|&i| vec![points.values[i][index]]).collect();
        let options = Options { replicas: 0, ..Options::of(method) };
        let fit = Part::fit(&part, &candidates, &options, source_name)?;
        slices += 1;
        for (count, coefficient) in counts.iter_mut().zip(&fit.coefficients) {
            *count += usize::from(*coefficient != 0.0);
        }
    }
    if slices == 0 {
        return Err(RegressionError::FewValues {
            source_name: source_name.to_owned(),
            variable: variable.to_owned(),
        });
    }
    let found = candidates.columns.into_iter().zip(counts);
    Ok(found
        .filter(|(column, count)| column.text() == "1" || 2 * count >= slices)
        .map(|(column, count)| (column, count, slices))
        .collect())
}

/// The variables that stay the same along one: all others but those that follow it. Where P·Q is 64
/// everywhere, Q follows P.
fn fixed_with(points: &Points, index: usize, fixed: &str) -> Vec<usize> {
    let follows = |v: usize| {
        let mut values: Vec<(f64, f64)> =
            points.values.iter().map(|point| (point[index], point[v])).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        values.dedup();
        values.windows(2).all(|pair| pair[0].0 != pair[1].0)
    };
    let of = |v: &usize| *v != index && (points.variables[*v] == fixed || !follows(*v));
    (0..points.variables.len()).filter(of).collect()
}

/// Points that agree in these variables, at least [`LEAST_IN_SLICE`] of them.
fn slices_along(points: &Points, fixed: &[usize]) -> Vec<Vec<usize>> {
    let others = |i: usize| -> Vec<f64> { fixed.iter().map(|v| points.values[i][*v]).collect() };
    let mut slices: Vec<Vec<usize>> = Vec::new();
    for i in 0..points.len() {
        match slices.iter_mut().find(|slice| others(slice[0]) == others(i)) {
            Some(slice) => slice.push(i),
            None => slices.push(vec![i]),
        }
    }
    slices.retain(|slice| slice.len() >= LEAST_IN_SLICE);
    slices
}

fn candidates(variable: &str, variables: &[String], basis: Option<&Basis>) -> Basis {
    let own: Vec<Expression> = basis
        .map(|basis| {
            let only = |column: &&Expression| {
                let names = column.names();
                !variables.iter().any(|other| other != variable && names.contains(&other.as_str()))
            };
            basis.columns.iter().filter(only).cloned().collect()
        })
        .unwrap_or_default();
    let speaks = |column: &Expression| column.names().contains(&variable);
    let mut candidates = match own.iter().any(speaks) {
        true => Basis { name: "own columns".into(), columns: own },
        false => Basis::dictionary(&[variable.to_owned()], &[]),
    };
    if !candidates.columns.iter().any(|column| column.text() == "1")
        && let Ok(one) = Expression::parse("1")
    {
        candidates.columns.push(one);
    }
    candidates
}
