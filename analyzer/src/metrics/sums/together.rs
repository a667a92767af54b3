//! What the threads of a rank do at the same time.

use crate::analysis::RankView;
use crate::analysis::segments::{ComputeMode, Functions, Segment, Segmenter, Segments};
use crate::analysis::spans::Activity;
use crate::analysis::union::{Precedence, merged};
use crate::timeline::RankTime;

/// What the threads of a rank do together, in order of precedence.
pub(super) const ACTIVITIES: usize = 3;

/// Useful work, MPI or the recorder; `None` for the program's own code that is not useful.
pub(super) fn activity_of(segment: &Segment, mode: ComputeMode) -> Option<usize> {
    match segment.activity {
        _ if segment.is_useful(mode) => Some(0),
        Activity::Mpi => Some(1),
        Activity::Tool => Some(2),
        Activity::Compute | Activity::Own => None,
    }
}

/// For each of several lists of stretches, the ticks in which a thread does useful work, the rest
/// of those in which one is in MPI, and the rest of those in which one is in the recorder.
pub(super) fn together(
    rank: RankView<'_>,
    stretches: &[&[(u64, u64)]],
    functions: &Functions,
    mode: ComputeMode,
) -> Vec<[u64; ACTIVITIES]> {
    let mut sequences = Vec::new();
    if rank.thread(0).is_none() {
        let RankTime { begin_ticks, end_ticks, .. } = *rank.time;
        let segmenter = Segmenter::new(begin_ticks, end_ticks, functions);
        sequences.push(Segments::new(None, segmenter));
    }
    for thread in rank.threads() {
        let Some((begin, end)) = thread.stretch else { continue };
        let segmenter = Segmenter::new(begin, end, functions);
        sequences.push(Segments::new(Some(thread.spans(None)), segmenter));
    }
    let intervals = sequences.into_iter().map(|segments| {
        segments.filter_map(|segment| {
            let activity = activity_of(&segment, mode)?;
            Some((segment.begin_ticks, segment.end_ticks, activity))
        })
    });
    let mut of_all: Vec<Precedence<ACTIVITIES>> =
        stretches.iter().map(|stretches| Precedence::new(stretches)).collect();
    for interval in merged(intervals.collect()) {
        of_all.iter_mut().for_each(|of| of.add(interval));
    }
    of_all.into_iter().map(Precedence::finish).collect()
}
