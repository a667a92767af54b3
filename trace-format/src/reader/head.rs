//! The fixed part of an event, without its continuations. Readers of events need only this and
//! [`Event`](super::Event), not the layout of slots.

use super::event::EventKind;
use crate::layout::*;
use crate::slot::completion;

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
        EventKind::from_function(self.function(), self.0.peer)
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

    /// Ticks from begin to end, unless a continuation gives another duration.
    #[inline]
    pub fn ticks(&self) -> u64 {
        u64::from(self.0.duration())
    }

    /// Whether a continuation gives the duration: the event was long, or is a run of polls.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.0.duration() == DURATION_ESCAPE
    }

    /// Whether the call had not returned when the slot was last written.
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
        self.0.returned()
    }

    /// Communicator's local id; see [`Head::completion`].
    #[inline]
    pub fn communicator(&self) -> u16 {
        self.0.communicator()
    }

    /// For a call that completes one request, whether it did, and whether the operation was
    /// cancelled.
    #[inline]
    pub fn completion(&self) -> (bool, bool) {
        completion(self.0.communicator())
    }

    /// As for [`Event::peer`](super::Event::peer).
    #[inline]
    pub fn peer(&self) -> i32 {
        self.0.peer
    }

    /// As for [`Slot::tag`].
    #[inline]
    pub fn tag(&self) -> i32 {
        self.0.tag()
    }

    /// As for [`Slot::object`].
    #[inline]
    pub fn object(&self) -> u32 {
        self.0.object()
    }

    /// Bytes sent or moved, unless a continuation gives other numbers.
    #[inline]
    pub fn bytes(&self) -> u64 {
        u64::from(self.0.bytes)
    }

    /// As for [`Event::request`](super::Event::request).
    #[inline]
    pub fn request(&self) -> u32 {
        self.0.request
    }

    /// As for [`Event::site`](super::Event::site), if the event has one.
    #[inline]
    pub fn site(&self) -> Option<(u64, bool)> {
        let Slot { site, .. } = self.0;
        (site != 0).then_some((site & !SITE_BEHIND_BINDING, site & SITE_BEHIND_BINDING != 0))
    }

    /// As for [`Event::payload`](super::Event::payload).
    #[inline]
    pub fn payload(&self) -> [u64; 2] {
        self.0.payload()
    }
}
