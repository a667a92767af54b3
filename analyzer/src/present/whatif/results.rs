//! The answers to questions about a run.

use serde::Serialize;

use crate::diagnosis::Diagnosis;
use crate::replay::{Answer, Assembled, Placement, WhatIf};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Everything that the screen and the document show.
#[derive(Debug, Clone, Copy)]
pub struct WhatIfResults<'a> {
    pub run: &'a Run,
    pub timeline: &'a GlobalTimeline,
    /// Its replay.
    pub what_if: &'a WhatIf<'a>,
    /// The questions with their answers.
    pub answers: &'a [Answer],
    /// Slowdowns, each with the latency that causes it.
    pub tolerances: &'a [Tolerance],
    /// The placement of ranks on hosts that the question assumes.
    pub placement: &'a Placement,
    /// The network that the question assumes.
    pub network: &'a Assembled,
    /// Remarks on that network.
    pub notes: &'a [String],
    /// What the run's figures mean.
    pub diagnosis: &'a Diagnosis<'a>,
}

/// The latency that a run tolerates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tolerance {
    /// How much longer the run may take, as a share.
    pub slowdown: f64,
    /// Seconds; `None` if no latency makes the run take that long.
    pub latency_s: Option<f64>,
    /// Number of replays needed to find it.
    pub replays: u32,
}
