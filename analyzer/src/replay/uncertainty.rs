//! How far an answer may be off (docs/decisions/0097-intervals-know-what-the-run-does-not-show.md,
//! 0109-answers-cover-every-division-of-the-costs.md).

use super::backward::Transfers;
use super::change::Change;
use super::network::Network;
use super::questions::changed_network;
use super::what_if::{PredictedTime, WhatIf};

/// Relative difference of two runs of the same program, in nine of ten cases.
const OF_RUNS: f64 = 0.012;

/// Runs with more ranks may use other algorithms than the replay, and their messages may compete for
/// a link.
const SIMPLE_RANKS: usize = 2;

/// What contributes to the uncertainty of an answer: shares of times, at 90 %. They were chosen so
/// that nine of ten intervals hold (docs/measurements/accuracy.md).
#[derive(Debug, Clone, Copy)]
struct Shares {
    /// Of the difference that the changes make.
    of_difference: f64,
    /// Of the transfers on the critical path, recorded or changed, whichever are longer.
    of_transfers: f64,
    of_transfers_difference: f64,
    /// Of the transfers that the changes move from one parameter to another.
    of_moved: f64,
    /// Of the transfers after the changes.
    of_changed_transfers: f64,
}

const NONE: Shares = Shares {
    of_difference: 0.0,
    of_transfers: 0.0,
    of_transfers_difference: 0.0,
    of_moved: 0.0,
    of_changed_transfers: 0.0,
};

/// With [`SIMPLE_RANKS`] ranks at most: changes of computation, and of transfers.
const SIMPLE_COMPUTATION: Shares = Shares { of_difference: 0.1, ..NONE };
const SIMPLE_TRANSFERS: Shares = Shares { of_difference: 0.25, ..NONE };
/// With more ranks: changes of computation, of the network and of the placement.
const COMPUTATION: Shares =
    Shares { of_difference: 0.1, of_transfers: 0.25, of_transfers_difference: 0.3, ..NONE };
const NETWORK: Shares = Shares { of_difference: 0.25, of_moved: 0.6, ..NONE };
const PLACEMENT: Shares = Shares { of_difference: 2.0, of_transfers: 0.4, ..NONE };
/// If messages do not show the parameters, or ranks share the link of a host: more of the moved
/// transfers.
const MOVED_IF_NOT_SHOWN: f64 = 0.6;
/// If parameters are given as values, the run does not say what the transfers cost: of these.
const OF_GIVEN: f64 = 1.5;

impl WhatIf<'_> {
    /// Whether the uncertainty of an answer depends on the transfers of its replay.
    pub(super) fn transfers_matter(&self, changes: &[Change]) -> bool {
        !self.is_simple() || changes.iter().any(Change::affects_transfers)
    }

    fn is_simple(&self) -> bool {
        self.graph.run.ranks.len() <= SIMPLE_RANKS
    }

    /// The shortest and the longest time with the networks that the run does not exclude, seconds.
    /// Each is multiplied by the factor with which the recorded critical path takes as long as
    /// recorded; the critical path with the changes is taken to stay the same.
    pub(super) fn divided(&self, asked: &PredictedTime) -> (f64, f64) {
        let time = asked.elapsed_s;
        let Some(path) = asked.path else { return (time, time) };
        let recorded = Transfers::new(&self.calibration.network, self.path()).all;
        let changed = Transfers::new(asked.network, path).all;
        let with = |network: &Network| {
            let unscaled = Transfers::new(network, self.path()).all;
            let factor = if unscaled > 0.0 { recorded / unscaled } else { 1.0 };
            let network = changed_network(network.times(factor), asked.changes, asked.placement);
            let transfers = Transfers::new(&network, path).all;
            (time + (transfers - changed) * self.correction()).max(asked.computing_s)
        };
        let times = self.calibration.extremes.iter().map(with);
        times.fold((time, time), |(lo, hi), time| (lo.min(time), hi.max(time)))
    }

    /// The interval that contains the time in nine of ten cases, seconds. It contains no time in
    /// which a rank cannot compute what it computes.
    pub(super) fn interval(&self, asked: &PredictedTime, (lo, hi): (f64, f64)) -> (f64, f64) {
        let possible = asked.computing_s.min(asked.elapsed_s) * (1.0 - OF_RUNS);
        let lowest = (lo - self.uncertainty(asked, lo)).max(possible);
        (lowest, hi + self.uncertainty(asked, hi))
    }

    /// The distance from a time within which the time is in nine of ten cases if the costs of
    /// transfers are divided in one way, seconds.
    fn uncertainty(&self, asked: &PredictedTime, time_s: f64) -> f64 {
        let before = Transfers::new(&self.calibration.network, self.path());
        let after = asked.path.map_or(before, |path| Transfers::new(asked.network, path));
        let shares = self.shares(asked.changes);
        let parts = [
            self.calibration.error * time_s,
            OF_RUNS * time_s,
            shares.of_difference * (time_s - self.graph.elapsed_s),
            shares.of_transfers * before.all.max(after.all),
            shares.of_transfers_difference * (after.all - before.all),
            shares.of_moved * before.moved(&after),
            shares.of_changed_transfers * after.all,
        ];
        parts.iter().map(|part| part * part).sum::<f64>().sqrt()
    }

    fn shares(&self, changes: &[Change]) -> Shares {
        let any = |is: fn(&Change) -> bool| changes.iter().any(is);
        let affects_transfers = any(Change::affects_transfers);
        if self.is_simple() {
            return if affects_transfers { SIMPLE_TRANSFERS } else { SIMPLE_COMPUTATION };
        }
        if !affects_transfers {
            return COMPUTATION;
        }
        let is_placed = any(|change| matches!(change, Change::Placement(_)));
        let mut shares = if is_placed { PLACEMENT } else { NETWORK };
        let samples = &self.calibration.samples;
        let is_shown = samples.transfers[self.hop()] > 0 && self.is_told_apart();
        let may_compete = !self.placement.is_one_rank_each();
        if !is_placed && (!is_shown || may_compete) {
            shares.of_moved += MOVED_IF_NOT_SHOWN;
        }
        if any(|change| matches!(change, Change::Network(_))) {
            shares.of_changed_transfers = OF_GIVEN;
        }
        shares
    }
}
