//! The JSON document's part on clocks, described in `docs/reference/report-json.md`.

use serde::Serialize;
use trace_format::header::Phase;

use crate::present::shown::Report;
use crate::timeline::{CausalCorrection, GlobalTimeline, OffsetEstimate, WANDER};

/// The value of `clock`.
#[derive(Debug, Serialize)]
pub(in crate::present) struct ClockPart {
    bound_ns: Option<f64>,
    ends_bound_ns: Option<f64>,
    aligned: bool,
    wander_ppm: f64,
    estimated: Option<OffsetEstimate>,
    utc: Option<UtcDocument>,
    causal: Option<CausalCorrection>,
}

#[derive(Debug, Serialize)]
struct UtcDocument {
    zero_s: i64,
    zero_ns: i64,
    bound_ns: Option<u64>,
    spread_ns: f64,
}

/// An item of `ranks[].clock_exchanges`.
#[derive(Debug, Serialize)]
pub(in crate::present) struct ExchangeDocument {
    phase: &'static str,
    parent: u32,
    same_host: bool,
    rounds: u32,
    kept: u32,
    at_s: f64,
    offset_ns: f64,
    bound_ns: f64,
    root_bound_ns: Option<u64>,
    hops: Option<u32>,
    min_round_trip_ns: f64,
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
