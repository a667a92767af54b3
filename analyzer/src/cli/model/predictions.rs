//! Implements `--remember` of `gammachi model`: what it predicts is written to the ledger.

use crate::cli::error::CommandError;
use crate::cli::remember::NewPrediction;
use crate::ledger::Subject;
use crate::models::Observations;
use crate::models::observations::P;
use crate::models::regression::Findings;
use crate::models::scaling::{AtProblemSize, label};

use super::request::Request;
use super::structure::Variables;

/// The points that were predicted and have not been measured.
///
/// # Errors
/// Failure: all predicted points have been measured already.
pub(super) fn predictions(
    findings: &Findings,
    structure: &[AtProblemSize],
    request: &Request,
    (table, subjects): (&Observations, &[Subject]),
) -> Result<Vec<NewPrediction>, CommandError> {
    let shared = Subject::shared(subjects);
    let mut all = Vec::new();
    for predicted in &findings.predictions {
        let believed = Variables::of(request).and_then(|variables| {
            let (p, size) = variables.point(predicted)?;
            let is_there = |of: &&AtProblemSize| of.size.as_ref().map(|(_, value)| *value) == size;
            structure.iter().find(is_there)?.structure.as_ref().ok()?.believed(p)
        });
        let (seconds, interval_s) = match believed {
            Some(believed) => (believed.tau_s, Some(believed.interval_s)),
            None => (predicted.value, predicted.lo.zip(predicted.hi)),
        };
        // Only an interval is known.
        let Some(seconds) = seconds else { continue };
        let values = request.variables.iter().zip(&predicted.values);
        let point: Vec<(String, String)> =
            values.map(|(name, value)| (name.clone(), value.to_string())).collect();
        if is_measured(table, &point)? {
            continue;
        }
        let mut subject = shared.clone();
        for name in table.parameters() {
            // Columns that are modelled are not parameters here.
            if request.parts.iter().any(|part| part.response == name) {
                continue;
            }
            match value_of(table, name, &point)? {
                Some(value) => subject.params.push((name.to_owned(), value)),
                None => subject.open.push(name.to_owned()),
            }
        }
        if table.has(P) {
            subject.p = value_of(table, P, &point)?.and_then(|p| p.parse().ok());
        }
        all.push(NewPrediction {
            question: label(&point),
            subject,
            quantity: request.parts.iter().map(|part| part.response.clone()).collect(),
            seconds,
            interval_s,
        });
    }
    match all.is_empty() {
        false => Ok(all),
        true => Err(CommandError::input(
            "--remember: all that was asked for is measured already, or only its interval is known",
        )),
    }
}

/// The value of a column at a point: given by the point, or the same in all rows.
fn value_of(
    table: &Observations,
    name: &str,
    point: &[(String, String)],
) -> Result<Option<String>, CommandError> {
    if let Some((_, value)) = point.iter().find(|(variable, _)| variable == name) {
        return Ok(Some(value.clone()));
    }
    let texts = table.texts(name)?;
    let first = texts.first().copied().unwrap_or_default();
    Ok(texts.iter().all(|text| *text == first).then(|| first.to_owned()))
}

/// Whether a row of the table measures this point.
fn is_measured(table: &Observations, point: &[(String, String)]) -> Result<bool, CommandError> {
    let mut rows: Vec<usize> = (0..table.rows().len()).collect();
    for (name, value) in point {
        let numbers = table.known_numbers(name)?;
        rows.retain(|row| numbers[*row] == value.parse().ok());
    }
    Ok(!rows.is_empty())
}
