//! What a thread did in the last seconds, summed from its windows.

use std::collections::VecDeque;

use trace_format::functions::FIRST_FUNCTION;
use trace_format::layout::TOOL;
use trace_format::meaning::Class;
use trace_format::reader::{BriefEvent, LiveWindow, RankFile};

/// Seconds that the figures are of.
pub const SPAN_S: f64 = 10.0;

/// A stretch between two looks, as far as the window still has it. All in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Its end.
    pub until: u64,
    /// Length of what the window has of it.
    pub seen: u64,
    /// Inside MPI calls.
    pub in_mpi: u64,
    /// The recorder's own time.
    pub recorder: u64,
}

impl Stretch {
    fn lost(&self) -> u64 {
        self.in_mpi + self.recorder
    }
}

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Inside a call of this function, or a run of polls by it, since a moment.
    InMpi { function: u16, since: u64 },
    /// Outside MPI since a moment.
    Outside { since: u64 },
}

/// The last seconds of a thread.
#[derive(Debug, Default)]
pub struct RecentSeconds {
    stretches: VecDeque<Stretch>,
    /// Their sums.
    seen: u64,
    lost: u64,
    /// Up to where its time was counted.
    counted_to: u64,
}

impl RecentSeconds {
    /// Counts what the window shows of the time since the last look, and forgets what ended before `from`.
    pub fn add(&mut self, stretch: Stretch, from: u64) {
        self.counted_to = stretch.until;
        self.stretches.push_back(stretch);
        self.seen += stretch.seen;
        self.lost += stretch.lost();
        let is_past = |first: &&Stretch| first.until <= from;
        while let Some(first) = self.stretches.front().filter(is_past).copied() {
            self.stretches.pop_front();
            self.seen -= first.seen;
            self.lost -= first.lost();
        }
    }

    /// Up to where its time was counted; 0 before the first look.
    pub fn counted_to(&self) -> u64 {
        self.counted_to
    }

    /// Ticks that the windows showed.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Share of its time outside MPI and the recorder (γ over τ); `None` if nothing was seen of it.
    pub fn efficiency(&self) -> Option<f64> {
        let Self { seen, lost, .. } = *self;
        (seen > 0).then(|| seen.saturating_sub(lost) as f64 / seen as f64)
    }
}

/// Whether it is a function of MPI.
pub(super) fn is_mpi(file: &RankFile, function: u16) -> bool {
    function >= FIRST_FUNCTION
        && file.meaning(function).is_none_or(|meaning| meaning.class != Class::Compute)
}

fn is_inside(event: &BriefEvent) -> bool {
    event.head.is_open() && !event.head.is_abandoned()
}

/// What the windows of a thread, oldest first, show of the time from one moment to another. What ended before the last
/// look ended before that time.
pub fn stretch(file: &RankFile, windows: &[&LiveWindow], from: u64, until: u64) -> Stretch {
    let from = from.max(windows.first().map_or(until, |oldest| oldest.opened_ticks));
    let mut sum = Stretch { until, seen: until.saturating_sub(from), ..Stretch::default() };
    for event in windows.iter().flat_map(|window| window.changed_events()) {
        let (begin, end) = (event.head.begin(), event.end);
        let end = if is_inside(&event) { until } else { end.min(until) };
        let inside = end.saturating_sub(begin.max(from));
        if event.head.function() == TOOL {
            sum.recorder += inside;
        } else if is_mpi(file, event.head.function()) {
            sum.in_mpi += match event.polls {
                // As if the polls were spread evenly.
                Some((_, ticks)) if end > begin => {
                    (inside as f64 * (ticks as f64 / (end - begin) as f64).min(1.0)) as u64
                }
                _ => inside,
            };
        }
    }
    sum
}

/// Where a thread is according to its newest window, at a moment of its counter.
pub fn place(file: &RankFile, window: &LiveWindow, now: u64) -> Place {
    /// A run of polls goes on if the last one was no longer ago than so many of its polls took.
    const POLLS: u64 = 20;
    let is_call = |event: &BriefEvent| is_mpi(file, event.head.function());
    let last = window.changed_events().filter(is_call).last();
    let last = last.or_else(|| window.events().filter(is_call).last());
    let Some(last) = last else { return Place::Outside { since: window.opened_ticks } };
    let (function, since) = (last.head.function(), last.head.begin());
    let polls_on = last.polls.is_some_and(|(count, _)| {
        let span = last.end.saturating_sub(since);
        count > 1 && now.saturating_sub(last.end) <= span / (count - 1) * POLLS
    });
    match is_inside(&last) || polls_on {
        true => Place::InMpi { function, since },
        false => Place::Outside { since: last.end },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiency_is_of_the_last_seconds_that_were_seen() {
        let mut recent = RecentSeconds::default();
        assert_eq!(recent.efficiency(), None);
        recent.add(Stretch { until: 100, seen: 100, in_mpi: 100, recorder: 0 }, 0);
        assert_eq!(recent.efficiency(), Some(0.0));
        // Of the second hundred, the window has only the last forty.
        recent.add(Stretch { until: 200, seen: 40, in_mpi: 10, recorder: 10 }, 100);
        assert_eq!(recent.efficiency(), Some(0.5));
        assert_eq!((recent.counted_to(), recent.seen()), (200, 40));
    }
}
