//! Computes one hop, from a rank's clock exchanges: the map from its counter to its parent's, and
//! the error bound over time.
//!
//! At an exchange the bound is that of the exchange. Between two exchanges the map is linear and
//! the bound widens towards the middle by [`WANDER`]. After the only exchange of a rank the map
//! continues at the rate of the frequencies, and the bound widens with time by the uncertainty of
//! that rate.

use trace_format::header::{ClockExchange, Phase};

use super::alignment::Alignment;
use super::counter_map::{CounterMap, LinearMap};
use super::rank_clock::BoundLine;

/// How far the rate of one counter against another may wander from its mean over minutes to hours:
/// 0.1 ppm, which the oscillators of servers keep to (Veitch et al. 2004).
pub const WANDER: f64 = 1e-7;
/// How far the rates of two oscillators may differ: 50 ppm each, the usual tolerance of crystals.
pub const UNMEASURED_RATE: f64 = 1e-4;

/// A rank's counter against its parent's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hop {
    /// The parent's rank.
    pub parent: u32,
    /// From the rank's counter to the parent's.
    pub map: CounterMap,
    /// Error bound over the rank's counter.
    pub bound: BoundLine,
    /// How it was found: measured, estimated, or both read one counter.
    pub alignment: Alignment,
}

impl Hop {
    /// Whether an exchange found that both read one counter.
    pub fn is_shared(&self) -> bool {
        self.alignment == Alignment::SharedCounter
    }
}

/// What is known of the two counters apart from the exchanges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// Parent's ticks per tick of the rank's counter, from their frequencies.
    pub expected: f64,
    /// Relative uncertainty of `expected`.
    pub relative_uncertainty: f64,
    /// Nanoseconds per tick of the rank's counter.
    pub ns_per_tick: f64,
}

/// A measured rate that differs from that of the frequencies by more than this part is considered
/// damaged.
const RATE_TOLERANCE: f64 = 0.01;

/// Why a rank's exchanges cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ExchangeFault {
    /// No exchange has readings of both counters.
    #[error("its clock exchanges have no counter readings")]
    NoReadings,
    /// A counter does not increase from one exchange to the next.
    #[error("its second clock exchange lies before its first")]
    OutOfOrder,
    /// The counter's rate between two exchanges is not that of the frequencies.
    #[error(
        "its clock exchanges imply that its counter runs {ratio:.4} times as fast as its frequency"
    )]
    Rate {
        /// Measured rate over the expected one.
        ratio: f64,
    },
}

/// The hop that a rank's exchanges describe; `None` without one.
pub(super) fn hop(exchanges: &[ClockExchange], rates: Rates) -> Result<Option<Hop>, ExchangeFault> {
    if exchanges.is_empty() {
        return Ok(None);
    }
    let readings = readings(exchanges)?;
    let parent = readings[0].parent;
    let bounds = readings.iter().map(|reading| reading.bound_ticks as f64 * rates.ns_per_tick);
    let agrees =
        |e: &ClockExchange| e.same_host && e.child_ticks.abs_diff(e.parent_ticks) <= e.bound_ticks;
    if readings.iter().all(agrees) {
        let map = CounterMap::identity_at(readings[0].child_ticks);
        let bound = BoundLine::constant(bounds.fold(0.0, f64::max));
        return Ok(Some(Hop { parent, map, bound, alignment: Alignment::SharedCounter }));
    }
    let mut pieces = Vec::with_capacity(readings.len());
    for pair in readings.windows(2) {
        pieces.push(LinearMap { rate: rate_between(&pair[0], &pair[1], rates)?, ..at(&pair[0]) });
    }
    let last = readings[readings.len() - 1];
    if pieces.is_empty() {
        pieces.push(LinearMap { rate: rates.expected, ..at(&last) });
    }
    let bound = bound_line(&readings, &bounds.collect::<Vec<_>>(), rates);
    let map = CounterMap::new(pieces);
    Ok(Some(Hop { parent, map, bound, alignment: Alignment::Measured }))
}

/// The usable exchanges in order of time: the first at init, those during the run, the last at
/// finalize; all with the same parent.
fn readings(exchanges: &[ClockExchange]) -> Result<Vec<ClockExchange>, ExchangeFault> {
    let sound = |exchange: &&ClockExchange| exchange.child_ticks > 0 && exchange.parent_ticks > 0;
    let of = |phase| exchanges.iter().filter(sound).filter(move |e| e.phase == phase);
    let ordered = of(Phase::Init)
        .take(1)
        .chain(of(Phase::During))
        .chain(of(Phase::Finalize).next_back())
        .copied();
    let mut readings: Vec<ClockExchange> = ordered.collect();
    let Some(parent) = readings.first().map(|first| first.parent) else {
        return Err(ExchangeFault::NoReadings);
    };
    readings.retain(|reading| reading.parent == parent);
    let rises = |pair: &[ClockExchange]| {
        pair[1].child_ticks > pair[0].child_ticks && pair[1].parent_ticks > pair[0].parent_ticks
    };
    match readings.windows(2).all(rises) {
        true => Ok(readings),
        false => Err(ExchangeFault::OutOfOrder),
    }
}

fn at(reading: &ClockExchange) -> LinearMap {
    LinearMap {
        from_ticks: reading.child_ticks,
        to_ticks: i128::from(reading.parent_ticks),
        to_fraction: 0.0,
        rate: 1.0,
    }
}

fn rate_between(a: &ClockExchange, b: &ClockExchange, rates: Rates) -> Result<f64, ExchangeFault> {
    let child = (b.child_ticks - a.child_ticks) as f64;
    let rate = (b.parent_ticks - a.parent_ticks) as f64 / child;
    // Over a short stretch the bounds alone may explain a different rate.
    let by_bounds = (a.bound_ticks as f64 + b.bound_ticks as f64) / child;
    let tolerance = RATE_TOLERANCE + rates.relative_uncertainty + by_bounds;
    if (rate / rates.expected - 1.0).abs() > tolerance {
        return Err(ExchangeFault::Rate { ratio: rate / rates.expected });
    }
    Ok(rate)
}

fn bound_line(readings: &[ClockExchange], bounds_ns: &[f64], rates: Rates) -> BoundLine {
    let mut points = Vec::with_capacity(2 * readings.len());
    // With one exchange, only the frequencies tell the rate.
    let (mut before, mut after) = (rates.relative_uncertainty, rates.relative_uncertainty);
    for (index, (reading, bound_ns)) in readings.iter().zip(bounds_ns).enumerate() {
        points.push((reading.child_ticks, *bound_ns));
        let Some(next) = readings.get(index + 1) else { break };
        let ticks = next.child_ticks - reading.child_ticks;
        let both_ns = bound_ns + bounds_ns[index + 1];
        let half_ns = ticks as f64 / 2.0 * rates.ns_per_tick;
        points.push((reading.child_ticks + ticks / 2, both_ns / 2.0 + half_ns * WANDER));
        // Beyond the ends the bound grows by the error of the measured rate and by the wander on
        // both sides.
        let slope = both_ns / (2.0 * half_ns) + 2.0 * WANDER;
        if index == 0 {
            before = slope.min(rates.relative_uncertainty.max(WANDER));
        }
        after = slope.min(rates.relative_uncertainty.max(WANDER));
    }
    BoundLine { points, before_ns: before * rates.ns_per_tick, after_ns: after * rates.ns_per_tick }
}
