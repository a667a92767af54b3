//! Iterates over the events of a thread, combining slots and their continuations into values.
//!
//! The iterator ends at the last committed slot or at damage.

use std::ops::Range;

use super::area::{Area, Unpacked};
use super::event::{BriefEvent, Event, EventObserver, Position, is_irrelevant_in_brief};
use super::head::Head;
use super::stored::{EventLocation, Kinds, StoredEvent, StoredEventObserver};
use super::{Diagnosis, RankFile, Thread};
use crate::layout::*;
use crate::slot::More;

/// Iterates over a thread's events. Ends at the last committed slot or at damage.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    file: &'a RankFile,
    thread: &'a Thread,
    /// Index of the chunk after the current one.
    next_chunk: usize,
    /// Index behind the last chunk.
    end_chunk: usize,
    /// Offsets: of the next slot, behind the available slots, and behind the chunk's last slot.
    at: usize,
    view_end: usize,
    chunk_end: usize,
    /// Slots decoded into memory; none if they are plain slots in the file.
    unpacked: Option<Unpacked>,
    /// Range in which the next begin must be.
    least_begin: u64,
    most_begin: u64,
    /// Number of functions that have a name, counted from [`FIRST_FUNCTION`].
    functions: u16,
    /// Contents of the last event's continuations.
    more: More,
    damage: Option<Diagnosis>,
    /// Offset up to which the system has been asked to fetch the file, if all of it will be read.
    fetched: Option<usize>,
}

/// Number of bytes to fetch ahead of reading.
const FETCHED_AHEAD: usize = 4 << 20;

impl<'a> Events<'a> {
    /// Events in a range of the thread's chunks.
    pub(super) fn in_chunks(file: &'a RankFile, thread: &'a Thread, chunks: Range<usize>) -> Self {
        let Range { start, end } = chunks;
        Self {
            file,
            thread,
            next_chunk: start,
            end_chunk: end.min(thread.chunks.len()),
            at: 0,
            view_end: 0,
            chunk_end: 0,
            unpacked: None,
            least_begin: 0,
            most_begin: 0,
            functions: u16::try_from(file.functions.names.len()).unwrap_or(u16::MAX),
            more: More::default(),
            damage: None,
            fetched: None,
        }
    }

    /// Fetches slots ahead, for events that will all be read.
    pub fn fetching(self) -> Self {
        Self { fetched: Some(0), ..self }
    }

    /// Events from a position given by [`Events::position_of`] to the end of the chunks.
    pub(super) fn from(
        file: &'a RankFile,
        thread: &'a Thread,
        position: Position,
        end_chunk: usize,
    ) -> Self {
        let chunk = position.chunk as usize;
        let mut events = Self::in_chunks(file, thread, chunk..end_chunk);
        if events.open_chunk() {
            let to = events.at.saturating_add(position.at as usize).min(events.chunk_end);
            events.at = to;
            events.open_view();
        }
        events
    }

    /// The damage that ended the iteration early, once it has ended.
    pub fn damage(&self) -> Option<&Diagnosis> {
        self.damage.as_ref()
    }

    /// Position of the next event; at the end of a chunk, behind its last one.
    pub fn position(&self) -> Position {
        match self.at {
            0 => Position { chunk: self.next_chunk as u32, at: 0 },
            at => self.position_of(at),
        }
    }

    /// Position of the event returned last, given its offset.
    pub fn position_of(&self, offset: usize) -> Position {
        let chunk = self.next_chunk.saturating_sub(1);
        let first = self.thread.chunks.get(chunk).map_or(0, |area| area.first);
        let at = u32::try_from(offset.saturating_sub(first)).unwrap_or(u32::MAX);
        Position { chunk: chunk as u32, at }
    }

    /// Moves to the next chunk. Returns `false` if there is none.
    #[cold]
    fn open_chunk(&mut self) -> bool {
        if self.next_chunk >= self.end_chunk {
            return false;
        }
        let Some(area) = self.thread.chunks.get(self.next_chunk) else { return false };
        self.next_chunk += 1;
        (self.at, self.chunk_end) = (area.first, area.end());
        if let Some(fetched) = &mut self.fetched
            && area.at + FETCHED_AHEAD / 2 > *fetched
        {
            self.file.fetch(area.at.max(*fetched), area.at + FETCHED_AHEAD);
            *fetched = area.at + FETCHED_AHEAD;
        }
        self.least_begin = self.least_begin.max(area.opened);
        let next = self.thread.chunks.get(self.next_chunk);
        self.most_begin = next.map_or(u64::MAX, |next| next.opened);
        self.open_view();
        true
    }

    /// The area of the current chunk.
    fn area(&self) -> Option<&'a Area> {
        self.thread.chunks.get(self.next_chunk.checked_sub(1)?)
    }

    /// Describes a problem with the slot at an offset.
    fn diagnosis(&self, offset: usize, what: impl Into<String>) -> Diagnosis {
        let offset = self.area().map_or(offset, |area| area.file_offset(offset)) as u64;
        Diagnosis { offset, what: what.into() }
    }

    /// Makes the slots of the chunk available from `at` on.
    fn open_view(&mut self) {
        if let Some(unpacked) = self.unpacked.as_ref().filter(|unpacked| unpacked.has(self.at)) {
            self.view_end = unpacked.end().min(self.chunk_end);
            return;
        }
        self.view_end = self.at;
        let Some(area) = self.area().filter(|_| self.at < self.chunk_end) else { return };
        match self.file.unpacked(area, self.unpacked.take()) {
            Ok(None) => self.view_end = self.chunk_end,
            Ok(Some(unpacked)) => {
                self.view_end = unpacked.end().clamp(self.at, self.chunk_end);
                self.unpacked = Some(unpacked);
            }
            Err(damage) => {
                self.end_chunk = self.next_chunk;
                self.chunk_end = self.at;
                self.damage = Some(damage);
            }
        }
    }

    /// The slot at an offset that is available.
    #[inline]
    fn slot_at(&self, offset: usize) -> Slot {
        match &self.unpacked {
            None => self.file.load_slot(offset),
            Some(unpacked) => unpacked.slot(offset),
        }
    }

    /// The next committed slot and its offset. Moves to the next chunk at the end of one.
    #[inline]
    fn next_slot(&mut self) -> Option<(usize, Slot)> {
        loop {
            if self.at + SLOT_BYTES <= self.view_end {
                let slot = self.slot_at(self.at);
                if slot.word != 0 {
                    return Some((self.at, slot));
                }
            }
            if !self.move_on() {
                return None;
            }
        }
    }

    /// Called behind the last available slot or at an empty one: moves to where the next slot may
    /// be.
    #[cold]
    fn move_on(&mut self) -> bool {
        let is_empty = self.at + SLOT_BYTES <= self.view_end;
        let stray = if is_empty { self.stray_after(self.at) } else { None };
        // Checked once the chunk has been read up to its end.
        if let Some(unreadable) = self.file.unreadable()
            && self.area().is_none_or(|area| unreadable.offset < area.file_end() as u64)
        {
            self.damage = Some(unreadable);
            return false;
        }
        if let Some(stray) = stray {
            let stray = self.diagnosis(stray, "").offset;
            let what = format!("an empty slot before others (next at byte {stray})");
            self.damage = Some(self.diagnosis(self.at, what));
            return false;
        }
        if !is_empty && self.at + SLOT_BYTES <= self.chunk_end {
            self.open_view();
            return self.damage.is_none();
        }
        self.open_chunk() && self.damage.is_none()
    }

    fn stray_after(&self, empty: usize) -> Option<usize> {
        // An event's continuations may precede its begin, and a running process may fill slots
        // meanwhile, so only slots behind the next empty one are stray.
        let mut from = empty + SLOT_BYTES;
        while from + SLOT_BYTES <= self.view_end {
            let slot = self.slot_at(from);
            from += SLOT_BYTES;
            if !slot.is_continuation() {
                break;
            }
        }
        let tail = match &self.unpacked {
            None => self.file.contents.get(from..self.view_end)?,
            Some(unpacked) => unpacked.get(from, self.view_end)?,
        };
        tail.iter().position(|byte| *byte != 0).map(|position| from + position)
    }

    /// Whether an event's own slot can be valid.
    #[inline]
    fn fits(&self, slot: &Slot) -> bool {
        let function = slot.function();
        let known = function.wrapping_sub(FIRST_FUNCTION) < self.functions
            || matches!(function, TOOL | REGION_BEGIN | REGION_END);
        known
            && (self.least_begin..=self.most_begin).contains(&slot.begin)
            && (!slot.is_open() || slot.duration() == 0)
    }

    /// Describes why a slot is invalid.
    #[cold]
    fn misfit(&self, slot: &Slot) -> String {
        let function = slot.function();
        let known = matches!(function, TOOL | REGION_BEGIN | REGION_END | CONTINUATION)
            || self.file.function_name(function).is_some();
        if !known {
            format!("an event of unknown function {function}")
        } else if function == CONTINUATION {
            "a continuation without its event".into()
        } else if !(self.least_begin..=self.most_begin).contains(&slot.begin) {
            "an event that begins out of order".into()
        } else {
            "an open event with a duration".into()
        }
    }
}

/// An event as stored. The contents of its continuations are in [`Events::more`].
struct Stored {
    offset: usize,
    slot: Slot,
    end: u64,
}

impl Events<'_> {
    #[cold]
    fn end_here(&mut self, offset: usize, what: &str) {
        self.damage = Some(self.diagnosis(offset, what));
    }

    /// Reads the continuation slots behind an event's own. They are in the same chunk and
    /// available.
    fn read_more(&mut self) -> bool {
        while self.at + SLOT_BYTES <= self.view_end {
            let slot = self.slot_at(self.at);
            if !slot.is_continuation() {
                break;
            }
            if !self.more.add(&slot) {
                self.end_here(self.at, "a continuation of unknown kind");
                return false;
            }
            self.at += SLOT_BYTES;
        }
        true
    }

    #[inline]
    fn advance(&mut self) -> Option<Stored> {
        if self.damage.is_some() {
            return None;
        }
        let (offset, slot) = self.next_slot()?;
        if !self.fits(&slot) {
            let what = self.misfit(&slot);
            self.end_here(offset, &what);
            return None;
        }
        self.least_begin = slot.begin;
        self.at += SLOT_BYTES;
        if self.more.slots > 0 {
            self.more = More::default();
        }
        if !self.read_more() {
            return None;
        }
        let ended = slot.returned();
        let Some(duration) = self.more.ticks(&slot) else {
            self.end_here(offset, "a long event without its continuation");
            return None;
        };
        let Some(end) = slot.begin.checked_add(duration) else {
            self.end_here(offset, "an event that ends beyond the counter's range");
            return None;
        };
        Some(Stored { offset, slot, end: if ended { end } else { slot.begin } })
    }

    /// Passes the remaining events to `observer` in brief, as [`Events::next_brief`] would but
    /// faster, until it returns `false`.
    pub fn for_each_event(&mut self, observer: &mut impl EventObserver) {
        self.fetched.get_or_insert(0);
        loop {
            let to = self.view_end;
            let goes_on = match self.unpacked.clone() {
                None => {
                    let file = self.file;
                    self.for_each_plain(|at| file.load_slot(at), to, observer)
                }
                Some(unpacked) => self.for_each_plain(|at| unpacked.slot(at), to, observer),
            };
            if !goes_on {
                return;
            }
            // An event that is not plain, or the end of the available slots.
            match self.next_brief() {
                Some(event) if observer.event(&event) => {}
                _ => return,
            }
        }
    }

    /// Passes plain calls to `observer` up to the first event that is not plain. Returns whether to
    /// continue.
    #[inline(always)]
    fn for_each_plain(
        &mut self,
        load: impl Fn(usize) -> Slot,
        to: usize,
        observer: &mut impl EventObserver,
    ) -> bool {
        if self.damage.is_some() || self.at + 2 * SLOT_BYTES > to {
            return true;
        }
        // Excludes numbers with a flag.
        let functions = self.functions.min(FUNCTION_MASK - FIRST_FUNCTION);
        let (mut at, mut least, mut goes_on) = (self.at, self.least_begin, true);
        let most = self.most_begin;
        let mut slot = load(at);
        while goes_on {
            let mut behind = at + SLOT_BYTES;
            let mut next = Slot::default();
            while behind + SLOT_BYTES <= to {
                next = load(behind);
                if !next.is_continuation() || !is_irrelevant_in_brief(&next) {
                    break;
                }
                behind += SLOT_BYTES;
                next = Slot::default();
            }
            let end = slot.begin.wrapping_add(u64::from(slot.duration()));
            let plain = slot.function_and_flags().wrapping_sub(FIRST_FUNCTION) < functions
                && slot.duration() != DURATION_ESCAPE
                && least <= slot.begin
                && slot.begin <= most
                && slot.begin <= end
                // False for an empty slot or one that is not available.
                && next.function() >= FIRST_FUNCTION
                && end <= next.begin;
            if !plain {
                break;
            }
            goes_on = observer.plain(&Head(slot), at);
            least = slot.begin;
            at = behind;
            slot = next;
        }
        (self.at, self.least_begin) = (at, least);
        goes_on
    }

    /// The next event in brief.
    #[inline]
    pub fn next_brief(&mut self) -> Option<BriefEvent> {
        let Stored { offset, slot, end } = self.advance()?;
        let (sent, received) = self.more.moved_in_brief(&slot);
        let More { polls, error, .. } = self.more;
        Some(BriefEvent { head: Head(slot), offset, end, sent, received, polls, error })
    }
}

impl Events<'_> {
    /// Location of the next event.
    #[inline]
    pub(super) fn next_stored(&mut self) -> Option<EventLocation> {
        let Stored { offset, slot, end } = self.advance()?;
        let slots = self.available(offset + SLOT_BYTES..self.at);
        let (more, mut kinds) = (slots.len() as u32, Kinds::default());
        for slot in slots.chunks_exact(SLOT_BYTES) {
            kinds.add(&read_plain(slot).unwrap_or_default());
        }
        Some(EventLocation { head: Head(slot), offset, end, more, kinds })
    }

    /// Available bytes by their offsets.
    #[inline]
    pub(super) fn available(&self, range: Range<usize>) -> &[u8] {
        let bytes = match &self.unpacked {
            None => self.file.contents.get(range),
            Some(unpacked) => unpacked.get(range.start, range.end),
        };
        bytes.unwrap_or_default()
    }

    /// As for `RankFile::detail`.
    pub(super) fn detail(&self, function: u16) -> Detail {
        self.file.detail(function)
    }

    /// Passes usual events to `observer` up to the first that is not. `Some(false)` if the observer
    /// stops.
    pub(super) fn for_each_usual_available(
        &mut self,
        observer: &mut impl StoredEventObserver,
    ) -> Option<bool> {
        let to = self.view_end;
        match self.unpacked.clone() {
            None => {
                let file = self.file;
                let bytes = file.contents.get(0..to)?;
                self.for_each_usual(bytes, 0, |at| file.load_slot(at), observer)
            }
            Some(unpacked) => {
                let bytes = unpacked.get(unpacked.first, to)?;
                self.for_each_usual(bytes, unpacked.first, |at| unpacked.slot(at), observer)
            }
        }
    }

    /// Passes complete events that end in their own slot to `observer`, from the available slots:
    /// `bytes`, the first at offset `first`.
    #[inline(always)]
    fn for_each_usual(
        &mut self,
        bytes: &[u8],
        first: usize,
        load: impl Fn(usize) -> Slot,
        observer: &mut impl StoredEventObserver,
    ) -> Option<bool> {
        let to = first + bytes.len();
        if self.damage.is_some() || self.at < first || self.at + SLOT_BYTES > to {
            return None;
        }
        let (mut at, mut goes_on) = (self.at, true);
        let mut slot = load(at);
        while goes_on && slot.word != 0 && self.fits(&slot) {
            let (mut behind, mut kinds, mut known) = (at + SLOT_BYTES, Kinds::default(), true);
            let mut next = Slot::default();
            while behind + SLOT_BYTES <= to {
                next = load(behind);
                if !next.is_continuation() {
                    break;
                }
                known &= kinds.add(&next);
                behind += SLOT_BYTES;
                next = Slot::default();
            }
            let ended = slot.returned();
            let end = slot.begin.checked_add(u64::from(slot.duration()));
            let Some(end) = end.filter(|_| known && slot.duration() != DURATION_ESCAPE) else {
                break;
            };
            let head = Head(slot);
            if observer.wants(&head) {
                let end = if ended { end } else { slot.begin };
                let more = (behind - at - SLOT_BYTES) as u32;
                let location = EventLocation { head, offset: at, end, more, kinds };
                let more = bytes.get(at + SLOT_BYTES - first..behind - first);
                goes_on = observer.take(&StoredEvent::new(&location, more.unwrap_or_default()));
            }
            self.least_begin = slot.begin;
            at = behind;
            slot = next;
        }
        self.at = at;
        Some(goes_on)
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        let Stored { offset, slot, end } = self.advance()?;
        let detail = self.file.detail(slot.function());
        Some(Event::new(&Head(slot), end, &self.more, detail, offset))
    }
}
