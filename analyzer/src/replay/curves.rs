//! Curves: the time of a run against one parameter, from one replay per point.

use rayon::prelude::*;

use super::change::Change;
use super::what_if::WhatIf;

impl WhatIf<'_> {
    /// The time of the run, seconds, for each factor with which a change is made; the points are in the order of the
    /// factors.
    pub fn curve(
        &self,
        factors: &[f64],
        changes: impl Fn(f64) -> Vec<Change> + Sync,
    ) -> Vec<(f64, f64)> {
        let point = |factor: &f64| (*factor, self.ask(&changes(*factor)).elapsed_s);
        factors.par_iter().map(point).collect()
    }

    /// The time of the run, seconds, if every message between hosts (within the host, if there is only one) takes
    /// longer by each of these latencies, seconds.
    pub fn curve_of_added_latency(&self, added_s: &[f64]) -> Vec<(f64, f64)> {
        let own = self.calibration.network.latency[self.hop()];
        let point = |added: &f64| {
            let replayed = self.replayed_with_latency(own + added);
            (*added, replayed.elapsed_s * self.correction())
        };
        added_s.par_iter().map(point).collect()
    }
}
