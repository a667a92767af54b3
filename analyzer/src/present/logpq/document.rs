//! The JSON document of `gammachi calibrate logpq`; `docs/reference/predictions-json.md` explains its keys.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::models::logpq::cannon::Model;
use crate::models::logpq::messages::{RankPrediction, RunPrediction};
use crate::models::logpq::study::{Hidden, Row, Study};
use crate::models::logpq::{Estimate, Findings, LogP, LogPq, Parameters};

use super::words::{parameter_note, product_from, study_note};

/// Version of the document's keys: a key never changes its meaning within one version.
pub const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
struct Document<'a> {
    version: u32,
    gammachi: &'static str,
    source: &'a str,
    parameters: Vec<ParametersDocument<'a>>,
    cannon: Option<StudyDocument<'a>>,
    runs: Vec<RunDocument<'a>>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct Value {
    value_s: f64,
    half_width_s: f64,
    ticks: Option<f64>,
}

#[derive(Debug, Serialize)]
struct LogPDocument {
    identified: bool,
    latency: Value,
    overhead: Value,
    gap: Value,
}

#[derive(Debug, Serialize)]
struct LogPqDocument {
    latency: Value,
    overhead: Value,
    gap: Value,
    fixed: Value,
}

#[derive(Debug, Serialize)]
struct SizeDocument {
    bytes: u64,
    half_rtt: Value,
    #[serde(flatten)]
    logp: LogPDocument,
}

#[derive(Debug, Serialize)]
struct ParametersDocument<'a> {
    class: &'a str,
    word_bytes: u64,
    words: u64,
    ratio: f64,
    counter_hz: Option<f64>,
    logp_message: LogPDocument,
    logp_one_word: LogPDocument,
    logpq: LogPqDocument,
    logpq_from_link: LogPqDocument,
    sizes: Vec<SizeDocument>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct StudyDocument<'a> {
    ranks: u64,
    t_f_s: f64,
    t_s_s: f64,
    product_from: &'static str,
    rows: Vec<RowDocument<'a>>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RowDocument<'a> {
    n: u64,
    block: u64,
    block_product_s: f64,
    block_product_measured: bool,
    computation_s: f64,
    predicted_s: BTreeMap<&'static str, Option<f64>>,
    compared_with: Option<&'a str>,
    error: BTreeMap<&'static str, Option<f64>>,
    strategies: &'a [Hidden],
    fewest_blocks: Option<u64>,
}

#[derive(Debug, Serialize)]
struct RunDocument<'a> {
    name: &'a str,
    ranks: Vec<RankDocument>,
    collective_calls: u64,
    collective_s: f64,
}

#[derive(Debug, Serialize)]
struct RankDocument {
    rank: u32,
    messages: u64,
    bytes: f64,
    not_covered: u64,
    measured_s: f64,
    predicted: BTreeMap<&'static str, PredictedDocument>,
}

#[derive(Debug, Serialize)]
struct PredictedDocument {
    hidden_s: f64,
    exposed_s: f64,
}

/// The document as indented text.
///
/// # Errors
/// If it cannot be serialised.
pub fn json(findings: &Findings) -> serde_json::Result<String> {
    let document = Document {
        version: VERSION,
        gammachi: env!("CARGO_PKG_VERSION"),
        source: &findings.source,
        parameters: findings.parameters.iter().map(parameters).collect(),
        cannon: findings.cannon.as_ref().map(study),
        runs: findings.runs.iter().map(run).collect(),
        notes: &findings.notes,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn parameters(of: &Parameters) -> ParametersDocument<'_> {
    let value = |estimate: &Estimate| Value {
        value_s: estimate.value,
        half_width_s: estimate.half_width,
        ticks: of.counter_hz.map(|hz| estimate.value * hz),
    };
    let logp = |logp: &LogP| LogPDocument {
        identified: logp.latency.is_identified(),
        latency: value(&logp.latency),
        overhead: value(&logp.overhead),
        gap: value(&logp.gap),
    };
    let logpq = |logpq: &LogPq| LogPqDocument {
        latency: value(&logpq.latency),
        overhead: value(&logpq.overhead),
        gap: value(&logpq.gap),
        fixed: value(&logpq.fixed),
    };
    let size = |row: &crate::models::logpq::SizeRow| SizeDocument {
        bytes: row.bytes,
        half_rtt: value(&row.half_rtt),
        logp: logp(&row.logp),
    };
    ParametersDocument {
        class: &of.class,
        word_bytes: of.word_bytes,
        words: of.words,
        ratio: of.ratio,
        counter_hz: of.counter_hz,
        logp_message: logp(&of.message),
        logp_one_word: logp(&of.one_word),
        logpq: logpq(&of.logpq),
        logpq_from_link: logpq(&of.logpq_link),
        sizes: of.sizes.iter().map(size).collect(),
        notes: of.notes.iter().map(parameter_note).collect(),
    }
}

fn study(of: &Study) -> StudyDocument<'_> {
    StudyDocument {
        ranks: of.grid * of.grid,
        t_f_s: of.product.fixed_s,
        t_s_s: of.product.multiply_s,
        product_from: product_from(of.product_from),
        rows: of.rows.iter().map(row).collect(),
        notes: of.notes.iter().map(study_note).collect(),
    }
}

fn row(of: &Row) -> RowDocument<'_> {
    let models = || Model::ALL.into_iter().zip(of.predicted_s);
    let compared = of.compared();
    let error = |predicted: Option<f64>| Some(predicted? / compared?.elapsed_s - 1.0);
    RowDocument {
        n: of.n,
        block: of.block,
        block_product_s: of.block_product_s,
        block_product_measured: of.measured,
        computation_s: of.computation_s,
        predicted_s: models().map(|(model, time)| (model.key(), time)).collect(),
        compared_with: compared.map(|one| one.strategy.as_str()),
        error: models().map(|(model, time)| (model.key(), error(time))).collect(),
        strategies: &of.strategies,
        fewest_blocks: of.fewest_blocks().map(|one| one.blocks_held),
    }
}

fn run(of: &RunPrediction) -> RunDocument<'_> {
    let rank = |one: &RankPrediction| RankDocument {
        rank: one.rank,
        messages: one.messages,
        bytes: one.bytes,
        not_covered: one.uncovered,
        measured_s: one.measured_s,
        predicted: Model::ALL
            .into_iter()
            .zip(&one.models)
            .map(|(model, predicted)| {
                let document = PredictedDocument {
                    hidden_s: predicted.busy_s,
                    exposed_s: predicted.exposed_s(),
                };
                (model.key(), document)
            })
            .collect(),
    };
    RunDocument {
        name: &of.name,
        ranks: of.ranks.iter().map(rank).collect(),
        collective_calls: of.collective_calls,
        collective_s: of.collective_s,
    }
}
