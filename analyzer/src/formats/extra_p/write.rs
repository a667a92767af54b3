//! Writes [`Observations`] as Extra-P's tables.

use std::fmt::Write as _;

use serde_json::Value;

use super::names::WHOLE;
use crate::models::observations::{Observations, ObservationsError};

/// Writes the repetitions of each configuration as Extra-P's text.
///
/// # Errors
/// A column is missing or has cells that are not numbers.
pub fn text(
    table: &Observations,
    parameters: &[&str],
    metric: &str,
) -> Result<String, ObservationsError> {
    let times = table.numbers(metric)?;
    let groups = table.groups(parameters)?;
    let mut text = String::new();
    for parameter in parameters {
        let _ = writeln!(text, "PARAMETER {parameter}");
    }
    text.push_str("\nPOINTS");
    for group in &groups {
        let point = group.key.join(" ");
        let _ = match parameters.len() {
            1 => write!(text, " {point}"),
            _ => write!(text, " ( {point} )"),
        };
    }
    let _ = writeln!(text, "\n\nREGION {WHOLE}\nMETRIC {metric}");
    for group in &groups {
        text.push_str("DATA");
        for &row in &group.rows {
            let _ = write!(text, " {}", times[row]);
        }
        text.push('\n');
    }
    Ok(text)
}

/// Writes the rows as Extra-P's JSON lines.
///
/// # Errors
/// A column is missing or has cells that are not numbers.
pub fn json_lines(
    table: &Observations,
    parameters: &[&str],
    metric: &str,
) -> Result<String, ObservationsError> {
    let times = table.numbers(metric)?;
    let columns: Vec<Vec<f64>> =
        parameters.iter().map(|name| table.numbers(name)).collect::<Result<_, _>>()?;
    let mut text = String::new();
    for (row, time) in times.iter().enumerate() {
        let params: serde_json::Map<String, Value> = parameters
            .iter()
            .zip(&columns)
            .map(|(name, column)| ((*name).to_owned(), number(column[row])))
            .collect();
        let line = serde_json::json!({
            "params": params, "callpath": WHOLE, "metric": metric, "value": time,
        });
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

/// Converts whole numbers to JSON integers.
fn number(value: f64) -> Value {
    match value.fract() == 0.0 && value.abs() < 9e15 {
        true => Value::from(value as i64),
        false => Value::from(value),
    }
}
