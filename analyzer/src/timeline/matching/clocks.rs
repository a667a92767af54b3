//! The clocks of all ranks, for a thread that converts many readings which lie close together: the
//! last used piece of each clock is cached.

use crate::timeline::global::GlobalTimeline;
use crate::timeline::rank_clock::{ClockPiece, RankClock};
use crate::trace::Run;

/// Clocks by position in the run.
#[derive(Debug, Clone)]
pub(super) struct Clocks<'a> {
    timeline: &'a GlobalTimeline,
    used: Vec<Used>,
}

/// The last used piece of a rank's clock.
#[derive(Debug, Clone, Copy)]
struct Used {
    /// Its rank in the world.
    rank: u32,
    piece: ClockPiece,
    /// Readings for which it holds: from `from`, below `to`.
    from: u64,
    to: u64,
}

#[derive(Debug)]
pub(super) struct Clock<'c> {
    clock: &'c RankClock,
    used: &'c mut Used,
}

impl<'a> Clocks<'a> {
    pub fn new(run: &Run, timeline: &'a GlobalTimeline) -> Self {
        let used = run.ranks.iter().zip(&timeline.ranks).map(|(trace, time)| {
            let (piece, from, to) = time.clock.piece_at(0);
            Used { rank: trace.rank, piece, from, to }
        });
        Self { timeline, used: used.collect() }
    }

    /// Clock of the rank at a position.
    #[inline]
    pub fn at(&mut self, position: usize) -> Clock<'_> {
        Clock { clock: &self.timeline.ranks[position].clock, used: &mut self.used[position] }
    }

    /// Clock of a rank of the world, if it has a file.
    #[inline]
    pub fn of_rank(&mut self, world_rank: u32) -> Option<Clock<'_>> {
        // If no file is missing, the position is the rank.
        let same = self.used.get(world_rank as usize).is_some_and(|used| used.rank == world_rank);
        let position = match same {
            true => world_rank as usize,
            false => self.used.binary_search_by_key(&world_rank, |used| used.rank).ok()?,
        };
        Some(self.at(position))
    }
}

impl Clock<'_> {
    /// Like [`RankClock::seconds`].
    #[inline]
    pub fn seconds(&mut self, ticks: u64) -> f64 {
        if !(self.used.from..self.used.to).contains(&ticks) {
            self.find(ticks);
        }
        self.used.piece.seconds(ticks)
    }

    /// Like [`RankClock::ticks_at`].
    pub fn ticks_at(&self, seconds: f64) -> u64 {
        self.clock.ticks_at(seconds)
    }

    #[cold]
    fn find(&mut self, ticks: u64) {
        (self.used.piece, self.used.from, self.used.to) = self.clock.piece_at(ticks);
    }
}
