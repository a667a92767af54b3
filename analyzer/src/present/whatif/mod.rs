//! The screen and the document of `gammachi whatif`, made from [`WhatIf`].

mod document;
mod savings;
mod screen;
mod words;

use crate::replay::{Answer, Assembled, NotReplayable, Origin, Placement, WhatIf};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

pub use document::json;
pub use savings::{Saving, aside};
pub use screen::screen;
pub use words::sentence;

/// What is shown.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its timeline.
    pub timeline: &'a GlobalTimeline,
    /// Its replay.
    pub what_if: &'a WhatIf<'a>,
    /// What was asked, and the answers.
    pub answers: &'a [Answer],
    /// Slowdowns with the latencies that are tolerated for them.
    pub tolerances: &'a [Tolerance],
    /// The hosts of the question.
    pub placement: &'a Placement,
    /// The network of the question.
    pub network: &'a Assembled,
    /// What is to be known of it, in words.
    pub notes: &'a [String],
}

/// How large a latency may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// How much longer the run may take, of one.
    pub slowdown: f64,
    /// Seconds; `None` where no latency makes it so long.
    pub latency_s: Option<f64>,
    /// Replays that finding it took.
    pub replays: u32,
}

/// Where a parameter comes from, in a word.
fn origin(of: Origin) -> &'static str {
    match of {
        Origin::Run => "run",
        Origin::Assumed => "assumed",
        Origin::Machine => "machine",
        Origin::Given => "given",
    }
}

/// Why a run cannot be replayed, as the end of a sentence.
pub fn reason(why: NotReplayable) -> &'static str {
    match why {
        NotReplayable::NoAttributes => {
            "it was recorded at level 0, which keeps no peers and communicators (record with --level 1)"
        }
        NotReplayable::NotWhole => {
            "only totals are kept of some of its calls (record without --keep totals and without a \
             size limit)"
        }
        NotReplayable::MissingRanks => "some of its ranks have no file",
        NotReplayable::TooLong => "it has more than 4 billion calls",
        NotReplayable::NoTime => "it has no length",
    }
}
