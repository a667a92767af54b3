//! Rates between the counters of hosts that a calibration run has measured, for runs without a
//! second clock exchange.

use std::collections::HashMap;

use super::exchange::WANDER;

/// Rate and its relative uncertainty, by the hosts of child and parent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KnownRates(HashMap<(String, String), (f64, f64)>);

impl KnownRates {
    /// Adds a measurement between the hosts of child and parent: by how much the parent's counter
    /// runs faster, and the error bound, both in parts per million. The tightest of several
    /// measurements is kept; pairs on one host are ignored.
    pub fn add(&mut self, (child, parent): (String, String), ppm: f64, bound_ppm: f64) {
        if child == parent || !ppm.is_finite() || !bound_ppm.is_finite() {
            return;
        }
        let (rate, bound) = (1.0 + ppm * 1e-6, bound_ppm * 1e-6);
        for (hosts, rate) in
            [((child.clone(), parent.clone()), rate), ((parent, child), 1.0 / rate)]
        {
            let entry = self.0.entry(hosts).or_insert((rate, bound));
            if bound < entry.1 {
                *entry = (rate, bound);
            }
        }
    }

    /// Whether no rate is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parent's ticks per tick of the child's counter, and the relative uncertainty: that of the
    /// calibration plus what the counters may wander between two runs.
    pub(super) fn between(&self, child: &str, parent: &str) -> Option<(f64, f64)> {
        let (rate, bound) = self.0.get(&(child.to_owned(), parent.to_owned()))?;
        Some((*rate, bound + 2.0 * WANDER))
    }
}
