//! The events of a thread: slots and their continuations, one value each.
//!
//! In: a [`RankFile`] and one of its [`Thread`]s. Out: an iterator that ends at the last committed slot or
//! at damage.

use std::ops::Range;

use super::{Diagnosis, RankFile, Thread};
use crate::layout::*;

/// An event as the file holds it: a call, a run of empty polls, or a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Function number: [`TOOL`], [`REGION_BEGIN`], [`REGION_END`] or an index into the names.
    pub function: u16,
    /// Communicator's local id; for calls that complete one request [`COMPLETED`] and
    /// [`CANCELLED`].
    pub communicator: u16,
    /// Counter at the begin.
    pub begin: u64,
    /// Counter at the end; `None` when the call had not returned.
    pub end: Option<u64>,
    /// The call was left by longjmp or an exception; its end is not known.
    pub abandoned: bool,
    /// Peer, root, region or reason.
    pub peer: i32,
    /// Tag; for collectives the slot's bytes received (see [`Event::received`]); for windows and files
    /// their id.
    pub tag: i32,
    /// Bytes sent or moved.
    pub sent: u64,
    /// Bytes received, of a collective operation or one that fetches; 0 elsewhere.
    pub received: u64,
    /// Request or message, shortened; 0 none.
    pub request: u32,
    /// Receiving half of a call that sends and receives.
    pub receive: Option<Half>,
    /// A run of polls that found nothing: their number and the ticks inside them. The event then
    /// spans the whole run.
    pub polls: Option<(u64, u64)>,
    /// Address that the call returns to, and whether that was found behind a language binding; at
    /// level 2.
    pub site: Option<(u64, bool)>,
    /// Whole bits 16 to 31 of the slot, for events that use them as one: interposed compute
    /// functions keep their floating-point operations (`f64`) and bytes (`u64`) there.
    pub payload: [u64; 2],
    /// Offset of the slot in the file.
    pub offset: usize,
    /// Continuation slots behind it.
    pub continuations: usize,
}

/// The receiving half of a call that sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Half {
    /// Source.
    pub peer: i32,
    /// Tag.
    pub tag: i32,
    /// Bytes.
    pub bytes: u64,
}

/// One request of a call on several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestState {
    /// The request, shortened; 0 for MPI_REQUEST_NULL.
    pub request: u32,
    /// Whether this call completed it.
    pub completed: bool,
    /// Whether the operation was cancelled.
    pub cancelled: bool,
    /// Source from its status.
    pub peer: i32,
    /// Tag from its status.
    pub tag: i32,
    /// Bytes from its status.
    pub bytes: u64,
}

/// Iterates over a thread's events; ends at the last committed slot or at damage.
#[derive(Debug)]
pub struct Events<'a> {
    file: &'a RankFile,
    thread: &'a Thread,
    chunk: usize,
    /// Position behind the last chunk.
    end: usize,
    at: usize,
    previous_begin: u64,
    damage: Option<Diagnosis>,
}

impl<'a> Events<'a> {
    /// Of the thread's chunks in a range of their positions.
    pub(super) fn of(file: &'a RankFile, thread: &'a Thread, chunks: Range<usize>) -> Self {
        let Range { start, end } = chunks;
        Self { file, thread, chunk: start, end, at: 0, previous_begin: 0, damage: None }
    }
}

impl Events<'_> {
    /// What ended the iteration early, once it has ended.
    pub fn damage(&self) -> Option<&Diagnosis> {
        self.damage.as_ref()
    }

    /// The next committed slot and its offset, moving to the next chunk where one ends.
    fn next_slot(&mut self) -> Option<(usize, Slot)> {
        loop {
            let &(first, bytes, _) = self.thread.chunks[..self.end].get(self.chunk)?;
            if self.at + SLOT_BYTES <= bytes {
                let offset = first + self.at;
                let word = self.file.load_u64(offset + 8);
                if word != 0 {
                    let mut slot: Slot = read_plain(&self.file.map[offset..])?;
                    slot.word = word;
                    return Some((offset, slot));
                }
                if let Some(stray) = self.stray_after(first + self.at, first + bytes) {
                    self.damage = Some(Diagnosis {
                        offset: offset as u64,
                        what: format!("an empty slot before others (next at byte {stray})"),
                    });
                    return None;
                }
            }
            self.chunk += 1;
            self.at = 0;
        }
    }

    fn stray_after(&self, from: usize, to: usize) -> Option<usize> {
        // An event's continuations may be there before it is begun, and a running process may fill
        // slots while we look: what counts stands behind the next empty slot.
        let mut from = from + SLOT_BYTES;
        while let Some(slot) = self.file.map.get(from..to).and_then(read_plain::<Slot>) {
            from += SLOT_BYTES;
            if slot.function() != CONTINUATION {
                break;
            }
        }
        let tail = self.file.map.get(from..to)?;
        tail.iter().position(|byte| *byte != 0).map(|position| from + position)
    }

    fn check(&self, slot: &Slot) -> Option<String> {
        let function = slot.function();
        let known = matches!(function, TOOL | REGION_BEGIN | REGION_END | CONTINUATION)
            || self.file.function_name(function).is_some();
        let opened = self.thread.chunks.get(self.chunk).map_or(0, |chunk| chunk.2);
        let closed = self.thread.chunks.get(self.chunk + 1).map_or(u64::MAX, |chunk| chunk.2);
        if !known {
            Some(format!("an event of unknown function {function}"))
        } else if function == CONTINUATION {
            Some("a continuation without its event".into())
        } else if slot.begin < self.previous_begin || slot.begin < opened || slot.begin > closed {
            Some("an event that begins out of order".into())
        } else if slot.is_open() && slot.duration() != 0 {
            Some("an open event with a duration".into())
        } else {
            None
        }
    }
}

/// What the continuation slots of an event say together.
#[derive(Debug, Default)]
struct More {
    slots: usize,
    duration: Option<u64>,
    bytes: Option<(u64, u64)>,
    receive: Option<Half>,
    polls: Option<(u64, u64)>,
    site: Option<(u64, bool)>,
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl More {
    fn add(&mut self, slot: &Slot) -> bool {
        self.slots += 1;
        let peer_and_tag = join(slot.peer as u32, slot.tag as u32);
        match slot.duration() {
            CONTINUES_DURATION => self.duration = Some(slot.begin),
            CONTINUES_BYTES => self.bytes = Some((slot.begin, peer_and_tag)),
            CONTINUES_RECEIVE => {
                self.receive = Some(Half { peer: slot.peer, tag: slot.tag, bytes: slot.begin });
            }
            CONTINUES_POLLS => {
                self.polls = Some((peer_and_tag, slot.begin));
                self.duration = Some(join(slot.bytes, slot.request));
            }
            CONTINUES_SITE => self.site = Some((slot.begin, slot.peer != 0)),
            CONTINUES_REQUEST | CONTINUES_MESSAGE => {}
            _ => return false,
        }
        true
    }
}

impl Events<'_> {
    fn end_here(&mut self, offset: usize, what: &str) {
        self.damage = Some(Diagnosis { offset: offset as u64, what: what.to_owned() });
    }

    /// The continuation slots behind an event's own; they lie in the same chunk.
    fn more(&mut self) -> Option<More> {
        let mut more = More::default();
        while let Some(&(first, bytes, _)) = self.thread.chunks.get(self.chunk) {
            if self.at + SLOT_BYTES > bytes {
                break;
            }
            let offset = first + self.at;
            let word = self.file.load_u64(offset + 8);
            let Some(mut slot) = read_plain::<Slot>(&self.file.map[offset..]) else { break };
            slot.word = word;
            if word == 0 || slot.function() != CONTINUATION {
                break;
            }
            if !more.add(&slot) {
                self.end_here(offset, "a continuation of unknown kind");
                return None;
            }
            self.at += SLOT_BYTES;
        }
        Some(more)
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if self.damage.is_some() {
            return None;
        }
        let (offset, slot) = self.next_slot()?;
        if let Some(what) = self.check(&slot) {
            self.end_here(offset, &what);
            return None;
        }
        self.previous_begin = slot.begin;
        self.at += SLOT_BYTES;
        let more = self.more()?;
        let ended = !slot.is_open() && !slot.is_abandoned();
        let escaped = slot.duration() == DURATION_ESCAPE && ended;
        let duration = match (escaped, more.duration) {
            (false, _) => u64::from(slot.duration()),
            (true, Some(duration)) => duration,
            (true, None) => {
                self.end_here(offset, "a long event without its continuation");
                return None;
            }
        };
        let Some(end) = slot.begin.checked_add(duration) else {
            self.end_here(offset, "an event that ends beyond the counter's range");
            return None;
        };
        let (sent, received) = match (slot.bytes, more.bytes) {
            (BYTES_ESCAPE, Some(both)) => both,
            (small, _) => (u64::from(small), 0),
        };
        let payload = [join(slot.peer as u32, slot.tag as u32), join(slot.bytes, slot.request)];
        Some(Event {
            function: slot.function(),
            communicator: slot.communicator(),
            begin: slot.begin,
            end: ended.then_some(end),
            abandoned: slot.is_abandoned(),
            peer: slot.peer,
            tag: slot.tag,
            sent,
            received: match more.bytes {
                None if self.file.holds_received(slot.function()) => u64::from(slot.tag as u32),
                _ => received,
            },
            request: slot.request,
            receive: more.receive,
            polls: more.polls,
            site: more.site,
            payload,
            offset,
            continuations: more.slots,
        })
    }
}
