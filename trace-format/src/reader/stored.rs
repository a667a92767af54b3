//! An event in place: its own slot and, borrowed, the continuation slots behind it.
//!
//! An [`Event`] holds everything in one value of some 200 bytes. A reader that needs little of many
//! events observes them in this form, with [`Events::for_each_stored_event`] or one by one with
//! [`Events::next_location`].

use super::event::Event;
use super::events::Events;
use super::head::Head;
use crate::layout::*;
use crate::slot::More;

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
pub(super) struct Kinds(u16);

impl Kinds {
    /// Adds a slot's kind. Returns whether it is known.
    #[inline]
    pub fn add(&mut self, slot: &Slot) -> bool {
        let kind = slot.duration();
        self.0 |= 1u16.checked_shl(kind).unwrap_or(0);
        (CONTINUES_DURATION..=CONTINUES_FILE_CALLS).contains(&kind)
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

    /// The last continuation of a kind, because later ones override earlier ones in [`Event`].
    #[inline]
    fn last(&self, kind: u32) -> Option<Continuation> {
        if !self.kinds.has(kind) {
            return None;
        }
        let last = self.continuations().filter(|slot| slot.duration() == kind).last();
        Continuation::decode(&last?)
    }

    /// As for [`Event::error`].
    #[inline]
    pub fn error(&self) -> u32 {
        match self.last(CONTINUES_DURATION) {
            Some(Continuation::Duration { error, .. }) => error,
            _ => 0,
        }
    }

    #[inline]
    fn bytes(&self, detail: Detail) -> (u64, u64) {
        let bytes = match self.last(CONTINUES_BYTES) {
            Some(Continuation::Bytes { sent, received }) => Some((sent, received)),
            _ => None,
        };
        More { bytes, ..More::default() }.moved(&self.head.0, detail)
    }

    /// As for [`Event::sent`].
    #[inline]
    pub fn sent(&self) -> u64 {
        self.bytes(Detail::Nothing).0
    }

    /// As for [`Event::sent`] and [`Event::received`], for a collective operation.
    #[inline]
    pub fn exchanged(&self) -> (u64, u64) {
        self.bytes(Detail::Received)
    }

    /// Bytes of an access to remote memory: those of its one buffer or those sent, and those
    /// received in addition.
    #[inline]
    pub fn moved(&self) -> (u64, u64) {
        self.bytes(Detail::Object)
    }

    /// As for [`Event::receive`].
    #[inline]
    pub fn receive(&self) -> Option<Half> {
        match self.last(CONTINUES_RECEIVE)? {
            Continuation::Receive(half) => Some(half),
            _ => None,
        }
    }

    /// As for [`Event::polls`].
    #[inline]
    pub fn polls(&self) -> Option<(u64, u64)> {
        match self.last(CONTINUES_POLLS)? {
            Continuation::Polls { count, inside, .. } => Some((count, inside)),
            _ => None,
        }
    }

    /// As for [`super::RankFile::message`].
    pub fn message(&self) -> Option<u32> {
        Continuation::message_of(self.continuations())
    }

    /// As for [`super::RankFile::requests`].
    #[inline]
    pub fn requests(&self) -> impl Iterator<Item = RequestState> + use<'e> {
        Continuation::requests_of(self.continuations())
    }

    /// The complete event, whose function has that detail.
    pub(super) fn whole(&self, detail: Detail) -> Event {
        let mut more = More::default();
        self.continuations().for_each(|slot| _ = more.add(&slot));
        Event::new(&self.head, self.end, &more, detail, self.offset)
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
        self.stored(location).whole(self.detail(location.head.function()))
    }
}
