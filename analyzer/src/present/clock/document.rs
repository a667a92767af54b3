//! The JSON document's part on clocks, described in `docs/reference/report-json.md`.

use serde::Serialize;
use trace_format::header::Phase;

use crate::present::shown::Report;
use crate::timeline::{CausalCorrection, GlobalTimeline, OffsetEstimate, WANDER};

/// How well times of different ranks compare.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::present) struct ClockPart {
    /// Largest error bound of measured ranks.
    bound_ns: Option<f64>,
    /// The same at begin and end only.
    ends_bound_ns: Option<f64>,
    /// All ranks are aligned.
    aligned: bool,
    /// Growth of the bound away from an exchange.
    wander_ppm: f64,
    /// Offsets that no exchange measured, [estimated](../guide/calibrate.md#clocks) from messages and collective
    /// operations between hosts; null: all were measured, or nothing was recorded that could tell.
    estimated: Option<OffsetEstimate>,
    /// Second 0 by the reference rank's system clock.
    utc: Option<UtcDocument>,
    /// What `--causal` changed; null without it.
    causal: Option<CausalCorrection>,
}

/// Second 0 of the common clock.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UtcDocument {
    /// Seconds since 1970.
    zero_s: i64,
    /// Nanoseconds beyond them.
    zero_ns: i64,
    /// Its bound; null: nothing keeps the clock at UTC.
    bound_ns: Option<u64>,
    /// Spread between hosts.
    spread_ns: f64,
}

/// A comparison of two clocks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::present) struct ExchangeDocument {
    /// `init`, `during` or `finalize`.
    phase: &'static str,
    /// The rank that it was compared with.
    parent: u32,
    /// Both are on one host.
    same_host: bool,
    /// Messages there and back.
    rounds: u32,
    /// Rounds that were used ([definition](trace-format.md#7-definition-records)).
    kept: u32,
    /// When, seconds of the common clock.
    at_s: f64,
    /// Parent's counter less the rank's.
    offset_ns: f64,
    /// Error bound of this hop.
    bound_ns: f64,
    /// Error bound to the reference; null: a hop above was not measured.
    root_bound_ns: Option<u64>,
    /// Number of hops to the reference; null as above.
    hops: Option<u32>,
    /// Shortest round trip.
    min_round_trip_ns: f64,
    /// Median round trip.
    median_round_trip_ns: f64,
}

impl ClockPart {
    pub fn new(timeline: &GlobalTimeline) -> Self {
        Self {
            bound_ns: timeline.bound_ns,
            ends_bound_ns: timeline.ends_bound_ns,
            aligned: timeline.aligned,
            wander_ppm: WANDER * 1e6,
            estimated: timeline.estimate.clone(),
            utc: timeline.utc.map(|utc| UtcDocument {
                zero_s: utc.zero_ns.div_euclid(1_000_000_000) as i64,
                zero_ns: utc.zero_ns.rem_euclid(1_000_000_000) as i64,
                bound_ns: utc.bound_ns,
                spread_ns: utc.spread_ns,
            }),
            causal: timeline.causal,
        }
    }
}

/// The clock exchanges of the rank at an index of the run.
pub(in crate::present) fn exchanges(report: &Report, index: usize) -> Vec<ExchangeDocument> {
    let (facts, time) = (&report.run.ranks[index].facts, &report.timeline.ranks[index]);
    let ns = |ticks: f64| ticks / time.frequency.ticks_per_s * 1e9;
    let document = |exchange: &trace_format::header::ClockExchange| {
        let offset = i128::from(exchange.parent_ticks) - i128::from(exchange.child_ticks);
        let of_exchange = |bound: &&trace_format::header::ClockBound| {
            bound.phase == exchange.phase && bound.ticks == exchange.child_ticks
        };
        let root = facts.clock_bounds.iter().find(of_exchange);
        ExchangeDocument {
            phase: match exchange.phase {
                Phase::Init => "init",
                Phase::Finalize => "finalize",
                Phase::During => "during",
            },
            parent: exchange.parent,
            same_host: exchange.same_host,
            rounds: exchange.rounds,
            kept: exchange.kept,
            at_s: time.clock.seconds(exchange.child_ticks),
            offset_ns: ns(offset as f64),
            bound_ns: ns(exchange.bound_ticks as f64),
            root_bound_ns: root.map(|bound| bound.bound_ns),
            hops: root.map(|bound| bound.hops),
            min_round_trip_ns: ns(exchange.min_round_trip_ticks as f64),
            median_round_trip_ns: ns(exchange.median_round_trip_ticks as f64),
        }
    };
    facts.exchanges.iter().map(document).collect()
}
