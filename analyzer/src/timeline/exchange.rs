//! One hop between two counters: a rank's clock exchanges come in, the map from its counter to its
//! parent's and its bound go out.

use trace_format::header::{ClockExchange, Phase};

/// A linear map between two counters: `to = to_ticks + to_fraction + (from − from_ticks)·rate`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LinearMap {
    pub from_ticks: u64,
    pub to_ticks: i128,
    pub to_fraction: f64,
    pub rate: f64,
}

impl LinearMap {
    /// The map of a counter to itself; the reading only keeps later sums small.
    pub const fn identity_at(ticks: u64) -> Self {
        Self { from_ticks: ticks, to_ticks: ticks as i128, to_fraction: 0.0, rate: 1.0 }
    }

    /// Whether the numbers are such as counters can have; what is composed of damage is not.
    pub fn is_possible(&self) -> bool {
        let magnitude = self.to_ticks.unsigned_abs();
        self.to_fraction.is_finite() && (1e-6..1e6).contains(&self.rate) && magnitude < 1 << 80
    }

    /// Ticks of the target between `origin` and the moment when the source stood at `ticks`.
    pub fn ticks_since(&self, origin: i128, ticks: u64) -> f64 {
        let from = i128::from(ticks) - i128::from(self.from_ticks);
        let whole = self.to_ticks.saturating_sub(origin);
        if self.rate == 1.0 {
            return (whole + from) as f64 + self.to_fraction;
        }
        whole as f64 + (self.to_fraction + from as f64 * self.rate)
    }

    /// The target when the source stood at `ticks`, rounded down.
    pub fn whole_ticks_at(&self, ticks: u64) -> i128 {
        self.to_ticks.saturating_add(self.ticks_since(self.to_ticks, ticks).floor() as i128)
    }

    /// This map followed by the next.
    pub fn then(&self, next: &Self) -> Self {
        let distance = self.to_ticks.saturating_sub(i128::from(next.from_ticks));
        // Whole ticks stay whole; only what the rate adds is a fraction.
        let added = distance as f64 * (next.rate - 1.0) + self.to_fraction * next.rate;
        let fraction = next.to_fraction + added;
        let whole = fraction.floor();
        Self {
            from_ticks: self.from_ticks,
            to_ticks: next.to_ticks.saturating_add(distance).saturating_add(whole as i128),
            to_fraction: fraction - whole,
            rate: self.rate * next.rate,
        }
    }
}

/// A rank's counter against its parent's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hop {
    /// The parent's rank.
    pub parent: u32,
    /// From the rank's counter to the parent's.
    pub map: LinearMap,
    /// Error bound, the rank's ticks.
    pub bound_ticks: f64,
    /// Whether the exchange found both to read one counter.
    pub shared: bool,
}

/// What is known of the two counters beside the exchanges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// Parent's ticks a tick of the rank's, by their frequencies.
    pub expected: f64,
    /// Relative uncertainty of that.
    pub relative_uncertainty: f64,
    /// How long the rank ran, its ticks: what an unmeasured drift acts on.
    pub stretch_ticks: u64,
}

/// How far a measured rate may lie from that of the frequencies before it is taken for damage.
const RATE_TOLERANCE: f64 = 0.01;

/// The hop that a rank's exchanges describe; `None` without one. The error says what is absurd in
/// exchanges that cannot be used.
pub(super) fn hop(exchanges: &[ClockExchange], rates: Rates) -> Result<Option<Hop>, String> {
    if exchanges.is_empty() {
        return Ok(None);
    }
    let sound = |exchange: &&ClockExchange| exchange.child_ticks > 0 && exchange.parent_ticks > 0;
    let phase = |phase| move |exchange: &&ClockExchange| exchange.phase == phase;
    let first = exchanges.iter().filter(sound).find(phase(Phase::Init));
    let last = exchanges.iter().filter(sound).rfind(phase(Phase::Finalize));
    let Some(start) = first.or(last) else {
        return Err("its clock exchanges have no counter readings".into());
    };
    let end = last.filter(|last| last.parent == start.parent && *last != start);
    let readings: Vec<_> = [Some(start), end].into_iter().flatten().collect();
    let bound_ticks = readings.iter().map(|e| e.bound_ticks).max().unwrap_or(0) as f64;
    let agrees =
        |e: &&ClockExchange| e.same_host && e.child_ticks.abs_diff(e.parent_ticks) <= e.bound_ticks;
    if readings.iter().all(agrees) {
        let map = LinearMap::identity_at(start.child_ticks);
        return Ok(Some(Hop { parent: start.parent, map, bound_ticks, shared: true }));
    }
    let offset_only = LinearMap {
        from_ticks: start.child_ticks,
        to_ticks: i128::from(start.parent_ticks),
        to_fraction: 0.0,
        rate: rates.expected,
    };
    let drift_ticks = rates.relative_uncertainty * rates.stretch_ticks as f64;
    let Some(end) = end else {
        let bound_ticks = bound_ticks + drift_ticks;
        let map = offset_only;
        return Ok(Some(Hop { parent: start.parent, map, bound_ticks, shared: false }));
    };
    let child = end.child_ticks.checked_sub(start.child_ticks).filter(|ticks| *ticks > 0);
    let parent = end.parent_ticks.checked_sub(start.parent_ticks).filter(|ticks| *ticks > 0);
    let rate = match (child, parent) {
        (Some(child), Some(parent)) => parent as f64 / child as f64,
        _ => return Err("its second clock exchange lies before its first".into()),
    };
    // Over a short stretch the bounds themselves explain a different rate.
    let by_bounds = 2.0 * bound_ticks / child.unwrap_or(1) as f64;
    let tolerance = RATE_TOLERANCE + rates.relative_uncertainty + by_bounds;
    if (rate / rates.expected - 1.0).abs() > tolerance {
        return Err(format!(
            "its clock exchanges say that its counter runs {:.4} times as fast as the \
             frequencies say",
            rate / rates.expected
        ));
    }
    let map = LinearMap { rate, ..offset_only };
    Ok(Some(Hop { parent: start.parent, map, bound_ticks, shared: false }))
}
