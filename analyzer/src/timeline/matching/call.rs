//! What matching stores of a call while its message or operation is in flight: little, but enough
//! to find the call again in its rank's file.

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use trace_format::reader::StoredEvent;

/// A call on its rank's own counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Encode, Decode)]
#[serde(from = "CallOnWire", into = "CallOnWire")]
pub struct Call {
    /// Counter when it begins.
    pub begin_ticks: u64,
    /// [`OPEN`] if it did not return.
    pub(super) end_ticks: u64,
    /// Number that is unique among the events of its rank.
    pub event: u64,
    /// Its thread's number.
    pub thread: u32,
    /// Its function's number in the rank's file.
    pub function: u16,
}

/// A call as it is sent to another process: begin, length, event, thread and function. Small
/// numbers take few bytes.
#[derive(Serialize, Deserialize)]
struct CallOnWire(u64, u64, u64, u32, u16);

impl From<Call> for CallOnWire {
    fn from(call: Call) -> Self {
        let ticks = call.end_ticks.wrapping_sub(call.begin_ticks);
        Self(call.begin_ticks, ticks, call.event, call.thread, call.function)
    }
}

impl From<CallOnWire> for Call {
    fn from(CallOnWire(begin_ticks, ticks, event, thread, function): CallOnWire) -> Self {
        let end_ticks = begin_ticks.wrapping_add(ticks);
        Self { begin_ticks, end_ticks, event, thread, function }
    }
}

/// In place of a counter reading; no counter reaches it.
const OPEN: u64 = u64::MAX;

impl Call {
    #[inline]
    pub(super) fn new(thread: u32, event: &StoredEvent<'_>) -> Self {
        Self {
            begin_ticks: event.head.begin(),
            end_ticks: event.end().unwrap_or(OPEN),
            event: event.number(),
            thread,
            function: event.function(),
        }
    }

    /// No call.
    pub(super) const NONE: Self =
        Self { begin_ticks: 0, end_ticks: 0, event: 0, thread: 0, function: 0 };

    /// Whether its thread called the same function.
    #[inline]
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.thread, self.function) == (other.thread, other.function)
    }

    /// Counter when it returned; `None` if it did not.
    #[inline]
    pub fn end_ticks(&self) -> Option<u64> {
        (self.end_ticks != OPEN).then_some(self.end_ticks)
    }
}
