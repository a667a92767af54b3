//! An event in place: its own slot and, borrowed, the continuation slots behind it.
//!
//! An [`Event`] holds everything in one value of some 200 bytes. A reader that needs little of many
//! events observes them in this form, with [`Events::for_each_stored_event`] or one by one with
//! [`Events::next_location`].

use super::event::{Event, Half, RequestState, join};
use super::events::Events;
use super::head::{Head, completion};
use crate::layout::*;

/// An event of which only its own slot was copied.
#[derive(Debug, Clone, Copy)]
pub struct StoredEvent<'e> {
    /// Its fixed part.
    pub head: Head,
    /// Its offset.
    pub offset: usize,
    /// Counter at the end; the begin if the call had not returned or was abandoned.
    end: u64,
    /// Its continuation slots. `kinds` says which kinds are among them.
    more: &'e [u8],
    kinds: Kinds,
}

/// A set of kinds of continuation slots, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kinds(u8);

impl Kinds {
    /// Adds a slot's kind. Returns whether it is known.
    #[inline]
    pub fn add(&mut self, slot: &Slot) -> bool {
        let kind = slot.duration();
        self.0 |= 1u8.checked_shl(kind).unwrap_or(0);
        (CONTINUES_DURATION..=CONTINUES_MESSAGE).contains(&kind)
    }

    #[inline]
    fn has(self, kind: u32) -> bool {
        self.0 & 1 << kind != 0
    }
}

/// Location and end of an event. Together with the [`Events`] that returned it last, a
/// [`StoredEvent`].
#[derive(Debug, Clone, Copy)]
pub struct EventLocation {
    /// The event's fixed part.
    pub head: Head,
    /// Its offset.
    pub offset: usize,
    /// Counter at the end; the begin if the call had not returned or was abandoned.
    pub end: u64,
    /// Size of its continuation slots in bytes.
    pub(super) more: u32,
    pub(super) kinds: Kinds,
}

/// Observes events in place.
pub trait StoredEventObserver {
    /// Whether to observe an event with this fixed part.
    fn wants(&self, head: &Head) -> bool;

    /// Observes an event. Returns whether to continue.
    fn take(&mut self, event: &StoredEvent<'_>) -> bool;
}

impl<'e> StoredEvent<'e> {
    #[inline]
    pub(super) fn new(location: &EventLocation, more: &'e [u8]) -> Self {
        let EventLocation { head, offset, end, kinds, .. } = *location;
        Self { head, offset, end, more, kinds }
    }

    /// Function number, without flags.
    #[inline]
    pub fn function(&self) -> u16 {
        self.head.function()
    }

    /// A number that distinguishes it from all other events of its rank.
    #[inline]
    pub fn number(&self) -> u64 {
        (self.offset / SLOT_BYTES) as u64
    }

    /// Counter at the end; `None` if the call had not returned or was abandoned.
    #[inline]
    pub fn end(&self) -> Option<u64> {
        self.head.returned().then_some(self.end)
    }

    /// Counter at the end; the begin if the call had not returned.
    #[inline]
    pub fn end_or_begin(&self) -> u64 {
        self.end
    }

    /// Its continuation slots.
    #[inline]
    fn continuations(&self) -> impl Iterator<Item = Slot> + use<'e> {
        self.more.chunks_exact(SLOT_BYTES).map(|slot| read_plain(slot).unwrap_or_default())
    }

    /// The last slot of a kind, because later ones override earlier ones in [`Event`].
    #[inline]
    fn last(&self, kind: u32) -> Option<Slot> {
        if !self.kinds.has(kind) {
            return None;
        }
        self.continuations().filter(|slot| slot.duration() == kind).last()
    }

    /// As for [`Event::error`].
    #[inline]
    pub fn error(&self) -> u32 {
        self.last(CONTINUES_DURATION).map_or(0, |slot| slot.peer as u32)
    }

    /// Bytes sent and, if a continuation holds them, bytes received.
    #[inline]
    fn bytes(&self) -> (u64, Option<u64>) {
        match self.last(CONTINUES_BYTES) {
            None => (self.head.bytes(), None),
            Some(slot) if self.head.bytes() == u64::from(BYTES_ESCAPE) => {
                (slot.begin, Some(join(slot.peer as u32, slot.tag as u32)))
            }
            Some(_) => (self.head.bytes(), Some(0)),
        }
    }

    /// As for [`Event::sent`].
    #[inline]
    pub fn sent(&self) -> u64 {
        self.bytes().0
    }

    /// As for [`Event::sent`] and [`Event::received`], for a collective operation.
    #[inline]
    pub fn exchanged(&self) -> (u64, u64) {
        let (sent, received) = self.bytes();
        (sent, received.unwrap_or(u64::from(self.head.tag() as u32)))
    }

    /// Bytes of an access to remote memory: those of its one buffer or those sent, and those
    /// received in addition.
    #[inline]
    pub fn moved(&self) -> (u64, u64) {
        let (bytes, received) = self.bytes();
        (bytes, received.unwrap_or(0))
    }

    /// As for [`Event::receive`].
    #[inline]
    pub fn receive(&self) -> Option<Half> {
        let slot = self.last(CONTINUES_RECEIVE)?;
        Some(Half { peer: slot.peer, tag: slot.tag, bytes: slot.begin })
    }

    /// As for [`Event::polls`].
    #[inline]
    pub fn polls(&self) -> Option<(u64, u64)> {
        let slot = self.last(CONTINUES_POLLS)?;
        Some((join(slot.peer as u32, slot.tag as u32), slot.begin))
    }

    /// As for [`super::RankFile::message`].
    pub fn message(&self) -> Option<u32> {
        let mut slots = self.continuations();
        slots.find(|slot| slot.duration() == CONTINUES_MESSAGE).map(|slot| slot.request)
    }

    /// As for [`super::RankFile::requests`].
    #[inline]
    pub fn requests(&self) -> impl Iterator<Item = RequestState> + use<'e> {
        let requests = self.continuations().filter(|slot| slot.duration() == CONTINUES_REQUEST);
        requests.map(|slot| RequestState::of(&slot))
    }

    /// The complete event. `holds_received` says whether the slot's tag field holds bytes received.
    pub(super) fn whole(&self, holds_received: bool) -> Event {
        let (sent, received) = self.bytes();
        let of_tag = if holds_received { u64::from(self.head.tag() as u32) } else { 0 };
        Event {
            function: self.function(),
            communicator: self.head.communicator(),
            begin: self.head.begin(),
            end: self.end(),
            abandoned: self.head.is_abandoned(),
            error: self.error(),
            peer: self.head.peer(),
            tag: self.head.tag(),
            sent,
            received: received.unwrap_or(of_tag),
            request: self.head.request(),
            receive: self.receive(),
            polls: self.polls(),
            site: self.head.site(),
            payload: self.head.payload(),
            offset: self.offset,
            continuations: self.more.len() / SLOT_BYTES,
        }
    }
}

impl RequestState {
    /// Decodes a continuation slot for one request.
    #[inline]
    pub(super) fn of(slot: &Slot) -> Self {
        let (completed, cancelled) = completion(slot.communicator());
        Self {
            request: slot.request,
            completed,
            cancelled,
            peer: slot.peer,
            tag: slot.tag,
            bytes: slot.begin,
            error: slot.bytes,
        }
    }
}

impl Events<'_> {
    /// Passes the remaining events that `observer` wants to it, until it returns `false`.
    pub fn for_each_stored_event(&mut self, observer: &mut impl StoredEventObserver) {
        loop {
            if self.for_each_usual_available(observer) == Some(false) {
                return;
            }
            // An event that is not usual, or the end of the available slots.
            let Some(location) = self.next_stored() else { return };
            if observer.wants(&location.head) && !observer.take(&self.stored(&location)) {
                return;
            }
        }
    }

    /// The next event whose fixed part is wanted. [`Events::stored`] gives its other parts until
    /// the next one is requested.
    #[inline]
    pub fn next_location(&mut self, wanted: impl Fn(&Head) -> bool) -> Option<EventLocation> {
        loop {
            let location = self.next_stored()?;
            if wanted(&location.head) {
                return Some(location);
            }
        }
    }

    /// The event that was read last.
    #[inline]
    pub fn stored(&self, location: &EventLocation) -> StoredEvent<'_> {
        let from = location.offset + SLOT_BYTES;
        StoredEvent::new(location, self.available(from..from + location.more as usize))
    }

    /// The complete event.
    pub fn whole_of(&self, location: &EventLocation) -> Event {
        self.stored(location).whole(self.holds_received(location.head.function()))
    }
}
