//! The JSON document of `gammachi whatif`; `docs/reference/predictions-json.md` explains its keys.

use serde::Serialize;

use crate::present::context;
use crate::present::document::text;
use crate::present::judged_run::JudgedRun;
use crate::replay::{Assembled, Network};

use super::results::{Tolerance, WhatIfResults};
use super::screen::notes;
use super::words;
use super::words::origin;

/// Share of cases in which the interval contains the true time.
const COVERAGE: f64 = 0.9;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    judged: JudgedRun<'a>,
    /// The replay of the run as it was.
    self_replay: SelfReplay,
    /// The network, as the run shows it.
    parameters: Parameters,
    /// Network of the question; null: the run's.
    asked: Option<AskedPart>,
    /// Empty without a replay.
    answers: Vec<AnswerPart>,
    /// How much latency the run tolerates.
    tolerance: &'a [Tolerance],
    /// Composition of the critical path of the replay.
    sensitivities: Option<Sensitivities>,
    /// Calls replayed unchanged, all ranks.
    fixed_s: f64,
}

/// The replay of the run as it was.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SelfReplay {
    /// Elapsed time of the run.
    recorded_s: f64,
    /// Elapsed time of the replay.
    elapsed_s: f64,
    /// Relative, signed.
    error: f64,
    /// Factor on all costs of transfers that makes the replay fit the run.
    scale: f64,
    /// It may be trusted.
    right: bool,
    /// Number of replayed calls.
    calls: usize,
    /// Number of calls whose needs never came.
    released: u64,
}

/// Parameters of the network.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Parameters {
    /// Of a call.
    overhead_s: f64,
    /// Of a byte.
    overhead_s_per_byte: f64,
    /// Within hosts.
    within: HopPart,
    /// Between hosts.
    between: HopPart,
    /// Cost of a step of a collective operation against a message's.
    collective_steps: f64,
    /// Cost of a byte of it against a message's.
    collective_bytes: f64,
}

/// Messages within hosts, or between them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HopPart {
    latency_s: f64,
    /// Seconds of a byte.
    s_per_byte: f64,
    /// Largest message that is sent eagerly; null if sends do not show it.
    eager_bytes: Option<f64>,
    /// Number of messages that showed it.
    messages: u64,
    /// Latency is told from bandwidth.
    told_apart: bool,
}

/// A network with the origin of each parameter.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AskedPart {
    /// The file that it comes from.
    machine: Option<String>,
    /// Of a call.
    overhead_s: f64,
    /// Of a byte.
    overhead_s_per_byte: f64,
    /// `run`, `assumed` (no message shows it), `machine` or `given`.
    overhead_from: &'static str,
    /// Within hosts.
    within: AskedHopPart,
    /// Between hosts.
    between: AskedHopPart,
}

/// Messages of a network, with the origin of each parameter.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AskedHopPart {
    latency_s: f64,
    /// As `overhead_from`.
    latency_from: &'static str,
    /// Seconds of a byte.
    s_per_byte: f64,
    /// As `overhead_from`.
    s_per_byte_from: &'static str,
    /// Largest message that is sent eagerly; null: none.
    eager_bytes: Option<f64>,
    /// As `overhead_from`.
    eager_from: &'static str,
}

/// An answer.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AnswerPart {
    /// `ideal_network`, `latency_xF`, `bandwidth_xF`, `overhead_xF`, `network` (values in units), `map_block_N`,
    /// `map_cyclic_N`, `map_file`, `rank_R_xF`, `region_NAME_xF`, `balance`, `balance_NAME`, `ranks_as_median`,
    /// `no_noise`, `threads_balanced`, `io_xF`; joined by `+`.
    question: String,
    /// Null if the run tells only the interval.
    elapsed_s: Option<f64>,
    /// Lower end of the interval.
    lo_s: f64,
    /// Upper end.
    hi_s: f64,
    /// 0.9: share of cases in which the interval contains the time.
    coverage: f64,
    /// Number of calls whose needs never came.
    released: u64,
}

/// The composition of the self-replay's critical path.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sensitivities {
    /// ∂t/∂x of the overhead of a call.
    overhead: f64,
    /// ∂t/∂x of the overhead of a byte.
    overhead_per_byte: f64,
    /// ∂t/∂x of the latency within hosts.
    latency_within: f64,
    /// ∂t/∂x of the latency between hosts.
    latency_between: f64,
    /// ∂t/∂x of the time of a byte within hosts.
    bytes_within: f64,
    /// ∂t/∂x of the time of a byte between hosts.
    bytes_between: f64,
    /// Computing on it by rank.
    ranks: Vec<RankPart>,
    /// Computing on it by region.
    regions: Vec<RegionPart>,
}

/// Computing of a rank.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RankPart {
    rank: u32,
    seconds: f64,
}

/// Computing in a region.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RegionPart {
    region: String,
    seconds: f64,
}

/// The document.
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
        judged: JudgedRun::new(
            results.run,
            context::program_line(results.run),
            notes(results),
            results.diagnosis,
            results.timeline,
        ),
        self_replay: SelfReplay {
            recorded_s: what_if.graph.elapsed_s,
            elapsed_s: what_if.replayed.elapsed_s,
            error: calibration.error,
            scale: calibration.scale,
            right,
            calls: what_if.graph.calls,
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
    text(&document)
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
