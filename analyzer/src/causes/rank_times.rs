//! What each rank did as a whole, over all its threads.

use super::contexts::{Contexts, RECORDER, WAITING, WAITING_FOR_UNKNOWN};
use super::lines::Line;
use super::part::Part;
use super::profile::{Hint, Profile};
use super::states::State;
use super::wait::Wait;

/// What a rank did, ticks; it adds up to the rank's time in the run, or in a part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RankTime {
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
    /// What a rank did in a run, or in a part of it, given the profile of all its threads, its first
    /// line and that line's waits.
    pub(super) fn new(
        (profile, contexts): (&Profile, &Contexts),
        (line, waits): (&Line, &[Wait]),
        (run, part): ((i64, i64), Option<&Part>),
    ) -> Self {
        let whole = [(line.begin, line.end)];
        let stretches = part.map_or(&whole[..], |part| part.stretches(line.position));
        let mut time = Self::default();
        let mut hint = Hint::default();
        for stretch in stretches {
            let sums = profile.sums_of(profile.stretches(*stretch, &mut hint));
            sums.for_each(|(context, ticks)| time.add(context, ticks, contexts));
        }
        let inside = |from, to| match part {
            Some(part) => part.inside(line.position, (from, to)),
            None => to - from,
        };
        time.with_ends(line, waits, (run, &inside))
    }

    fn add(&mut self, context: u32, ticks: i64, contexts: &Contexts) {
        *match context {
            WAITING | WAITING_FOR_UNKNOWN => &mut self.waiting,
            RECORDER => &mut self.recorder,
            _ if contexts.get(context).is_computing() => &mut self.computing,
            _ => &mut self.transfer,
        } += ticks;
    }

    /// Adds what lies before the begin and after the end of a rank in the run. What is too short to
    /// be a wait there is in MPI_Init or MPI_Finalize, and counts as transfer, as it does elsewhere.
    fn with_ends(
        self,
        line: &Line,
        waits: &[Wait],
        (run, inside): ((i64, i64), &dyn Fn(i64, i64) -> i64),
    ) -> Self {
        let of = |state: State| {
            let all = waits.iter().filter(|wait| wait.state == state);
            all.map(|wait| inside(wait.begin, wait.until)).sum::<i64>()
        };
        let (skew, at_end) = (of(State::StartSkew), of(State::WaitAtFinalize));
        let before = inside(run.0, line.begin) - skew;
        let after = inside(line.end, run.1) - at_end;
        let (in_finalize, gone) = if line.finalizes { (after, 0) } else { (0, after) };
        Self {
            waiting: self.waiting + skew + at_end,
            transfer: self.transfer + before + in_finalize,
            gone,
            ..self
        }
    }
}
