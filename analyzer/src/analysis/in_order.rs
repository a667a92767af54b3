//! The events of several ranks, ordered by their start on the global timeline.

use trace_format::reader::Event;

use crate::timeline::event_streams::{EventStreams, Moment, Part, Step};

use super::views::Analysis;

/// Iterates over events: position of the rank in the run, number of the thread, and the event. The
/// events of one rank come in order of their start on its own counter. If events of several ranks
/// begin in the same nanosecond, that of the lowest rank comes first.
pub struct InOrder<'a, F> {
    streams: EventStreams<'a, F>,
}

impl<F: Fn(usize, &Event) -> bool> Iterator for InOrder<'_, F> {
    type Item = (usize, u32, Event);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Step::Event { rank, thread, event } = self.streams.next_step()? {
                return Some((rank, thread, *event));
            }
        }
    }
}

impl<'a> Analysis<'a> {
    /// Reads the events of the ranks at these positions (ascending) in order of time, filtered by
    /// `wanted`, which gets the rank's position. Runs in one thread and holds one event per stream.
    pub fn in_order<F: Fn(usize, &Event) -> bool>(
        &self,
        positions: impl IntoIterator<Item = usize>,
        wanted: F,
    ) -> InOrder<'a, F> {
        let order = (Part::All, Moment::Begin);
        InOrder { streams: EventStreams::new(self.run, self.timeline, positions, order, wanted) }
    }
}
