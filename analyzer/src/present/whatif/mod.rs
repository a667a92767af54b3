//! Renders the answers of `gammachi whatif` ([`WhatIf`]) as a screen and as a JSON document.

mod document;
mod pictures;
mod savings;
mod screen;
mod words;

use serde::Serialize;

use crate::diagnosis::Diagnosis;
use crate::replay::{Answer, Assembled, NotReplayable, Origin, Placement, WhatIf};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

pub use document::json;
pub use pictures::sensitivity;
pub use savings::{ForReport, Saving};
pub use screen::screen;
pub use words::sentence;

/// Everything that the screen and the document show.
#[derive(Debug, Clone, Copy)]
pub struct WhatIfResults<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its timeline.
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
pub struct Tolerance {
    /// How much longer the run may take, as a share.
    pub slowdown: f64,
    /// Seconds; `None` if no latency makes the run take that long.
    pub latency_s: Option<f64>,
    /// Number of replays needed to find it.
    pub replays: u32,
}

/// The word for a parameter's origin.
fn origin(of: Origin) -> &'static str {
    match of {
        Origin::Run => "run",
        Origin::Assumed => "assumed",
        Origin::Machine => "machine",
        Origin::Given => "given",
    }
}

/// Why a run cannot be replayed, worded as the end of a sentence.
pub fn reason(why: NotReplayable) -> &'static str {
    match why {
        NotReplayable::NoAttributes => {
            "it was recorded at level 0, which keeps no peers and communicators (record with --level 1)"
        }
        NotReplayable::NotWhole => {
            "some of its calls are kept only as totals (record without --profile-only and without \
             a size limit)"
        }
        NotReplayable::MissingRanks => "some of its ranks have no file",
        NotReplayable::TooLong => "it has more than 4 billion calls",
        NotReplayable::NoTime => "it has no length",
    }
}
