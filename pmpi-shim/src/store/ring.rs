//! A thread's newest events, in bounded space of the file.
//!
//! The thread takes slabs of the file and fills one after the other with chunks. Once the file has reached its limit,
//! it begins anew with the first slab, and the oldest chunks make room for new ones, one at a time, so that no call has
//! to wait for more than a few windows. What is free in a slab is an unfinished chunk, which readers ignore: at any
//! moment, chunks follow each other without gaps.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trace_format::encoded::{Decoder, Words, slots_of};
use trace_format::layout::{CHUNK_EVENTS, CHUNK_HEADER_BYTES, ChunkHeader, bytes_of_all};
use trace_format::plain::read_plain;

use crate::store::codec::zeroed;
use crate::store::free_space;
use crate::store::trace_file;

/// Ticks for which chunks are kept; beyond them the file does not grow.
static KEPT_TICKS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Size of a slab, unless a chunk needs more. The limit holds this many, if it is neither small nor large: the tail of
/// each is free, on average half a chunk.
const SLAB_BYTES: RangeInclusive<u64> = (64 << 10)..=(1 << 20);
const SLABS: u64 = 8;
/// Size of a slab where a time is kept: less is wasted where the program makes few calls.
const SHORT_SLAB_BYTES: u64 = 256 << 10;

/// Keeps the chunks of so many ticks, if the file's limit allows.
pub fn keep_ticks(ticks: u64) {
    KEPT_TICKS.store(ticks, Relaxed);
}

/// The slabs of a thread, and the chunks in them.
#[derive(Default)]
pub struct Ring {
    /// Their offsets in the file, in the order in which they are filled.
    slabs: Vec<Range<u64>>,
    /// The slab that is being filled.
    current: usize,
    /// Its free space, by offsets in the file.
    free: Range<u64>,
    /// The chunks, oldest first.
    kept: VecDeque<Kept>,
    decoder: Option<Box<Decoder>>,
    read: Vec<u8>,
    decoded: Vec<Words>,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    offset: u64,
    bytes: u64,
    opened_ticks: u64,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("slabs", &self.slabs).finish_non_exhaustive()
    }
}

/// The oldest chunk of a ring.
#[derive(Debug)]
pub struct Oldest<'r> {
    pub header: ChunkHeader,
    /// Its plain slots.
    pub slots: &'r [u8],
    /// When the next chunk was opened; `None`: there is none.
    pub next_opened: Option<u64>,
}

impl Ring {
    /// Whether the thread has no space of its own in the file.
    pub fn is_empty(&self) -> bool {
        self.slabs.is_empty()
    }

    /// Whether there is room for a chunk of a thread, after taking space of the file if it may grow. If there is none,
    /// the oldest chunk must go first; if there is no chunk left, there will never be.
    ///
    /// # Errors
    /// A sentence about the file system.
    pub fn has_room(
        &mut self,
        bytes: u64,
        opened_ticks: u64,
        thread: (u32, u32),
    ) -> Result<bool, String> {
        loop {
            if self.free.end - self.free.start >= bytes {
                return Ok(true);
            }
            let oldest = self.kept.front().map(|kept| kept.offset);
            let current = self.slabs.get(self.current).cloned().unwrap_or(0..0);
            if oldest.is_some_and(|oldest| (self.free.end..current.end).contains(&oldest)) {
                return Ok(false);
            }
            let kept_ticks = KEPT_TICKS.load(Relaxed);
            let most = if kept_ticks == u64::MAX { *SLAB_BYTES.end() } else { SHORT_SLAB_BYTES };
            let usual = trace_file::max_bytes() / SLABS;
            let usual = usual.clamp(*SLAB_BYTES.start(), most).max(bytes);
            // Without the oldest chunk there would still be enough.
            let is_enough = self.kept.get(1).is_some_and(|second| {
                opened_ticks.saturating_sub(second.opened_ticks) >= kept_ticks
            });
            let slab = match is_enough {
                true => None,
                false => free_space::take(bytes..=usual, thread)?,
            };
            if let Some(slab) = slab {
                // Behind the present one: the next one has the oldest chunks.
                self.current = (self.current + 1).min(self.slabs.len());
                self.slabs.insert(self.current, slab.clone());
                self.free = slab;
                return Ok(true);
            }
            if self.slabs.iter().all(|slab| slab.end - slab.start < bytes) && oldest.is_none() {
                return Ok(false);
            }
            self.current = (self.current + 1) % self.slabs.len().max(1);
            let Some(next) = self.slabs.get(self.current).cloned() else { return Ok(false) };
            let end = oldest.filter(|oldest| next.contains(oldest)).unwrap_or(next.end);
            self.free = next.start..end;
        }
    }

    /// Reads the oldest chunk back.
    ///
    /// # Errors
    /// A sentence about the file system, or that something else has changed the file.
    pub fn oldest(&mut self) -> Result<Option<Oldest<'_>>, String> {
        let Some(&kept) = self.kept.front() else { return Ok(None) };
        self.read.resize(kept.bytes as usize, 0);
        trace_file::read_back(kept.offset, &mut self.read)?;
        let changed = || format!("something changed the trace at byte {}", kept.offset);
        let header: ChunkHeader = read_plain(&self.read).ok_or_else(changed)?;
        let body = &self.read[CHUNK_HEADER_BYTES..];
        let next_opened = self.kept.get(1).map(|next| next.opened_ticks);
        if header.kind == CHUNK_EVENTS {
            return Ok(Some(Oldest { header, slots: body, next_opened }));
        }
        let body = body.get(..header.body_bytes as usize).ok_or_else(changed)?;
        let slots = slots_of(body).ok_or_else(changed)?;
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            none => none.insert(zeroed().ok_or("no memory to read the trace back")?),
        };
        self.decoded.clear();
        decoder
            .decode(header.opened_ticks, body, slots, &mut self.decoded)
            .map_err(|_| changed())?;
        Ok(Some(Oldest { header, slots: bytes_of_all(&self.decoded), next_opened }))
    }

    /// Frees the space of the oldest chunk, whose events are kept elsewhere. Called where there is no room.
    ///
    /// # Errors
    /// A sentence about the file system.
    pub fn free_oldest(&mut self, thread: (u32, u32)) -> Result<(), String> {
        let (Some(oldest), Some(slab)) = (self.kept.pop_front(), self.slabs.get(self.current))
        else {
            return Ok(());
        };
        let behind = oldest.offset + oldest.bytes;
        let next = self.kept.front().map(|next| next.offset);
        // Behind the last chunk of a slab follows what was free there.
        self.free.end = next.filter(|next| (behind..slab.end).contains(next)).unwrap_or(slab.end);
        free_space::mark_free(self.free.clone(), thread)
    }

    /// Writes a chunk where there is room.
    ///
    /// # Errors
    /// A sentence about the file system.
    pub fn write(&mut self, window: &ChunkHeader, body: &[u8]) -> Result<(), String> {
        let offset = self.free.start;
        let bytes = free_space::write(self.free.clone(), window, body)?;
        self.free.start += bytes;
        self.kept.push_back(Kept { offset, bytes, opened_ticks: window.opened_ticks });
        Ok(())
    }
}
