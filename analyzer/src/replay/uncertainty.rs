//! How far an answer may be off (docs/decisions/0097-intervals-know-what-the-run-does-not-show.md).

use super::backward::Transfers;
use super::change::Change;
use super::questions::WhatIf;

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
    /// Of the difference of these transfers.
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
    Shares { of_difference: 0.1, of_transfers: 0.12, of_transfers_difference: 0.3, ..NONE };
const NETWORK: Shares = Shares { of_difference: 0.25, of_moved: 0.6, ..NONE };
const PLACEMENT: Shares = Shares { of_difference: 1.5, of_transfers: 0.2, ..NONE };
/// If messages do not show the parameters, or ranks share the link of a host: more of the moved
/// transfers.
const MOVED_IF_NOT_SHOWN: f64 = 1.0;
/// If parameters are given as values, the run does not say what the transfers cost: of these.
const OF_GIVEN: f64 = 1.0;

impl WhatIf<'_> {
    /// Whether the uncertainty of an answer depends on the transfers of its replay.
    pub(super) fn transfers_matter(&self) -> bool {
        self.graph.run.ranks.len() > SIMPLE_RANKS
    }

    /// The distance from an answer within which the time is in nine of ten cases, seconds; given the
    /// transfers of the answer's replay if they matter.
    pub(super) fn uncertainty(
        &self,
        elapsed_s: f64,
        changes: &[Change],
        after: Option<Transfers>,
    ) -> f64 {
        let before = Transfers::new(&self.calibration.network, self.path());
        let after = after.unwrap_or(before);
        let shares = self.shares(changes);
        let parts = [
            self.calibration.error * elapsed_s,
            OF_RUNS * elapsed_s,
            shares.of_difference * (elapsed_s - self.graph.elapsed_s),
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
        if !self.transfers_matter() {
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
