//! The JSON document of `gammachi model`; `docs/reference/predictions-json.md` explains its keys.

use serde_json::{Map, Value, json};

use crate::models::regression::{Comparison, Findings, Points, Prediction, Residual};

use super::words::{contradictions, error_sentence, held_back, warnings};

/// The document, with a newline at its end.
pub fn json(findings: &Findings) -> String {
    let mut text = format!("{:#}", document(findings));
    text.push('\n');
    text
}

fn document(findings: &Findings) -> Value {
    let model = &findings.model;
    let first = &model.parts[0];
    let quality = findings.quality();
    let columns: Vec<Value> = findings
        .terms()
        .iter()
        .map(|term| {
            json!({
                "expr": term.text,
                "part": (!term.part.is_empty()).then_some(&term.part),
                "coefficient": term.coefficient,
                "selected": term.selected(),
                "support": term.support,
                "replica_share": term.replica_share,
                "seconds": term.seconds,
            })
        })
        .collect();
    let asked = findings.evaluation_point();
    json!({
        "source": findings.source,
        "response": findings.response,
        "variables": first.points.variables,
        "constants": first.points.constants.iter().cloned().map(|(n, v)| (n, json!(v))).collect::<Map<_, _>>(),
        "method": model.method_name(),
        "residual": match first.residual {
            Residual::Relative => "relative",
            Residual::Absolute => "absolute",
        },
        "basis": first.basis.name,
        "rows": findings.rows,
        "minimum_over": findings.minimum_over,
        "points": first.points.len(),
        "rank": model.parts.iter().map(|part| part.identifiability.rank).min(),
        "condition": first.identifiability.condition,
        "columns": columns,
        "columns_at": at(&asked, 0),
        "indistinguishable": findings.indistinguishable(),
        "tie_moved": first.tie_moved,
        "fit": {
            "max_relative": quality.max_relative,
            "rms_relative": quality.rms_relative,
            "spread": first.spread,
        },
        "contradictions": contradictions(findings),
        "predictions": predictions(&first.points.variables, &findings.predictions),
        "holdout": findings.held.as_ref().map(|held| {
            let mut predicted = predictions(&first.points.variables, &held.predictions);
            for (entry, time) in predicted.iter_mut().zip(&held.points.times) {
                entry["measured"] = json!(time);
                entry["error"] = json!(entry["value"].as_f64().map(|value| value / time - 1.0));
            }
            predicted
        }),
        "comparison": findings.comparison.as_ref().map(comparison),
        "choice": findings.choice.as_ref().map(|(chosen, scores)| {
            let mut value = comparison(scores);
            value["chosen"] = json!(scores.scores[*chosen].name);
            value
        }),
        "two_step": findings.two_step.as_ref().map(|steps| {
            steps.variables.iter().map(|step| {
                step.survivors.iter().map(|(column, slices, of)| {
                    json!({ "expr": column.text(), "slices": slices, "of": of })
                }).collect::<Vec<_>>()
            }).collect::<Vec<_>>()
        }),
    })
}

fn at(points: &Points, index: usize) -> Map<String, Value> {
    let pairs = points.variables.iter().zip(&points.values[index]);
    pairs.map(|(name, value)| (name.clone(), json!(value))).collect()
}

fn predictions(variables: &[String], predictions: &[Prediction]) -> Vec<Value> {
    let entry = |prediction: &Prediction| {
        let pairs = variables.iter().zip(&prediction.values);
        let mut entry: Map<String, Value> =
            pairs.map(|(name, value)| (name.clone(), json!(value))).collect();
        let warning = warnings(prediction);
        entry.insert("value".into(), json!(prediction.value));
        entry.insert("lo".into(), json!(prediction.lo));
        entry.insert("hi".into(), json!(prediction.hi));
        entry.insert("warning".into(), json!((!warning.is_empty()).then_some(warning)));
        Value::Object(entry)
    };
    predictions.iter().map(entry).collect()
}

fn comparison(comparison: &Comparison) -> Value {
    let scores: Vec<Value> = comparison
        .scores
        .iter()
        .map(|score| {
            json!({
                "name": score.name,
                "median": score.median,
                "p95": score.p95,
                "max": score.largest,
                "failure": score.failure.as_deref().map(error_sentence),
            })
        })
        .collect();
    json!({ "held_back": held_back(comparison.what), "held": comparison.held, "scores": scores })
}
