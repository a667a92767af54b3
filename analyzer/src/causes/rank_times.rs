//! What each rank did as a whole, over all its threads.

use super::State;
use super::contexts::{Contexts, RECORDER, WAITING, WAITING_FOR_UNKNOWN};
use super::lines::Line;
use super::profile::Profile;
use super::waits::Wait;

/// What a rank did, ticks; the parts add up to the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

impl RankTime {
    /// Between the rank's begin and its end.
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

    /// Adds what lies before the begin and after the end of a rank in the run, given its first line
    /// and that line's waits. What is too short to be a wait there is in MPI_Init or MPI_Finalize,
    /// and counts as transfer, as it does elsewhere.
    pub(super) fn with_ends(
        self,
        (begin, end): (i64, i64),
        (line, waits): (&Line, &[Wait]),
        run: (i64, i64),
    ) -> Self {
        let of = |state: State| {
            let all = waits.iter().filter(|wait| wait.state == state);
            all.map(|wait| wait.ticks).sum::<i64>()
        };
        let (skew, at_end) = (of(State::StartSkew), of(State::WaitAtFinalize));
        let (before, after) = (begin - run.0 - skew, run.1 - end - at_end);
        let (in_finalize, gone) = if line.finalizes { (after, 0) } else { (0, after) };
        Self {
            waiting: self.waiting + skew + at_end,
            transfer: self.transfer + before + in_finalize,
            gone,
            ..self
        }
    }
}
