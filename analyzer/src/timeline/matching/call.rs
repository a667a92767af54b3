//! What matching stores of a call while its message or operation is in flight: little, but enough
//! to find the call again in its rank's file.

use trace_format::reader::StoredEvent;

/// A call on its rank's own counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Call {
    /// Counter when it begins.
    pub begin_ticks: u64,
    /// [`OPEN`] if it did not return.
    end_ticks: u64,
    /// Number that is unique among the events of its rank.
    pub event: u64,
    /// Its thread's number.
    pub thread: u32,
    /// Its function's number in the rank's file.
    pub function: u16,
}

/// In place of a counter reading; no counter reaches it.
const OPEN: u64 = u64::MAX;

impl Call {
    #[inline]
    pub(super) fn of(thread: u32, event: &StoredEvent<'_>) -> Self {
        Self {
            begin_ticks: event.head.begin(),
            end_ticks: event.end().unwrap_or(OPEN),
            event: event.number(),
            thread,
            function: event.function(),
        }
    }

    /// Counter when it returned; `None` if it did not.
    #[inline]
    pub fn end_ticks(&self) -> Option<u64> {
        (self.end_ticks != OPEN).then_some(self.end_ticks)
    }
}
