//! A table of observations comes in, points with the minimum of their repetitions go out.

use super::points::Excess;
use super::{Points, RegressionError};
use crate::models::Observations;

/// What `--holdout` says: rows where `variable operator value` holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Column.
    pub variable: String,
    /// `<`, `<=`, `>`, `>=`, `==` or `!=`.
    pub operator: &'static str,
    /// What it is compared with.
    pub value: f64,
}

impl Condition {
    /// Reads `p>1024`.
    ///
    /// # Errors
    /// A sentence that says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no condition; write one like p>1024 or N==20000");
        // The longer ones first: `>=` holds `>`.
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

    /// Whether it holds.
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

/// Points of a table: rows that agree in the variables are repetitions, and the smallest time of
/// them counts. Without a response there are no times (points to predict).
///
/// # Errors
/// A column that is missing or holds something else than numbers (times: above 0).
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
        points.places.push(table.place(row));
    }
    points.excess = Excess::of(repetitions.iter().map(Vec::as_slice));
    Ok(points)
}
