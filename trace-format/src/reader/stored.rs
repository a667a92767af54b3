//! An event where it lies: its own slot and, borrowed, the continuation slots behind it.
//!
//! [`Event`] says all of this in one value of some 200 bytes. Who reads many events and wants little of
//! each takes them so instead, from [`Events::hand_on_stored`] or one by one from
//! [`Events::next_place`].

use super::event::{Event, Half, RequestState, join};
use super::events::Events;
use super::head::{Head, completion};
use crate::layout::*;

/// An event of which nothing was copied but its own slot.
#[derive(Debug, Clone, Copy)]
pub struct StoredEvent<'e> {
    /// Its fixed part.
    pub head: Head,
    /// Its offset in the file.
    pub offset: usize,
    /// Counter at the end; the begin when the call had not returned or was abandoned.
    end: u64,
    /// Its continuation slots, and which kinds are among them.
    more: &'e [u8],
    kinds: Kinds,
}

/// Kinds of continuation slots, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kinds(u8);

impl Kinds {
    /// Whether all kinds are known.
    #[inline]
    pub fn add(&mut self, slot: &Slot) -> bool {
        let kind = slot.duration();
        self.0 |= 1u8.checked_shl(kind).unwrap_or(0);
        (CONTINUES_DURATION..=CONTINUES_SITE).contains(&kind)
    }

    #[inline]
    fn has(self, kind: u32) -> bool {
        self.0 & 1 << kind != 0
    }
}

/// Where an event lies and when it ends; with the [`Events`] that gave it last, a [`StoredEvent`].
#[derive(Debug, Clone, Copy)]
pub struct EventPlace {
    /// The event's fixed part.
    pub head: Head,
    /// Its offset in the file.
    pub offset: usize,
    /// Counter at the end; the begin when the call had not returned or was abandoned.
    pub end: u64,
    /// Bytes of its continuation slots.
    pub(super) more: u32,
    pub(super) kinds: Kinds,
}

/// Takes events where they lie.
pub trait TakeStored {
    /// Whether an event with that fixed part is handed on.
    fn wants(&self, head: &Head) -> bool;

    /// Takes an event, and says whether it wants more.
    fn take(&mut self, event: &StoredEvent<'_>) -> bool;
}

impl<'e> StoredEvent<'e> {
    #[inline]
    pub(super) fn new(place: &EventPlace, more: &'e [u8]) -> Self {
        let EventPlace { head, offset, end, kinds, .. } = *place;
        Self { head, offset, end, more, kinds }
    }

    /// Function number, without flags.
    #[inline]
    pub fn function(&self) -> u16 {
        self.head.function()
    }

    /// The number that tells it from all other events of its rank.
    #[inline]
    pub fn number(&self) -> u64 {
        (self.offset / SLOT_BYTES) as u64
    }

    /// Counter at the end; `None` when the call had not returned or was abandoned.
    #[inline]
    pub fn end(&self) -> Option<u64> {
        self.head.returned().then_some(self.end)
    }

    /// Counter at the end; the begin when the call had not returned.
    #[inline]
    pub fn end_or_begin(&self) -> u64 {
        self.end
    }

    /// Its continuation slots.
    #[inline]
    fn continuations(&self) -> impl Iterator<Item = Slot> + use<'e> {
        self.more.chunks_exact(SLOT_BYTES).map(|slot| read_plain(slot).unwrap_or_default())
    }

    /// The last of a kind, as later ones replace earlier ones in [`Event`].
    #[inline]
    fn last(&self, kind: u32) -> Option<Slot> {
        if !self.kinds.has(kind) {
            return None;
        }
        self.continuations().filter(|slot| slot.duration() == kind).last()
    }

    /// As [`Event::error`].
    #[inline]
    pub fn error(&self) -> u32 {
        self.last(CONTINUES_DURATION).map_or(0, |slot| slot.peer as u32)
    }

    /// Bytes sent and, where a continuation says so, received.
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

    /// As [`Event::sent`].
    #[inline]
    pub fn sent(&self) -> u64 {
        self.bytes().0
    }

    /// As [`Event::sent`] and [`Event::received`], of a collective operation.
    #[inline]
    pub fn exchanged(&self) -> (u64, u64) {
        let (sent, received) = self.bytes();
        (sent, received.unwrap_or(u64::from(self.head.tag() as u32)))
    }

    /// Bytes of an access to remote memory: those of its one buffer, or sent; and those received beside.
    #[inline]
    pub fn moved(&self) -> (u64, u64) {
        let (bytes, received) = self.bytes();
        (bytes, received.unwrap_or(0))
    }

    /// As [`Event::receive`].
    #[inline]
    pub fn receive(&self) -> Option<Half> {
        let slot = self.last(CONTINUES_RECEIVE)?;
        Some(Half { peer: slot.peer, tag: slot.tag, bytes: slot.begin })
    }

    /// As [`Event::polls`].
    #[inline]
    pub fn polls(&self) -> Option<(u64, u64)> {
        let slot = self.last(CONTINUES_POLLS)?;
        Some((join(slot.peer as u32, slot.tag as u32), slot.begin))
    }

    /// As [`super::RankFile::message`].
    pub fn message(&self) -> Option<u32> {
        let mut slots = self.continuations();
        slots.find(|slot| slot.duration() == CONTINUES_MESSAGE).map(|slot| slot.request)
    }

    /// As [`super::RankFile::requests`].
    #[inline]
    pub fn requests(&self) -> impl Iterator<Item = RequestState> + use<'e> {
        let requests = self.continuations().filter(|slot| slot.duration() == CONTINUES_REQUEST);
        requests.map(|slot| RequestState::of(&slot))
    }

    /// The same as one value; `holds_received` says whether the slot's tag is bytes received.
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
    /// What a continuation slot says of one request.
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
    /// Hands on what is left, as far as `take` wants it, until `take` has enough.
    pub fn hand_on_stored(&mut self, take: &mut impl TakeStored) {
        loop {
            if self.hand_on_at_hand(take) == Some(false) {
                return;
            }
            // What is not usual, or where the slots at hand end.
            let Some(place) = self.next_stored() else { return };
            if take.wants(&place.head) && !take.take(&self.stored(&place)) {
                return;
            }
        }
    }

    /// The next event whose fixed part is wanted. [`Events::stored`] has the rest of it until the next
    /// one is asked for.
    #[inline]
    pub fn next_place(&mut self, wanted: impl Fn(&Head) -> bool) -> Option<EventPlace> {
        loop {
            let place = self.next_stored()?;
            if wanted(&place.head) {
                return Some(place);
            }
        }
    }

    /// The event that was read last.
    #[inline]
    pub fn stored(&self, place: &EventPlace) -> StoredEvent<'_> {
        let from = place.offset + SLOT_BYTES;
        StoredEvent::new(place, self.at_hand(from..from + place.more as usize))
    }

    /// The same as one value.
    pub fn whole_of(&self, place: &EventPlace) -> Event {
        self.stored(place).whole(self.holds_received(place.head.function()))
    }
}
