//! What each thread did when.

use crate::analysis::segments::Segment;
use crate::analysis::spans::Activity as SegmentActivity;
use crate::timeline::RankTime;
use crate::trace::ThreadExtent;

use super::kind::{KINDS, Kind};

/// A row of the timeline: a thread of a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Position of the rank in [`Run::ranks`](crate::trace::Run::ranks).
    pub position: usize,
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Thread number in the file; 0 called MPI first.
    pub thread: u32,
    /// Start of the recorded stretch, global seconds.
    pub begin_s: f64,
    /// End of the recorded stretch, global seconds.
    pub end_s: f64,
    /// Seconds of each kind in each bin.
    pub bins: Vec<[f32; KINDS]>,
    /// Seconds of each kind over the whole row.
    pub totals_s: [f64; KINDS],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongCall {
    /// Index of the row in [`Activity::rows`].
    pub row: usize,
    pub kind: Kind,
    /// Function number in the rank's file.
    pub function: u16,
    /// Global seconds at its start.
    pub begin_s: f64,
    /// Its length.
    pub duration_s: f64,
}

/// Calls by length: class k ≥ 1 holds 2^(k−1) ns ≤ duration < 2^k ns, class 0 those without length.
#[derive(Debug, Clone, PartialEq)]
pub struct Durations {
    /// Calls of each kind in each class.
    pub counts: Vec<[u64; KINDS]>,
}

/// Number of duration classes, which reach up to 2⁶³ ns.
pub(super) const DURATION_CLASSES: usize = 65;

/// How many of the longest calls are kept, per rank and for the run.
pub(super) const LONGEST: usize = 12;

/// What each thread did when.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// Ascending by rank, then thread.
    pub rows: Vec<Row>,
    /// Bins per row.
    pub bins: usize,
    /// Length of the timeline in seconds from 0, divided into the bins.
    pub length_s: f64,
    /// The longest MPI calls that wait for others (send, receive, wait, collective), longest first.
    pub longest: Vec<LongCall>,
    /// All calls by length.
    pub durations: Durations,
    /// Number of calls, without markers and recorder time; a run of polls counts as one.
    pub calls: u64,
    /// From the earliest to the latest moment at which some thread's calls are kept only as totals,
    /// global seconds. There its time by kind is spread evenly.
    pub summed_s: Option<(f64, f64)>,
}

pub(super) fn keep_longest(calls: &mut Vec<LongCall>) {
    calls.sort_by(|a, b| b.duration_s.total_cmp(&a.duration_s).then(a.row.cmp(&b.row)));
    calls.truncate(LONGEST);
}

/// The recorded stretch of a thread; `None` if it has no length.
pub(super) fn stretch(extent: &ThreadExtent, time: &RankTime) -> Option<(u64, u64)> {
    let stretch = time.thread_stretch(extent);
    stretch.filter(|(begin, end)| extent.number == 0 || begin < end)
}

pub(super) fn kind_of(segment: &Segment, mpi: Kind) -> Kind {
    match segment.activity {
        SegmentActivity::Mpi => mpi,
        SegmentActivity::Tool => Kind::Tool,
        SegmentActivity::Compute => Kind::Compute,
        SegmentActivity::Own => Kind::Own,
    }
}
