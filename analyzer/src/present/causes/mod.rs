//! The screen and the document of `gammachi why`, made from [`Causes`].

mod document;
mod rows;
mod screen;
mod verdict;
mod words;

use crate::causes::Causes;
use crate::replay::NoIdeal;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

pub use document::json;
pub(super) use document::{Summary, summary};
pub(super) use rows::wait_rows;
pub use screen::screen;
pub(super) use verdict::sentences;

/// What is shown.
#[derive(Debug, Clone, Copy)]
pub struct Why<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its timeline.
    pub timeline: &'a GlobalTimeline,
    /// What was found.
    pub causes: &'a Causes<'a>,
    /// The run's time on an ideal network over its own.
    pub ideal: Result<f64, NoIdeal>,
    /// Only what concerns this rank of MPI_COMM_WORLD: its waits, and those for it.
    pub rank: Option<u32>,
}

impl Why<'_> {
    /// What cannot be said, and why.
    fn missing(&self) -> Vec<String> {
        let unknown = self.causes.unknown.iter().map(|what| words::unknown(*what));
        unknown.chain(self.ideal.err().and_then(words::no_ideal)).collect()
    }

    /// Whether a line, or [`crate::causes::NOBODY`], is of the rank that is asked for.
    fn concerns(&self, line: u32) -> bool {
        let rank = self.causes.lines.all.get(line as usize).map(|line| line.rank);
        self.rank.is_none_or(|asked| rank == Some(asked))
    }
}
