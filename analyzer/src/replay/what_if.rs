//! What would change a run, and the answer to a question about it.

use std::sync::OnceLock;

use super::backward::Path;
use super::build::NotReplayable;
use super::calibrate::Calibration;
use super::change::Change;
use super::forward::Replayed;
use super::graph::Graph;
use super::network::{Network, Placement};

/// Why the ideal time (T₀) is unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoIdeal {
    /// It was not requested.
    NotAsked,
    /// The run has so many calls that it is replayed only on request.
    TooManyCalls(u64),
    /// It cannot be replayed.
    NotReplayable(NotReplayable),
    /// The relative error of its replay is too large.
    Off(f64),
    /// It has so many calls that it is not replayed along with a report.
    NotAside(u64),
    /// Ranks enter the selected part unequally often, so that which stretches belong together is
    /// not known.
    UnequallyOften,
}

/// The effect of some changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub changes: Vec<Change>,
    /// Time of the run with the changes, seconds.
    pub elapsed_s: f64,
    /// The interval that contains the time in nine of ten cases, seconds.
    pub interval_s: (f64, f64),
    /// The shortest and the longest time with a division of the costs of transfers that the run
    /// does not exclude, seconds.
    pub divided_s: (f64, f64),
    /// Number of calls that were released although what they needed never came.
    pub released: u64,
}

impl Answer {
    /// The time, unless the run tells no more than an interval, seconds.
    pub fn time_s(&self) -> Option<f64> {
        let (shortest, longest) = self.divided_s;
        (longest <= MAX_DIVIDED * shortest).then_some(self.elapsed_s)
    }
}

/// A run that has been replayed for comparison, ready for questions.
#[derive(Debug)]
pub struct WhatIf<'a> {
    /// The run as a graph.
    pub graph: Graph<'a>,
    /// Its recorded placement.
    pub placement: Placement,
    /// Its network.
    pub calibration: Calibration,
    /// The self-replay: the replay without changes.
    pub replayed: Replayed,
    /// The critical path of the self-replay, once it is needed.
    pub(super) path: OnceLock<Path>,
    /// Seconds of computation by line, in the whole run.
    pub(super) own: Vec<f64>,
    /// The answer on an ideal network, once it is needed: several ask for it.
    pub(super) ideal: OnceLock<Answer>,
}

/// An answer whose interval is wanted.
pub(super) struct PredictedTime<'a> {
    pub changes: &'a [Change],
    pub elapsed_s: f64,
    /// The network with the changes.
    pub network: &'a Network,
    /// The critical path with the changes, if it matters.
    pub path: Option<&'a Path>,
    /// The placement with the changes.
    pub placement: &'a Placement,
    /// The longest computation of a line, seconds.
    pub computing_s: f64,
}

/// Above this ratio of the longest time to the shortest, the run does not tell the time.
pub(super) const MAX_DIVIDED: f64 = 2.0;
