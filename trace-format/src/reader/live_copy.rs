//! Copies the file of a process that may still be running, as it was at one moment.
//!
//! The moment is that at which the windows are copied ([`LiveWindows::cut`]). All that came before lies in the file, and
//! stays there in one form or another: what a window held is in a chunk or in the totals before the window is cleared,
//! and what a chunk held is in the totals before its space is used again. So chunks are read after the windows, and
//! totals after the chunks. What came after the moment is left out, except from totals.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;

use super::samples::halves;
use super::{HOLD_TRIES, LiveWindows, MAX_HELD_BYTES, Totals, held, is_sound};
use crate::encoding::{FRAME_BYTES, MAX_PAYLOAD_BYTES, checksum, framed_bytes};
use crate::layout::*;
use crate::samples::{SAMPLE_AREA_BYTES, SampleHead};
use crate::totals::SELECTOR_AT;

/// The windows of a rank file at a moment.
#[derive(Debug, Default)]
pub struct Cut(Vec<(ChunkHeader, Vec<u8>)>);

impl Cut {
    /// Whether a chunk holds what was recorded after the moment, or what is in a window.
    fn leaves_out(&self, chunk: &ChunkHeader) -> bool {
        let mut of_thread =
            self.0.iter().map(|(header, _)| header).filter(|header| header.thread == chunk.thread);
        let last = of_thread.clone().map(|header| header.sequence).max();
        let is_held = of_thread.any(|header| header.sequence == chunk.sequence);
        is_held || last.is_some_and(|last| chunk.sequence > last)
    }

    /// Whether totals have taken a thread's windows since, so that its last calls are in none.
    fn is_overtaken_by(&self, totals: &[u8]) -> bool {
        let header: Option<ChunkHeader> = read_plain(totals);
        let selector = word_at(totals, SELECTOR_AT).unwrap_or(0);
        let (Some(header), Ok(Some(totals))) = (header, Totals::read(totals, selector)) else {
            return false;
        };
        let windows = self.0.iter().filter(|(window, _)| window.thread == header.thread);
        let last = windows.map(|(window, _)| window.sequence).max();
        last.is_none_or(|last| totals.header.next_sequence > last)
    }
}

impl LiveWindows {
    /// Copies the windows as they are now. A thread that fills its windows faster than they can be read is in it with
    /// fewer of them, or none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn cut(&mut self) -> io::Result<Cut> {
        self.find_windows()?;
        Ok(self.windows_now())
    }

    fn windows_now(&self) -> Cut {
        let mut before = self.hold();
        for _ in 0..HOLD_TRIES {
            let now = self.hold();
            // The older window is whole if the newer one was in use before it was read.
            let same =
                before.iter().zip(&now).all(|(before, now)| identity(before) == identity(now));
            if same {
                return Cut(now.into_iter().flatten().collect());
            }
            before = now;
        }
        let now = self.hold();
        let pairs = before.iter().zip(now);
        let same = pairs.filter(|(before, now)| identity(before) == identity(now));
        Cut(same.filter_map(|(_, now)| now).collect())
    }

    fn hold(&self) -> Vec<Option<(ChunkHeader, Vec<u8>)>> {
        let windows = self.windows.iter().map(|at| {
            let from = |bytes: &mut [u8]| self.source.read_exact_at(bytes, at.start);
            held::copy((at.end - at.start) as usize, from)
        });
        windows.collect()
    }

    /// The bytes of a rank file that holds what this one held at the moment of the cut.
    ///
    /// # Errors
    /// The file cannot be read, or is longer than `most_bytes` ([`io::ErrorKind::FileTooLarge`]).
    pub fn copy(&self, cut: &Cut, most_bytes: u64) -> io::Result<Vec<u8>> {
        let bytes = self.source.metadata()?.len();
        if bytes > most_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut copy = vec![0; HEADER_BYTES as usize];
        self.source.read_exact_at(&mut copy, 0)?;
        let mut totals = BTreeMap::new();
        let mut at = HEADER_BYTES;
        // Where chunks are replaced meanwhile, the next one may not begin where this one ended.
        while let Some((found, header)) = self.next_chunk(at..bytes)? {
            let end = found.saturating_add(header.length).min(bytes);
            match header.kind {
                CHUNK_TOTALS => _ = totals.insert(found, end),
                CHUNK_EVENTS if header.flags & CHUNK_IS_WINDOW != 0 => {}
                CHUNK_EVENTS | CHUNK_ENCODED if cut.leaves_out(&header) => {}
                kind => copy.extend(self.chunk(kind, found, end)?.unwrap_or_default()),
            }
            at = end;
        }
        // Beyond the limit of `--keep first`, and with `--profile-only`, windows become totals at once: then the moment
        // of this rank is a later one.
        let mut later = None;
        let mut read = Vec::new();
        for _ in 0..HOLD_TRIES {
            read.clear();
            for (at, end) in &totals {
                read.extend(self.chunk(CHUNK_TOTALS, *at, *end)?);
            }
            let windows = later.as_ref().unwrap_or(cut);
            if !read.iter().any(|chunk| windows.is_overtaken_by(chunk)) {
                break;
            }
            later = Some(self.windows_now());
        }
        copy.extend(read.into_iter().flatten());
        let windows = later.as_ref().unwrap_or(cut).0.iter();
        windows.for_each(|(header, window)| add_events(&mut copy, header, window));
        Ok(copy)
    }

    /// A chunk, once it has not changed while it was read; `None` if it is of no use to a reader.
    fn chunk(&self, kind: u16, at: u64, end: u64) -> io::Result<Option<Vec<u8>>> {
        if kind == CHUNK_UNFINISHED || end - at > MAX_HELD_BYTES as u64 {
            return Ok(None);
        }
        let mut chunk = vec![0; (end - at) as usize];
        let mut again = vec![0; chunk.len().min(CHUNK_HEADER_BYTES + size_of::<SampleHead>())];
        for _ in 0..HOLD_TRIES {
            self.source.read_exact_at(&mut chunk, at)?;
            self.source.read_exact_at(&mut again, at)?;
            let now: Option<ChunkHeader> = read_plain(&chunk);
            // Its space was taken by a newer chunk, which came after the cut.
            if now.is_none_or(|now| now.kind != kind || !is_sound(&now, &chunk)) {
                return Ok(None);
            }
            if now == read_plain(&again) && is_whole(kind, &chunk, &again) {
                break;
            }
        }
        chunk.resize(chunk.len().next_multiple_of(CHUNK_GRANULE as usize), 0);
        Ok(Some(chunk))
    }
}

/// The thread and position of a window.
fn identity(of: &Option<(ChunkHeader, Vec<u8>)>) -> Option<(u32, u32)> {
    of.as_ref().map(|(header, _)| (header.thread, header.sequence))
}

/// Whether what is replaced in place in a chunk is whole. `again` is its begin, read later.
fn is_whole(kind: u16, chunk: &[u8], again: &[u8]) -> bool {
    match kind {
        CHUNK_TOTALS => {
            let selector = word_at(chunk, SELECTOR_AT);
            selector == word_at(again, SELECTOR_AT)
                && selector.is_some_and(|selector| Totals::read(chunk, selector).is_ok())
        }
        CHUNK_DEFINITIONS => has_whole_definitions(&chunk[CHUNK_HEADER_BYTES..]),
        CHUNK_SAMPLE_AREA if chunk.len() <= SAMPLE_AREA_BYTES => {
            halves(&chunk[CHUNK_HEADER_BYTES..]) == halves(&again[CHUNK_HEADER_BYTES..])
        }
        CHUNK_ENCODED | CHUNK_SAMPLES => {
            let header: Option<ChunkHeader> = read_plain(chunk);
            header.is_some_and(|header| {
                let body = chunk.get(CHUNK_HEADER_BYTES..).unwrap_or_default();
                body.get(..header.body_bytes as usize)
                    .is_some_and(|body| checksum(body) == header.body_crc)
            })
        }
        _ => true,
    }
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn has_whole_definitions(mut records: &[u8]) -> bool {
    while let Some(frame) = word_at(records, 0).filter(|frame| *frame as u32 != 0) {
        let (length, crc) = (frame as u32 as usize, (frame >> 32) as u32);
        let payload = records.get(FRAME_BYTES..).and_then(|rest| rest.get(..length));
        if payload.filter(|_| length <= MAX_PAYLOAD_BYTES).is_none_or(|all| checksum(all) != crc) {
            return false;
        }
        records = records.get(framed_bytes(length)..).unwrap_or_default();
    }
    true
}

/// Adds a window as a chunk that does not change any more.
fn add_events(copy: &mut Vec<u8>, window: &ChunkHeader, bytes: &[u8]) {
    let slots = bytes.get(CHUNK_HEADER_BYTES..).unwrap_or_default();
    // What is zero at the end was left out.
    let whole = slots.len().next_multiple_of(SLOT_BYTES);
    let length = (CHUNK_HEADER_BYTES + whole).next_multiple_of(CHUNK_GRANULE as usize);
    let mut header = ChunkHeader { flags: 0, length: length as u64, ..*window };
    let (from, to) = CHUNK_CRC_COVERS;
    header.crc = checksum(&bytes_of(&header)[from..to]);
    let at = copy.len();
    copy.extend(bytes_of(&header));
    copy.extend(slots);
    copy.resize(at + length, 0);
}
