//! Reads Extra-P's tables as [`Observations`].

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::names::{TIME, WHOLE};
use crate::models::observations::{Observations, ObservationsError, Origin, REP, Row};

/// One value of the file.
struct Sample {
    line: u64,
    point: Vec<String>,
    region: String,
    metric: String,
    value: String,
}

#[derive(Deserialize)]
struct Line {
    params: serde_json::Map<String, Value>,
    #[serde(default)]
    callpath: Option<String>,
    #[serde(default)]
    metric: Option<String>,
    value: Value,
}

/// Reads Extra-P's text format (`PARAMETER`, `POINTS`, `REGION`, `METRIC`, `DATA`).
///
/// # Errors
/// A line with another keyword, or `DATA` without a point; see [`Observations::new`].
pub fn from_text(source: impl Into<String>, text: &str) -> Result<Observations, ObservationsError> {
    let source = source.into();
    let mut parameters: Vec<String> = Vec::new();
    let mut points: Vec<Vec<String>> = Vec::new();
    let (mut region, mut metric) = (WHOLE.to_owned(), TIME.to_owned());
    let mut next = 0;
    let mut samples = Vec::new();
    for (index, whole) in text.lines().enumerate() {
        let line = index as u64 + 1;
        let wrong =
            |what: String| ObservationsError::Syntax { source_name: source.clone(), line, what };
        let content = whole.split('#').next().unwrap_or("").trim();
        if content.is_empty() {
            continue;
        }
        let (keyword, rest) = content.split_once(char::is_whitespace).unwrap_or((content, ""));
        match keyword.to_ascii_uppercase().as_str() {
            "PARAMETER" => parameters.push(rest.trim().to_owned()),
            "REGION" => (region, next) = (rest.trim().to_owned(), 0),
            "METRIC" => (metric, next) = (rest.trim().to_owned(), 0),
            "POINTS" | "POINT" => {
                let words: Vec<&str> = rest
                    .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','))
                    .filter(|word| !word.is_empty())
                    .collect();
                let width = parameters.len();
                if width == 0 {
                    return Err(wrong("POINTS before any PARAMETER".into()));
                }
                if !words.len().is_multiple_of(width) {
                    return Err(wrong(format!(
                        "POINTS has {} numbers, not a multiple of the {width} parameters",
                        words.len()
                    )));
                }
                let chunk = |chunk: &[&str]| chunk.iter().map(|w| (*w).to_owned()).collect();
                points.extend(words.chunks(width).map(chunk));
            }
            "DATA" => {
                let Some(point) = points.get(next) else {
                    return Err(wrong(format!(
                        "DATA of region {region}, metric {metric} has more lines than the {} \
                         points",
                        points.len()
                    )));
                };
                next += 1;
                samples.extend(rest.split_whitespace().map(|value| Sample {
                    line,
                    point: point.clone(),
                    region: region.clone(),
                    metric: metric.clone(),
                    value: value.to_owned(),
                }));
            }
            _ => {
                return Err(wrong(format!(
                    "begins with {keyword:?}; Extra-P's text has PARAMETER, POINTS, REGION, \
                     METRIC and DATA"
                )));
            }
        }
    }
    table(source, parameters, &samples)
}

/// Reads Extra-P's JSON lines: one object per line with `params`, `value` and optionally
/// `callpath`, `metric`.
///
/// # Errors
/// A line that is not such an object, or has other parameters than the first line; see
/// [`Observations::new`].
pub fn from_json_lines(
    source: impl Into<String>,
    text: &str,
) -> Result<Observations, ObservationsError> {
    let source = source.into();
    let mut parameters: Vec<String> = Vec::new();
    let mut samples = Vec::new();
    for (index, content) in text.lines().enumerate() {
        if content.trim().is_empty() {
            continue;
        }
        let line = index as u64 + 1;
        let wrong =
            |what: String| ObservationsError::Syntax { source_name: source.clone(), line, what };
        let found: Line = serde_json::from_str(content).map_err(|error| {
            wrong(format!("is not an object with params and value (Extra-P JSON lines): {error}"))
        })?;
        if samples.is_empty() {
            parameters = found.params.keys().cloned().collect();
        }
        if found.params.len() != parameters.len()
            || !parameters.iter().all(|name| found.params.contains_key(name))
        {
            return Err(wrong(format!(
                "params are not those of the first line, {}",
                parameters.join(", ")
            )));
        }
        let values = match &found.value {
            Value::Array(values) => values.clone(),
            one => vec![one.clone()],
        };
        for value in values {
            samples.push(Sample {
                line,
                point: parameters.iter().map(|name| cell_text(&found.params[name])).collect(),
                region: found.callpath.clone().unwrap_or_else(|| WHOLE.to_owned()),
                metric: found.metric.clone().unwrap_or_else(|| TIME.to_owned()),
                value: cell_text(&value),
            });
        }
    }
    table(source, parameters, &samples)
}

/// Formats a number or text as a cell.
fn cell_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Arranges samples as a table: a row per point and repetition, a column per region and metric.
fn table(
    source: String,
    parameters: Vec<String>,
    samples: &[Sample],
) -> Result<Observations, ObservationsError> {
    if samples.is_empty() {
        return Err(ObservationsError::NoRows { source_name: source });
    }
    let mut series: Vec<(&str, &str)> = Vec::new();
    for sample in samples {
        let of = (sample.region.as_str(), sample.metric.as_str());
        if !series.contains(&of) {
            series.push(of);
        }
    }
    let one_region = series.iter().all(|(region, _)| *region == series[0].0);
    let width = parameters.len();
    let mut names = parameters;
    names.push(REP.to_owned());
    names.extend(series.iter().map(|(region, metric)| match one_region {
        true => (*metric).to_owned(),
        false => format!("{region}/{metric}"),
    }));
    let mut order: Vec<Vec<String>> = Vec::new();
    let mut rows: BTreeMap<(usize, usize), Row> = BTreeMap::new();
    let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for sample in samples {
        let point = order.iter().position(|point| *point == sample.point).unwrap_or_else(|| {
            order.push(sample.point.clone());
            order.len() - 1
        });
        let of = (sample.region.as_str(), sample.metric.as_str());
        let column = series.iter().position(|other| *other == of).unwrap_or(0);
        let rep = counts.entry((point, column)).or_insert(0);
        *rep += 1;
        let row = rows.entry((point, *rep)).or_insert_with(|| {
            let mut cells = sample.point.clone();
            cells.push(rep.to_string());
            cells.resize(width + 1 + series.len(), String::new());
            let (origin, ranks) = (Origin::Line(sample.line), Vec::new());
            Row { origin, cells, ranks, lack: None }
        });
        row.cells[width + 1 + column].clone_from(&sample.value);
    }
    Observations::new(source, names, rows.into_values().collect())
}
