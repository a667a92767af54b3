//! Finds the factor of all times on the network with which the replay takes as long as the run.

use crate::replay::backward::{Transfers, critical_path};
use crate::replay::forward::{Conditions, Replayed, replay_window};
use crate::replay::graph::{Graph, Window};
use crate::replay::network::{Network, Placement};

/// Maximum number of replays.
const MAX_REPLAYS: usize = 8;

/// An error that is small enough to stop: answers are corrected by it, and are uncertain by far
/// more.
const NEGLIGIBLE_ERROR: f64 = 5e-4;

/// Longer runs are replayed in full only with the factor that their beginning needs.
const LONG: usize = 1_000_000;

/// The part of a long run, in operations, that is its beginning.
const BEGINNING: f64 = 0.1;

/// A factor, and the relative error of the replay with it.
type Tried = [f64; 2];

/// The common factor of all times with which the replay takes as long as the run, as far as one
/// factor can achieve that, and the remaining error; and the replay with it.
pub(super) fn scale(graph: &Graph, placement: &Placement, network: Network) -> (Tried, Replayed) {
    let search = Search { graph, placement, network };
    let first = match graph.calls > LONG {
        true => search.run(&graph.beginning(BEGINNING), 1.0).0[0],
        false => 1.0,
    };
    search.run(&graph.whole(), first)
}

/// The search for the factor of a network.
pub(in crate::replay) struct Search<'s, 'a> {
    pub graph: &'s Graph<'a>,
    pub placement: &'s Placement,
    pub network: Network,
}

impl Search<'_, '_> {
    /// Finds the factor for a window by Newton's method: the time is a convex function of the
    /// factor, and its derivative is the time of the transfers on the critical path.
    pub fn run(&self, window: &Window, first: f64) -> (Tried, Replayed) {
        let (mut low, mut high): (Option<Tried>, Option<Tried>) = (None, None);
        let mut best = self.replay(window, first);
        let mut last = None;
        for _ in 1..MAX_REPLAYS {
            let (tried, replayed) = last.as_ref().unwrap_or(&best);
            let [factor, error] = *tried;
            if error.abs() < NEGLIGIBLE_ERROR {
                break;
            }
            *(if error > 0.0 { &mut high } else { &mut low }) = Some(*tried);
            let next = factor - error / self.slope(window, factor, replayed);
            let next = match (low, high) {
                (Some([a, below]), Some([b, above])) if !(a < next && next < b) => {
                    a - below * (b - a) / (above - below)
                }
                _ => next.clamp(1.0 / MAX_FACTOR, MAX_FACTOR),
            };
            if next.is_nan() || next == factor {
                break;
            }
            let next = self.replay(window, next);
            last = if next.0[1].abs() < best.0[1].abs() {
                best = next;
                None
            } else {
                Some(next)
            };
        }
        best
    }

    fn replay(&self, window: &Window, factor: f64) -> (Tried, Replayed) {
        let network = self.network.times(factor);
        let replayed = replay_window(self.graph, &self.conditions(&network), window);
        ([factor, replayed.elapsed_s / window.elapsed_s - 1.0], replayed)
    }

    /// The derivative of the error by the factor.
    fn slope(&self, window: &Window, factor: f64, replayed: &Replayed) -> f64 {
        let network = self.network.times(factor);
        let path = critical_path(self.graph, &self.conditions(&network), replayed);
        Transfers::new(&network, &path).all / factor / window.elapsed_s
    }

    fn conditions<'c>(&'c self, network: &'c Network) -> Conditions<'c> {
        Conditions::recorded(self.graph, network, self.placement)
    }
}

/// Maximum factor by which all times are changed.
pub(super) const MAX_FACTOR: f64 = 4.0;
