//! Turns a table of observations into points to fit, with the minimum of the repetitions of each.

use crate::models::evidence::Computation;
use crate::models::observations::{CHI_MIN_S, GAMMA_THREADS, Observations, P, SUM_GAMMA_S, TAU_S};

use super::error::RegressionError;
use super::points::{Excess, Points};

/// A condition on rows: `variable operator value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub variable: String,
    /// `<`, `<=`, `>`, `>=`, `==` or `!=`.
    pub operator: &'static str,
    /// The value that it is compared with.
    pub value: f64,
}

/// The text is not a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a condition; write one like p>1024 or N==20000")]
pub struct ConditionError {
    pub text: String,
}

impl Condition {
    /// Reads `p>1024`.
    ///
    /// # Errors
    /// The text has no operator, no column before it, or no finite number after it.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let wrong = || ConditionError { text: text.to_owned() };
        // The longer ones first, because `>=` contains `>`.
        for (written, operator) in [
            (">=", ">="),
            ("<=", "<="),
            ("==", "=="),
            ("!=", "!="),
            (">", ">"),
            ("<", "<"),
            ("=", "=="),
        ] {
            if let Some((name, value)) = text.split_once(written) {
                let value: f64 = value.trim().parse().map_err(|_| wrong())?;
                let variable = name.trim().to_owned();
                if variable.is_empty() || !value.is_finite() {
                    return Err(wrong());
                }
                return Ok(Self { variable, operator, value });
            }
        }
        Err(wrong())
    }

    /// Whether the condition holds for a value.
    pub fn holds(&self, value: f64) -> bool {
        match self.operator {
            "<" => value < self.value,
            "<=" => value <= self.value,
            ">" => value > self.value,
            ">=" => value >= self.value,
            "==" => value == self.value,
            _ => value != self.value,
        }
    }
}

/// The points of a table. Rows that agree in the variables are repetitions, of which the smallest
/// time counts. Without a response the points have no times, as points to predict.
///
/// # Errors
/// A column is missing, or holds something other than numbers (times: above 0).
pub fn points_from(
    table: &Observations,
    response: Option<&str>,
    variables: &[String],
    constants: &[(String, f64)],
) -> Result<Points, RegressionError> {
    let names: Vec<&str> = variables.iter().map(String::as_str).collect();
    let columns: Vec<Vec<f64>> =
        names.iter().map(|name| table.numbers(name)).collect::<Result<_, _>>()?;
    let times = response.map(|response| table.positive_numbers(response)).transpose()?;
    let mut points = Points {
        variables: variables.to_vec(),
        constants: constants.to_vec(),
        ..Points::default()
    };
    let computations = match response {
        Some(TAU_S) => computations(table)?,
        _ => None,
    };
    let mut repetitions: Vec<Vec<f64>> = Vec::new();
    for group in table.groups(&names)? {
        let row = match &times {
            Some(times) => {
                let row = group.smallest(times);
                points.times.push(times[row]);
                repetitions.push(group.rows.iter().map(|row| times[*row]).collect());
                row
            }
            None => group.rows[0],
        };
        points.values.push(columns.iter().map(|column| column[row]).collect());
        points.locations.push(table.location(row));
        points.lacks.push(table.rows()[row].lack);
        points.computations.extend(computations.as_ref().map(|all| all[row]));
    }
    points.excess = Excess::from_repetitions(repetitions.iter().map(Vec::as_slice));
    Ok(points)
}

/// Computation in every row; `None` where a column is missing or has gaps.
fn computations(table: &Observations) -> Result<Option<Vec<Computation>>, RegressionError> {
    if !table.has(P) || !table.has(SUM_GAMMA_S) {
        return Ok(None);
    }
    let (ranks, times) = (table.numbers(P)?, table.positive_numbers(TAU_S)?);
    let sums = table.known_numbers(SUM_GAMMA_S)?;
    let chi_min = table.has(CHI_MIN_S).then(|| table.known_numbers(CHI_MIN_S)).transpose()?;
    let threads = table.has(GAMMA_THREADS).then(|| table.numbers(GAMMA_THREADS)).transpose()?;
    let of = |row: usize| {
        let mean_s = sums[row]? / ranks[row] / threads.as_ref().map_or(1.0, |all| all[row]);
        let max_s = chi_min.as_ref().and_then(|all| all[row]).map(|chi_min| times[row] - chi_min);
        (mean_s > 0.0 && mean_s <= times[row] * 1.000_001).then_some(Computation { mean_s, max_s })
    };
    Ok((0..ranks.len()).map(of).collect())
}
