//! The JSON document of `gammachi whatif`; `docs/reference/predictions-json.md` explains its keys.

use serde::Serialize;

use crate::present::clock::ClockPart;
use crate::present::context;
use crate::present::findings::FindingPart;
use crate::replay::{Assembled, Network};

use super::results::{Tolerance, WhatIfResults};
use super::screen::notes;
use super::words;
use super::words::origin;

/// Version of the document's keys: a key never changes its meaning within one version.
const VERSION: u32 = 1;

/// Share of cases in which the interval contains the true time.
const COVERAGE: f64 = 0.9;

#[derive(Debug, Serialize)]
struct Document<'a> {
    version: u32,
    gammachi: &'static str,
    run: String,
    program: String,
    complete: bool,
    missing: Vec<String>,
    findings: Vec<FindingPart<'a>>,
    clock: ClockPart,
    self_replay: SelfReplay,
    parameters: Parameters,
    /// The network that the question assumes, if it is not the run's.
    asked: Option<AskedPart>,
    answers: Vec<AnswerPart>,
    tolerance: &'a [Tolerance],
    sensitivities: Option<Sensitivities>,
    fixed_s: f64,
}

#[derive(Debug, Serialize)]
struct SelfReplay {
    recorded_s: f64,
    elapsed_s: f64,
    error: f64,
    /// Factor on all costs of transfers that makes the replay fit the run.
    scale: f64,
    right: bool,
    calls: usize,
    released: u64,
}

#[derive(Debug, Serialize)]
struct Parameters {
    overhead_s: f64,
    overhead_s_per_byte: f64,
    within: HopPart,
    between: HopPart,
    collective_steps: f64,
    collective_bytes: f64,
}

#[derive(Debug, Serialize)]
struct HopPart {
    latency_s: f64,
    s_per_byte: f64,
    /// `null` if sends do not show it.
    eager_bytes: Option<f64>,
    messages: u64,
    told_apart: bool,
}

/// A network with the origin of each parameter: `run`, `machine` or `given`.
#[derive(Debug, Serialize)]
struct AskedPart {
    machine: Option<String>,
    overhead_s: f64,
    overhead_s_per_byte: f64,
    overhead_from: &'static str,
    within: AskedHopPart,
    between: AskedHopPart,
}

#[derive(Debug, Serialize)]
struct AskedHopPart {
    latency_s: f64,
    latency_from: &'static str,
    s_per_byte: f64,
    s_per_byte_from: &'static str,
    eager_bytes: Option<f64>,
    eager_from: &'static str,
}

#[derive(Debug, Serialize)]
struct AnswerPart {
    question: String,
    /// `null` if the run tells only the interval.
    elapsed_s: Option<f64>,
    lo_s: f64,
    hi_s: f64,
    coverage: f64,
    released: u64,
}

/// The composition of the self-replay's critical path.
#[derive(Debug, Serialize)]
struct Sensitivities {
    /// ∂t/∂x.
    overhead: f64,
    overhead_per_byte: f64,
    latency_within: f64,
    latency_between: f64,
    bytes_within: f64,
    bytes_between: f64,
    /// Seconds of computing on it.
    ranks: Vec<RankPart>,
    regions: Vec<RegionPart>,
}

#[derive(Debug, Serialize)]
struct RankPart {
    rank: u32,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct RegionPart {
    region: String,
    seconds: f64,
}

/// The document.
///
/// # Errors
/// When a value cannot be written.
pub fn json(results: &WhatIfResults) -> serde_json::Result<String> {
    let what_if = results.what_if;
    let calibration = &what_if.calibration;
    let right = what_if.is_accurate();
    let Network { overhead, overhead_per_byte, latency, per_byte, eager_bytes, .. } =
        calibration.network;
    let hop = |hop: usize| HopPart {
        latency_s: latency[hop],
        s_per_byte: per_byte[hop],
        eager_bytes: limit(eager_bytes[hop]).filter(|_| calibration.samples.eager_shown[hop]),
        messages: calibration.samples.transfers[hop],
        told_apart: calibration.samples.told_apart[hop],
    };
    let answers = results.answers.iter().filter(|_| right).map(|answer| AnswerPart {
        question: words::keys(&answer.changes),
        elapsed_s: answer.time_s(),
        lo_s: answer.interval_s.0,
        hi_s: answer.interval_s.1,
        coverage: COVERAGE,
        released: answer.released,
    });
    let document = Document {
        version: VERSION,
        gammachi: env!("CARGO_PKG_VERSION"),
        run: results.run.directory.display().to_string(),
        program: context::program_line(results.run),
        complete: results.run.all_finished() && results.run.missing.is_empty(),
        missing: notes(results),
        findings: FindingPart::all(results.diagnosis),
        clock: ClockPart::new(results.timeline),
        self_replay: SelfReplay {
            recorded_s: what_if.graph.elapsed_s,
            elapsed_s: what_if.replayed.elapsed_s,
            error: calibration.error,
            scale: calibration.scale,
            right,
            calls: what_if.graph.calls(),
            released: what_if.replayed.released,
        },
        parameters: Parameters {
            overhead_s: overhead,
            overhead_s_per_byte: overhead_per_byte,
            within: hop(0),
            between: hop(1),
            collective_steps: calibration.network.collective_steps,
            collective_bytes: calibration.network.collective_bytes,
        },
        asked: results.network.is_changed().then(|| asked_part(results.network)),
        answers: answers.collect(),
        tolerance: if right { results.tolerances } else { &[] },
        sensitivities: right.then(|| sensitivities(results)),
        fixed_s: what_if.graph.fixed_s,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// The eager limit as documents show it: `None` if there is none.
fn limit(bytes: f64) -> Option<f64> {
    Some(bytes.max(0.0)).filter(|limit| limit.is_finite())
}

fn asked_part(of: &Assembled) -> AskedPart {
    let Network { overhead, overhead_per_byte, latency, per_byte, eager_bytes, .. } = of.network;
    let hop = |hop: usize| AskedHopPart {
        latency_s: latency[hop],
        latency_from: origin(of.latency[hop]),
        s_per_byte: per_byte[hop],
        s_per_byte_from: origin(of.per_byte[hop]),
        eager_bytes: limit(eager_bytes[hop]),
        eager_from: origin(of.eager_bytes[hop]),
    };
    AskedPart {
        machine: of.machine.clone(),
        overhead_s: overhead,
        overhead_s_per_byte: overhead_per_byte,
        overhead_from: origin(of.overhead),
        within: hop(0),
        between: hop(1),
    }
}

fn sensitivities(results: &WhatIfResults) -> Sensitivities {
    let what_if = results.what_if;
    let path = what_if.path();
    let [overhead, overhead_per_byte, latency_within, latency_between, within, between, ..] =
        path.by_parameter;
    let ranks = results.run.ranks.iter().zip(what_if.on_path_by_rank());
    let ranks = ranks.map(|(trace, seconds)| RankPart { rank: trace.rank, seconds });
    let regions = what_if
        .regions()
        .into_iter()
        .map(|region| RegionPart { region: region.to_owned(), seconds: what_if.on_path(region) });
    Sensitivities {
        overhead,
        overhead_per_byte,
        latency_within,
        latency_between,
        bytes_within: within,
        bytes_between: between,
        ranks: ranks.collect(),
        regions: regions.collect(),
    }
}
