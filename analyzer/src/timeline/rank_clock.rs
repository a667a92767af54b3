//! Converts readings of a rank's counter to global seconds, with an error bound.

use super::alignment::Alignment;

/// A stretch of a counter that runs at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockPiece {
    /// Reading at which it begins; the first piece also holds before that.
    pub begin_ticks: u64,
    /// Global seconds at that reading.
    pub begin_s: f64,
    /// Global seconds per tick.
    pub seconds_per_tick: f64,
}

impl ClockPiece {
    /// Global seconds at a reading of the counter.
    #[inline]
    pub(super) fn seconds(&self, ticks: u64) -> f64 {
        let difference = match ticks >= self.begin_ticks {
            true => (ticks - self.begin_ticks) as f64,
            false => -((self.begin_ticks - ticks) as f64),
        };
        self.begin_s + difference * self.seconds_per_tick
    }
}

/// An error bound over time: linear between points.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BoundLine {
    /// Counter and bound in nanoseconds, ascending; not empty.
    pub points: Vec<(u64, f64)>,
    /// Growth per tick before the first point, nanoseconds.
    pub before_ns: f64,
    /// Growth per tick after the last point, nanoseconds.
    pub after_ns: f64,
}

impl BoundLine {
    /// A bound that is the same everywhere.
    pub fn constant(bound_ns: f64) -> Self {
        Self { points: vec![(0, bound_ns)], before_ns: 0.0, after_ns: 0.0 }
    }

    /// The bound at a reading, nanoseconds.
    pub fn at(&self, ticks: u64) -> f64 {
        let next = self.points.partition_point(|(at, _)| *at <= ticks);
        let between = |a: u64, b: u64| (b - a) as f64;
        match (next.checked_sub(1).map(|last| self.points[last]), self.points.get(next)) {
            (Some((a, low)), Some(&(b, high))) => {
                low + (high - low) * between(a, ticks) / between(a, b)
            }
            (Some((a, low)), None) => low + self.after_ns * between(a, ticks),
            (None, Some(&(b, high))) => high + self.before_ns * between(ticks, b),
            (None, None) => f64::INFINITY,
        }
    }

    /// The largest bound between two readings.
    pub fn largest(&self, begin: u64, end: u64) -> f64 {
        let inside = self.points.iter().filter(|(at, _)| (begin..=end).contains(at));
        let ends = self.at(begin).max(self.at(end));
        inside.fold(ends, |largest, (_, bound_ns)| largest.max(*bound_ns))
    }
}

/// Rounds seconds to the nearest whole nanosecond.
pub fn whole_ns(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// A rank's counter on the global timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct RankClock {
    /// Ascending and continuous; at least one.
    pub(super) pieces: Vec<ClockPiece>,
    /// Error bound against the reference clock over time; `None` if nothing was measured.
    pub bound: Option<BoundLine>,
    /// Its largest value in the rank's stretch, nanoseconds.
    pub bound_ns: Option<f64>,
    /// How the map was found.
    pub alignment: Alignment,
}

impl RankClock {
    /// A clock of one rate, whose error is not known.
    pub(super) fn unaligned(begin_ticks: u64, seconds_per_tick: f64) -> Self {
        Self {
            pieces: vec![ClockPiece { begin_ticks, begin_s: 0.0, seconds_per_tick }],
            bound: None,
            bound_ns: None,
            alignment: Alignment::Unaligned,
        }
    }

    /// Index of the piece after the one that holds at a reading.
    #[inline]
    fn piece_after(&self, ticks: u64) -> usize {
        match self.pieces.len() {
            1 => 1,
            _ => self.pieces.partition_point(|piece| piece.begin_ticks <= ticks).max(1),
        }
    }

    /// Seconds since the earliest rank begin. The difference is taken in whole ticks first.
    #[inline]
    pub fn seconds(&self, ticks: u64) -> f64 {
        self.pieces[self.piece_after(ticks) - 1].seconds(ticks)
    }

    /// The same, rounded to the nearest whole nanosecond.
    pub fn whole_ns(&self, ticks: u64) -> i64 {
        whole_ns(self.seconds(ticks))
    }

    /// The piece that holds at a reading, the first reading for which it holds, and the first after
    /// that for which it does not.
    pub(super) fn piece_at(&self, ticks: u64) -> (ClockPiece, u64, u64) {
        let next = self.piece_after(ticks);
        let piece = self.pieces[next - 1];
        let from = if next == 1 { 0 } else { piece.begin_ticks };
        (piece, from, self.pieces.get(next).map_or(u64::MAX, |next| next.begin_ticks))
    }

    /// Reading of the counter at a global time, to the nearest tick, clamped to the counter's
    /// range.
    pub fn ticks_at(&self, seconds: f64) -> u64 {
        let next = self.pieces.partition_point(|piece| piece.begin_s <= seconds).max(1);
        let piece = &self.pieces[next - 1];
        let difference = ((seconds - piece.begin_s) / piece.seconds_per_tick).round() as i128;
        let ticks = i128::from(piece.begin_ticks).saturating_add(difference);
        u64::try_from(ticks.max(0)).unwrap_or(u64::MAX)
    }

    /// Converts a number of ticks to seconds at the rate of the rank's begin, from which other
    /// rates differ too little to matter.
    pub fn duration_s(&self, ticks: u64) -> f64 {
        ticks as f64 * self.pieces[0].seconds_per_tick
    }

    /// Error bound at a reading, nanoseconds.
    pub fn bound_ns_at(&self, ticks: u64) -> Option<f64> {
        self.bound.as_ref().map(|bound| bound.at(ticks))
    }

    /// Shifts all global times.
    pub(super) fn shift(&mut self, seconds: f64) {
        self.pieces.iter_mut().for_each(|piece| piece.begin_s += seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_ticks_are_inverse_across_pieces() {
        let piece = |begin_ticks, begin_s, seconds_per_tick| ClockPiece {
            begin_ticks,
            begin_s,
            seconds_per_tick,
        };
        let clock = RankClock {
            pieces: vec![piece(1000, 0.0, 1e-3), piece(2000, 1.0, 2e-3), piece(3000, 3.0, 1e-3)],
            ..RankClock::unaligned(0, 1.0)
        };
        for (ticks, seconds) in [(500, -0.5), (1500, 0.5), (2000, 1.0), (2500, 2.0), (4000, 4.0)] {
            assert!((clock.seconds(ticks) - seconds).abs() < 1e-12, "{ticks}");
            assert_eq!(clock.ticks_at(seconds), ticks);
        }
    }

    #[test]
    fn bound_is_linear_between_its_points_and_grows_outside() {
        let line =
            BoundLine { points: vec![(100, 10.0), (200, 30.0)], before_ns: 0.5, after_ns: 0.1 };
        assert_eq!([line.at(100), line.at(150), line.at(200)], [10.0, 20.0, 30.0]);
        assert_eq!([line.at(90), line.at(300)], [15.0, 40.0]);
        assert_eq!(line.largest(120, 250), 35.0);
    }
}
