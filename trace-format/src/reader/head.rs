//! What every event says in its own place, whatever its continuations add. Who reads events knows this and
//! [`Event`](super::Event), not where the bytes stand.

use super::event::{EventKind, join};
use crate::layout::*;

/// The fixed part of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head(pub(super) Slot);

impl Head {
    /// Function number, without flags.
    #[inline]
    pub fn function(&self) -> u16 {
        self.0.function()
    }

    /// What kind of event it is.
    #[inline]
    pub fn kind(&self) -> EventKind {
        EventKind::of(self.function(), self.0.peer)
    }

    /// Whether it is a call of MPI or of an interposed function, not a marker or tool time.
    #[inline]
    pub fn is_call(&self) -> bool {
        self.function() >= FIRST_FUNCTION
    }

    /// Counter at the begin.
    #[inline]
    pub fn begin(&self) -> u64 {
        self.0.begin
    }

    /// Ticks from begin to end, of an event whose continuations do not say otherwise.
    #[inline]
    pub fn ticks(&self) -> u64 {
        u64::from(self.0.duration())
    }

    /// Whether its continuations say how long it was: it was long, or is a run of polls.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.0.duration() == DURATION_ESCAPE
    }

    /// Whether the call had not returned when this was last written.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Whether the call was left by longjmp or an exception.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }

    /// Whether the call returned.
    #[inline]
    pub fn returned(&self) -> bool {
        self.0.function_and_flags() & (FUNCTION_OPEN | FUNCTION_ABANDONED) == 0
    }

    /// Communicator's local id; see [`Head::completion`].
    #[inline]
    pub fn communicator(&self) -> u16 {
        self.0.communicator()
    }

    /// Of a call that completes one request, whether it did, and whether by cancelling.
    #[inline]
    pub fn completion(&self) -> (bool, bool) {
        completion(self.0.communicator())
    }

    /// As [`Event::peer`](super::Event::peer).
    #[inline]
    pub fn peer(&self) -> i32 {
        self.0.peer
    }

    /// As [`Event::tag`](super::Event::tag).
    #[inline]
    pub fn tag(&self) -> i32 {
        self.0.tag
    }

    /// Bytes sent or moved, of an event whose continuations do not say otherwise.
    #[inline]
    pub fn bytes(&self) -> u64 {
        u64::from(self.0.bytes)
    }

    /// As [`Event::request`](super::Event::request).
    #[inline]
    pub fn request(&self) -> u32 {
        self.0.request
    }

    /// As [`Event::site`](super::Event::site), where the event has one.
    #[inline]
    pub fn site(&self) -> Option<(u64, bool)> {
        let Slot { site, .. } = self.0;
        (site != 0).then_some((site & !SITE_BEHIND_BINDING, site & SITE_BEHIND_BINDING != 0))
    }

    /// As [`Event::payload`](super::Event::payload).
    #[inline]
    pub fn payload(&self) -> [u64; 2] {
        let Slot { peer, tag, bytes, request, .. } = self.0;
        [join(peer as u32, tag as u32), join(bytes, request)]
    }
}

/// What the communicator's field of a call that completes one request says: whether it did, and whether by
/// cancelling.
#[inline]
pub(super) fn completion(flags: u16) -> (bool, bool) {
    (flags & COMPLETED != 0, flags & COMPLETED != 0 && flags & CANCELLED != 0)
}
