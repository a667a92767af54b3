//! What each rank did as a whole, over all its threads.
//!
//! A rank computes while any of its threads computes. It waits while none computes and at least one
//! waits, and transfers in the rest of the time that any is inside MPI. So its parts add up to the
//! run, however many threads it has.

use serde::{Deserialize, Serialize};

use crate::analysis::RankView;
use crate::analysis::segments::{Functions, Segmenter, Segments};
use crate::analysis::spans::Activity;
use crate::analysis::union::{Interval, Precedence, merged};

use super::contexts::{Contexts, RECORDER, WAITING, WAITING_FOR_UNKNOWN};
use super::lines::{Line, Lines};
use super::profile::Profile;
use super::waits::Waits;
use super::whole_ticks::WholeTicks;

/// What a rank did, ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankTime {
    /// It computed.
    pub computing: i64,
    /// It waited; also before its begin and, unless it was killed, after its end, until the run's.
    pub waiting: i64,
    /// It was in MPI without waiting.
    pub transfer: i64,
    /// It was in the recorder.
    pub recorder: i64,
    /// It had ended without MPI_Finalize.
    pub gone: i64,
}

/// In order of precedence.
const COMPUTES: usize = 0;
const WAITS: usize = 1;
const TRANSFERS: usize = 2;
const IN_RECORDER: usize = 3;

impl RankTime {
    /// Of a rank with several threads, between its begin and its end.
    pub(super) fn of_threads(
        rank: RankView<'_>,
        (clock, lines, waits): (&WholeTicks, &Lines, &Waits),
        functions: &Functions,
    ) -> Self {
        let position = rank.position;
        let at = |ticks: u64| clock.at(position, ticks).max(0) as u64;
        let activity = |activity: Activity| match activity {
            Activity::Compute | Activity::Own => COMPUTES,
            Activity::Mpi => TRANSFERS,
            Activity::Tool => IN_RECORDER,
        };
        let (begin, end) = (rank.time.begin_ticks, rank.time.end_ticks);
        let mut sequences: Vec<Box<dyn Iterator<Item = Interval> + '_>> = Vec::new();
        // A first thread without events was outside MPI all the time.
        let first = rank.thread(0).is_none().then(|| {
            let segmenter = Segmenter::new(begin, end, functions);
            Segments::new(None, segmenter)
        });
        let segments = rank.threads().filter_map(|thread| {
            let (begin, end) = thread.stretch?;
            let segmenter = Segmenter::new(begin, end, functions);
            Some(Segments::new(Some(thread.spans(None)), segmenter))
        });
        for segments in first.into_iter().chain(segments) {
            sequences.push(Box::new(
                segments
                    .map(move |of| (at(of.begin_ticks), at(of.end_ticks), activity(of.activity))),
            ));
        }
        for thread in rank.threads() {
            let Some(line) = lines.of(position, thread.thread.number) else { continue };
            // The waiting of polls lies at their begin, as their time inside MPI does.
            let interval = |(begin, ticks): (i64, i64)| {
                (begin.max(0) as u64, (begin + ticks).max(0) as u64, WAITS)
            };
            let all = waits.of(line).iter().map(|wait| (wait.begin, wait.ticks));
            let mut all: Vec<Interval> = all.map(interval).collect();
            all.sort_unstable();
            sequences.push(Box::new(all.into_iter()));
        }
        let (begin, end) = stretch_of(rank, clock, lines);
        let stretch = [(begin.max(0) as u64, end.max(0) as u64)];
        let mut together = Precedence::<4>::new(&stretch);
        merged(sequences).for_each(|interval| together.add(interval));
        let [computing, waiting, transfer, recorder] = together.finish().map(|ticks| ticks as i64);
        Self { computing, waiting, transfer, recorder, gone: 0 }
    }

    /// Of a rank with one thread, between its begin and its end.
    pub(super) fn of_profile(profile: &Profile, contexts: &Contexts) -> Self {
        let mut time = Self::default();
        for (context, ticks) in profile.all() {
            let part = match *context {
                WAITING | WAITING_FOR_UNKNOWN => &mut time.waiting,
                RECORDER => &mut time.recorder,
                _ if contexts.get(*context).is_computing() => &mut time.computing,
                _ => &mut time.transfer,
            };
            *part += ticks;
        }
        time
    }

    /// Adds what lies before the rank's begin and after its end in the run.
    pub(super) fn with_ends(
        self,
        rank: RankView<'_>,
        (clock, lines): (&WholeTicks, &Lines),
        run: (i64, i64),
    ) -> Self {
        let (begin, end) = stretch_of(rank, clock, lines);
        let line: &Line = &lines.all[lines.first_of(rank.position) as usize];
        let after = run.1 - end;
        let (waits_after, gone) = if line.finalizes { (after, 0) } else { (0, after) };
        Self { waiting: self.waiting + begin - run.0 + waits_after, gone, ..self }
    }
}

/// Begin and end of a rank, within the run.
fn stretch_of(rank: RankView<'_>, clock: &WholeTicks, lines: &Lines) -> (i64, i64) {
    let (first, last) = lines.extent().unwrap_or_default();
    let at = |ticks: u64| clock.at(rank.position, ticks).clamp(first, last);
    let begin = at(rank.time.begin_ticks);
    (begin, at(rank.time.end_ticks).max(begin))
}
