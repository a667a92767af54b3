//! What a rank did since it was first looked at.

use trace_format::reader::{BriefEvent, LiveWindow, RankFile};

use super::seconds::{Stretch, is_mpi};

/// Seconds of a thread since it was first looked at. Where it made more calls between two looks than its windows
/// hold, those that are there stand for the others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Inside MPI calls.
    pub in_mpi_s: f64,
    /// Outside them and the recorder.
    pub outside_s: f64,
}

impl Totals {
    /// Adds a stretch that began at a moment of the counter.
    pub fn add(&mut self, stretch: Stretch, from: u64, seconds_per_tick: f64) {
        let Stretch { until, seen, in_mpi, recorder } = stretch;
        if seen > 0 {
            let times = until.saturating_sub(from) as f64 / seen as f64 * seconds_per_tick;
            self.in_mpi_s += times * in_mpi as f64;
            self.outside_s += times * seen.saturating_sub(in_mpi + recorder) as f64;
        }
    }
}

/// Calls of a thread since it was first looked at.
#[derive(Debug, Default)]
pub struct CallCount {
    total: u64,
    /// Of the windows at the last look: number, and calls that may be found otherwise at the next one.
    known: Vec<(u32, u64)>,
    /// Calls of a full window.
    full: u64,
}

impl CallCount {
    /// Counts the calls that the windows, oldest first, gained since the last look. Of windows that were filled and used
    /// again meanwhile, as many as a full one had.
    pub fn count(&mut self, file: &RankFile, windows: &[&LiveWindow]) {
        let last = self.known.last().map(|(sequence, _)| *sequence);
        let mut known = Vec::with_capacity(windows.len());
        for window in windows {
            let before = self.known.iter().find(|(sequence, _)| *sequence == window.sequence);
            let gained = calls(file, window.changed_events());
            // What was there when the thread was first looked at does not count.
            if last.is_some() && last <= Some(window.sequence) {
                self.total += gained.saturating_sub(before.map_or(0, |(_, calls)| *calls));
            }
            known.push((window.sequence, calls(file, window.unsettled_events())));
        }
        if let [full, _] = windows
            && last.is_none_or(|last| last < full.sequence)
        {
            self.full = calls(file, full.events());
        }
        if let (Some(last), Some((first, _))) = (last, known.first()) {
            let unseen = u64::from(first.saturating_sub(last).saturating_sub(1));
            self.total += unseen * self.full;
        }
        self.known = known;
    }

    pub fn total(&self) -> u64 {
        self.total
    }
}

fn calls(file: &RankFile, events: impl Iterator<Item = BriefEvent>) -> u64 {
    let calls = events.filter(|event| is_mpi(file, event.head.function()));
    calls.map(|call| call.polls.map_or(1, |(count, _)| count)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seen_part_of_a_stretch_stands_for_the_rest() {
        let mut totals = Totals::default();
        totals.add(Stretch { until: 100, seen: 100, in_mpi: 30, recorder: 10 }, 0, 1.0);
        totals.add(Stretch { until: 200, seen: 50, in_mpi: 25, recorder: 0 }, 100, 1.0);
        totals.add(Stretch { until: 200, seen: 0, in_mpi: 0, recorder: 0 }, 200, 1.0);
        assert_eq!(totals, Totals { in_mpi_s: 80.0, outside_s: 110.0 });
    }
}
