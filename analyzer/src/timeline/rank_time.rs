//! A rank's stretch and clock.

use crate::trace::ThreadExtent;

use super::frequency::Frequency;
use super::rank_clock::RankClock;
use super::stretch::Ending;

/// A rank's stretch and clock.
#[derive(Debug, Clone, PartialEq)]
pub struct RankTime {
    /// Rank in MPI_COMM_WORLD; the position is that of [`Run::ranks`](crate::trace::Run::ranks).
    pub rank: u32,
    /// Counter when τ_i begins.
    pub begin_ticks: u64,
    /// Counter when τ_i ends; not before the begin.
    pub end_ticks: u64,
    /// Why it ends there.
    pub ending: Ending,
    /// The counter on the global timeline.
    pub clock: RankClock,
    /// The counter's own frequency.
    pub frequency: Frequency,
}

impl RankTime {
    /// Begin in global seconds.
    pub fn begin_s(&self) -> f64 {
        self.clock.seconds(self.begin_ticks)
    }

    /// End in global seconds.
    pub fn end_s(&self) -> f64 {
        self.clock.seconds(self.end_ticks)
    }

    /// First and last known moment of a thread on the rank's counter. The first thread lasts as
    /// long as its rank. Any other lasts from its first event to its last, or to the rank's end if
    /// its last call did not return.
    pub fn thread_stretch(&self, extent: &ThreadExtent) -> Option<(u64, u64)> {
        if extent.number == 0 {
            return Some((self.begin_ticks, self.end_ticks));
        }
        let (first, last) = (extent.first_ticks?, extent.last_ticks?);
        let begin = first.max(self.begin_ticks);
        let last = match extent.last_call.as_ref().is_some_and(|call| call.open) {
            true => self.end_ticks,
            false => last.min(self.end_ticks),
        };
        Some((begin, last.max(begin)))
    }
}
