//! A rank and a thread whose events are read.

use std::ops::Range;
use std::sync::OnceLock;

use trace_format::reader::Thread;

use crate::processes::Processes;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::{GlobalTimeline, RankTime};
use crate::trace::{RankTrace, Run, ThreadExtent};

/// A rank whose events are read.
#[derive(Debug, Clone, Copy)]
pub struct RankView<'a> {
    /// Its position in the run.
    pub position: usize,
    /// Its file and the facts about it.
    pub trace: &'a RankTrace,
    /// Its stretch and clock.
    pub time: &'a RankTime,
}

/// A thread whose events are read.
#[derive(Debug, Clone, Copy)]
pub struct ThreadView<'a> {
    pub rank: RankView<'a>,
    /// Its chunks and totals.
    pub thread: &'a Thread,
    /// Its extent, found when the run was opened.
    pub extent: &'a ThreadExtent,
    /// Its recorded stretch on the rank's counter; `None` if that has no length.
    pub stretch: Option<(u64, u64)>,
}

/// A run whose events observers read.
#[derive(Debug)]
pub struct Analysis<'a> {
    pub run: &'a Run,
    pub timeline: &'a GlobalTimeline,
    /// The processes that read it together; this one alone unless the analysis is divided.
    pub processes: Processes,
    /// Positions of the ranks whose events are read here.
    pub(super) own: Range<usize>,
    pub(super) communicators: OnceLock<CommunicatorTable>,
}
