//! The JSON document of `gammachi calibrate logpq`; `docs/reference/predictions-json.md` explains its keys.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::models::logpq::cannon::Model;
use crate::models::logpq::messages::{Predicted, RankPrediction, RunPrediction};
use crate::models::logpq::study::{Hidden, Row, Study};
use crate::models::logpq::{Estimate, Findings, LogP, LogPq, Parameters};
use crate::present::document::{Head, text};

use super::words::{parameter_note, product_from, study_note};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    head: Head,
    /// Where the parameters come from.
    source: &'a str,
    /// By class of pairs.
    parameters: Vec<ParametersDocument<'a>>,
    /// Cannon's product; null without orders N.
    cannon: Option<StudyDocument<'a>>,
    runs: Vec<RunDocument<'a>>,
    notes: &'a [String],
}

/// A value.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Value {
    /// Seconds.
    value_s: f64,
    /// Half the width of its 95 % interval.
    half_width_s: f64,
    /// The same in ticks of the counter; null: not known.
    ticks: Option<f64>,
}

/// LogP parameters of a message.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LogPDocument {
    /// L's interval does not reach 0.
    identified: bool,
    /// L = RTT/2 − o_s − o_r.
    latency: Value,
    /// o = (o_s + o_r)/2.
    overhead: Value,
    /// g.
    gap: Value,
}

/// LogPQ parameters.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LogPqDocument {
    /// L of a word.
    latency: Value,
    /// o of a word.
    overhead: Value,
    /// g of a word.
    gap: Value,
    /// n, the fixed part of the overhead.
    fixed: Value,
}

/// Messages of a size.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SizeDocument {
    bytes: u64,
    /// Half a round trip.
    half_rtt: Value,
    #[serde(flatten)]
    logp: LogPDocument,
}

/// Parameters of a class of pairs.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ParametersDocument<'a> {
    /// `same-host` or `other-host`.
    class: &'a str,
    /// Bytes of a word.
    word_bytes: u64,
    /// m, words of a message.
    words: u64,
    /// r, channel words in a processor word.
    ratio: f64,
    /// Rate of the counter.
    counter_hz: Option<f64>,
    /// L\*, o\*, g\* at m words.
    logp_message: LogPDocument,
    /// L₀, o₀, g₀.
    logp_one_word: LogPDocument,
    /// Equation 2: L\* + o\*, o = (o\* − n)/m, g\*/m, n (of the piece of o(s) that holds m words).
    logpq: LogPqDocument,
    /// Equation 1: L₀ + o₀ + (r−1)g₀, o₀ + (r−1)g₀, r·g₀.
    logpq_from_link: LogPqDocument,
    /// By size.
    sizes: Vec<SizeDocument>,
    notes: Vec<String>,
}

/// Cannon's product.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StudyDocument<'a> {
    /// P = p².
    ranks: u64,
    /// A product of blocks of order l takes t_M = t_f + t_s·l³.
    t_f_s: f64,
    /// The same.
    t_s_s: f64,
    /// Where these come from.
    product_from: &'static str,
    /// By order.
    rows: Vec<RowDocument<'a>>,
    notes: Vec<String>,
}

/// An order of the matrices.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RowDocument<'a> {
    #[serde(flatten)]
    row: &'a Row,
    /// p·(t_M + t_com) by [model](#gammachi-calibrate-logpq---json).
    predicted_s: BTreeMap<&'static str, Option<f64>>,
    /// `hidden-both`, else the fastest strategy.
    compared_with: Option<&'a str>,
    /// Of `predicted_s` against it.
    error: BTreeMap<&'static str, Option<f64>>,
    /// The strategies that were measured.
    strategies: &'a [Hidden],
    /// Of a strategy that hides fully; null: none.
    fewest_blocks: Option<u64>,
}

/// Messages of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunDocument<'a> {
    /// The run, or its region.
    name: &'a str,
    ranks: Vec<RankDocument<'a>>,
    /// Number of collective calls.
    collective_calls: u64,
    /// Time in them.
    collective_s: f64,
}

/// Messages of a rank.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RankDocument<'a> {
    #[serde(flatten)]
    rank: &'a RankPrediction,
    /// By model.
    predicted: BTreeMap<&'static str, PredictedDocument>,
}

/// A predicted time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PredictedDocument {
    /// All latency is hidden.
    hidden_s: f64,
    /// None is.
    exposed_s: f64,
}

/// The document as indented text.
pub fn json(findings: &Findings) -> serde_json::Result<String> {
    let document = Document {
        head: Head::default(),
        source: &findings.source,
        parameters: findings.parameters.iter().map(parameters).collect(),
        cannon: findings.cannon.as_ref().map(study),
        runs: findings.runs.iter().map(run).collect(),
        notes: &findings.notes,
    };
    text(&document)
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
        row: of,
        predicted_s: models().map(|(model, time)| (model.key(), time)).collect(),
        compared_with: compared.map(|one| one.strategy.as_str()),
        error: models().map(|(model, time)| (model.key(), error(time))).collect(),
        strategies: &of.strategies,
        fewest_blocks: of.fewest_blocks().map(|one| one.blocks_held),
    }
}

fn run(of: &RunPrediction) -> RunDocument<'_> {
    let predicted = |(model, of): (Model, &Predicted)| {
        (model.key(), PredictedDocument { hidden_s: of.busy_s, exposed_s: of.exposed_s() })
    };
    let ranks = of.ranks.iter().map(|rank| {
        let predicted = Model::ALL.into_iter().zip(&rank.models).map(predicted).collect();
        RankDocument { rank, predicted }
    });
    RunDocument {
        name: &of.name,
        ranks: ranks.collect(),
        collective_calls: of.collective_calls,
        collective_s: of.collective_s,
    }
}
