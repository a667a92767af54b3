//! Method 2 of Orii et al.: select columns in each variable separately, multiply the survivors, and
//! select again.

use crate::models::expression::Expression;

use super::basis::Basis;
use super::error::{MIN_SLICE_POINTS, RegressionError};
use super::method::Method;
use super::model::{Options, Part};
use super::points::Points;

/// Minimum number of points in a slice, to weigh columns by AICc. With fewer points it leaves no
/// room for a second column, whatever the data; non-negative least squares selects as well.
const MIN_POINTS_FOR_AICC: usize = 6;

/// Result of the first step.
#[derive(Debug, Clone)]
pub struct TwoStep {
    /// The first step in each of the two variables.
    pub variables: [FirstStep; 2],
    /// Products of the survivors, the columns of the second step.
    pub basis: Basis,
}

/// Columns selected in one variable.
#[derive(Debug, Clone)]
pub struct FirstStep {
    pub variable: String,
    /// Whether the candidates were the dictionary's, not columns of the basis.
    pub dictionary: bool,
    /// Surviving columns: in how many slices each was selected, and out of how many.
    pub survivors: Vec<(Expression, usize, usize)>,
}

/// Selects the columns in each variable with the other fixed, and multiplies them.
///
/// The candidates of a variable are the columns of `basis` that contain no other variable. If these
/// are only constants, or if other columns contain the variable beside another one (as most of
/// `hpl` do), they say too little of the variable alone, and the one-variable dictionary is used. A
/// candidate survives if at least half of the slices with enough points select it. The constant
/// always survives, because it represents the effect of the other variable alone.
///
/// # Errors
/// The points lack a variable, no slice has at least 3 points, or a fit fails.
pub fn two_step(
    points: &Points,
    variables: [&str; 2],
    basis: Option<&Basis>,
    method: Method,
    source_name: &str,
) -> Result<TwoStep, RegressionError> {
    // With the mean of the candidates, nearly every column would survive.
    let method = if method == Method::Robust { Method::Sparse } else { method };
    let first = first_step(points, variables, basis, method, source_name)?;
    let second = first_step(points, [variables[1], variables[0]], basis, method, source_name)?;
    let expressions = |step: &FirstStep| -> Vec<Expression> {
        step.survivors.iter().map(|(expression, _, _)| expression.clone()).collect()
    };
    let basis = Basis::product(&expressions(&first), &expressions(&second));
    Ok(TwoStep { variables: [first, second], basis })
}

fn first_step(
    points: &Points,
    [variable, fixed]: [&str; 2],
    basis: Option<&Basis>,
    method: Method,
    source_name: &str,
) -> Result<FirstStep, RegressionError> {
    let index = points.variables.iter().position(|name| name == variable).ok_or_else(|| {
        RegressionError::UnknownVariable {
            variable: variable.to_owned(),
            known: points.variables.clone(),
        }
    })?;
    let own = basis.and_then(|basis| own_columns(variable, &points.variables, basis));
    let dictionary = own.is_none();
    let candidates = candidates(variable, own);
    let others = fixed_with(points, index, fixed);
    let mut counts = vec![0; candidates.columns.len()];
    let mut slices = 0;
    for slice in slices_along(points, &others) {
        let mut part = points.select(&slice);
        // The other variables are constant in this slice.
        for &v in &others {
            part.constants.push((points.variables[v].clone(), points.values[slice[0]][v]));
        }
        part.variables = vec![variable.to_owned()];
        part.values = slice.iter().map(|&i| vec![points.values[i][index]]).collect();
        let method = match method {
            Method::Sparse if slice.len() < MIN_POINTS_FOR_AICC => Method::Nnls,
            method => method,
        };
        let options = Options { replicas: 0, ..Options::for_method(method) };
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
    let survivors = found
        .filter(|(column, count)| column.text() == "1" || 2 * count >= slices)
        .map(|(column, count)| (column, count, slices))
        .collect();
    Ok(FirstStep { variable: variable.to_owned(), dictionary, survivors })
}

/// The variables that stay fixed while one varies: all others except those that are functions of
/// it. Where P·Q is 64 everywhere, Q is a function of P.
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

/// Groups of at least [`MIN_SLICE_POINTS`] points that agree in these variables.
fn slices_along(points: &Points, fixed: &[usize]) -> Vec<Vec<usize>> {
    let others = |i: usize| -> Vec<f64> { fixed.iter().map(|v| points.values[i][*v]).collect() };
    let mut slices: Vec<Vec<usize>> = Vec::new();
    for i in 0..points.len() {
        match slices.iter_mut().find(|slice| others(slice[0]) == others(i)) {
            Some(slice) => slice.push(i),
            None => slices.push(vec![i]),
        }
    }
    slices.retain(|slice| slice.len() >= MIN_SLICE_POINTS);
    slices
}

/// The columns of a basis that contain no variable but this one; `None` if that is not all that the
/// basis says of it.
fn own_columns(variable: &str, variables: &[String], basis: &Basis) -> Option<Vec<Expression>> {
    let has_variable = |column: &Expression| column.names().contains(&variable);
    let has_other = |column: &Expression| {
        let names = column.names();
        variables.iter().any(|other| other != variable && names.contains(&other.as_str()))
    };
    let mixed = basis.columns.iter().any(|column| has_variable(column) && has_other(column));
    let own: Vec<Expression> =
        basis.columns.iter().filter(|column| !has_other(column)).cloned().collect();
    (!mixed && own.iter().any(has_variable)).then_some(own)
}

fn candidates(variable: &str, own: Option<Vec<Expression>>) -> Basis {
    let mut candidates = match own {
        Some(columns) => Basis { name: "own columns".into(), columns },
        None => Basis::dictionary(&[variable.to_owned()], &[]),
    };
    if !candidates.columns.iter().any(|column| column.text() == "1")
        && let Ok(one) = Expression::parse("1")
    {
        candidates.columns.push(one);
    }
    candidates
}
