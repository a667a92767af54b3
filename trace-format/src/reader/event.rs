//! Events as values: complete, or in brief for those who observe many.

use serde::{Deserialize, Serialize};

use super::head::Head;
use crate::layout::*;
use crate::slot::{More, completion};

/// An event as stored in the file: a call, a run of empty polls, or a marker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Function number: [`TOOL`], [`REGION_BEGIN`], [`REGION_END`] or an index into the names.
    pub function: u16,
    /// Communicator's local id; for calls that complete one request, [`COMPLETED`] and
    /// [`CANCELLED`].
    pub communicator: u16,
    /// Counter at the begin.
    pub begin: u64,
    /// Counter at the end; `None` if the call had not returned.
    pub end: Option<u64>,
    /// Whether the call was left by longjmp or an exception; then its end is unknown.
    pub abandoned: bool,
    /// Class of the error that the call returned ([`crate::errors`]); 0 if it succeeded.
    pub error: u32,
    /// Peer, root, region or reason.
    pub peer: i32,
    /// Tag of a message, otherwise 0.
    pub tag: i32,
    /// Id of the window or file that the call works on, otherwise 0.
    pub object: u32,
    /// Bytes sent or moved.
    pub sent: u64,
    /// Bytes received by a collective operation or one that fetches; otherwise 0.
    pub received: u64,
    /// Request or message, shortened to 32 bits; 0: none.
    pub request: u32,
    /// Receiving half of a call that sends and receives.
    pub receive: Option<Half>,
    /// For a run of polls that found nothing, their number and the ticks inside them. The event
    /// then spans the whole run.
    pub polls: Option<(u64, u64)>,
    /// Return address of the call, and whether it is that of a language binding's caller; from
    /// level 1 on.
    pub site: Option<(u64, bool)>,
    /// Bytes 16 to 31 of the slot, for events that use them as a whole: interposed compute
    /// functions store their floating-point operations (`f64`) and bytes (`u64`) there.
    pub payload: [u64; 2],
    /// Offset of its slot; see [`BriefEvent::offset`].
    pub offset: usize,
    /// Number of continuation slots behind it.
    pub continuations: usize,
}

/// What kind of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A call of the function of this number.
    Call(u16),
    /// The recorder's own time.
    Tool,
    /// Begin of the region with this id.
    RegionBegin(u32),
    /// End of the region with this id.
    RegionEnd(u32),
}

impl EventKind {
    #[inline]
    pub(super) fn from_function(function: u16, peer: i32) -> Self {
        match function {
            TOOL => Self::Tool,
            REGION_BEGIN => Self::RegionBegin(peer as u32),
            REGION_END => Self::RegionEnd(peer as u32),
            function => Self::Call(function),
        }
    }
}

impl Event {
    /// An event with these parts, whose function has that detail. `end` is its begin if it has no
    /// end.
    #[inline]
    pub(super) fn new(head: &Head, end: u64, more: &More, detail: Detail, offset: usize) -> Self {
        let (sent, received) = more.moved(&head.0, detail);
        Self {
            function: head.function(),
            communicator: head.communicator(),
            begin: head.begin(),
            end: head.returned().then_some(end),
            abandoned: head.is_abandoned(),
            error: more.error,
            peer: head.peer(),
            tag: if detail == Detail::Tag { head.tag() } else { 0 },
            object: if detail == Detail::Object { head.object() } else { 0 },
            sent,
            received,
            request: head.request(),
            receive: more.receive,
            polls: more.polls,
            site: head.site(),
            payload: head.payload(),
            offset,
            continuations: more.slots,
        }
    }

    /// What kind of event it is.
    #[inline]
    pub fn kind(&self) -> EventKind {
        EventKind::from_function(self.function, self.peer)
    }

    /// Whether it is a call of MPI or of an interposed function, not a marker or tool time.
    #[inline]
    pub fn is_call(&self) -> bool {
        self.function >= FIRST_FUNCTION
    }

    /// For a call that completes one request, whether it did, and whether the operation was
    /// cancelled.
    #[inline]
    pub fn completion(&self) -> (bool, bool) {
        completion(self.communicator)
    }
}

/// The parts of an event that most readers need, at lower cost than [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BriefEvent {
    /// Its fixed part.
    pub head: Head,
    /// Offset of its slot: in the file or, for a slot that is not stored plainly, behind the end of
    /// the file. Unique among the events of a rank.
    pub offset: usize,
    /// Counter at the end; the begin if the call had not returned or was abandoned.
    pub end: u64,
    /// Bytes sent or moved; of the end of a parallel region its ticks, of calls on files those inside them.
    pub sent: u64,
    /// Bytes received in addition, if they are not in the event's own slot.
    pub received: u64,
    /// For a run of polls that found nothing, their number and the ticks inside them.
    pub polls: Option<(u64, u64)>,
    /// As for [`Event::error`].
    pub error: u32,
}

/// Observes events in brief.
pub trait EventObserver {
    /// Observes a plain call, one that succeeded and ends before the thread's next call begins. Its
    /// fixed part, at that offset, gives its length and bytes. Returns whether to continue.
    fn plain(&mut self, head: &Head, offset: usize) -> bool;

    /// Like [`EventObserver::plain`], for any other event.
    fn event(&mut self, event: &BriefEvent) -> bool;
}

/// Whether a continuation slot is known and adds nothing to an event in brief.
#[inline]
pub(super) fn is_irrelevant_in_brief(slot: &Slot) -> bool {
    matches!(slot.duration(), CONTINUES_RECEIVE | CONTINUES_REQUEST | CONTINUES_MESSAGE)
}

impl BriefEvent {
    /// A plain call, as passed to [`EventObserver::plain`].
    #[inline]
    pub fn plain(head: &Head, offset: usize) -> Self {
        Self {
            head: *head,
            offset,
            end: head.begin() + head.ticks(),
            sent: head.bytes(),
            received: 0,
            polls: None,
            error: 0,
        }
    }
}

/// Position of an event among those of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Index among the thread's chunks.
    pub chunk: u32,
    /// Offset from the chunk's first slot in bytes.
    pub at: u32,
}
