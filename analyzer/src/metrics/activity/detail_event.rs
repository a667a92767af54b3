//! A single event of a row.

use trace_format::reader::{Event, EventKind};

use crate::trace::Run;

use super::kind::Kind;

/// An event of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetailEvent {
    /// Index of the row in [`Activity::rows`](super::rows::Activity::rows).
    pub row: usize,
    /// Global seconds at the start.
    pub begin_s: f64,
    /// Global seconds at the end. A call that did not return ends with the rank if it was the last
    /// call, otherwise at its start.
    pub end_s: f64,
    /// Seconds from the start that belong to its kind: its length, or the time inside polls for a
    /// run of polls.
    pub inside_s: f64,
    pub event: Event,
}

impl DetailEvent {
    /// Number of its function; `None` for the recorder's own time.
    pub fn function(&self) -> Option<u16> {
        match self.event.kind() {
            EventKind::Call(function) => Some(function),
            _ => None,
        }
    }

    pub(super) fn kind_at(&self, run: &Run, position: usize) -> Kind {
        let Some(function) = self.function() else { return Kind::Tool };
        let name = run.ranks[position].file.function_name(function);
        name.map_or(Kind::OtherMpi, Kind::of_function)
    }
}
