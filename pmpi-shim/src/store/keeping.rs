//! Which events stay one by one, and where the others go.
//!
//! In: a full window of a thread. Out: a chunk of the file with the same events in few bytes, or the thread's totals
//! ([`crate::store::totals`]), by the run's policy and its limit on bytes.

use std::collections::VecDeque;
use std::sync::OnceLock;

use trace_format::header::{Keeping, KeepingPolicy};
use trace_format::layout::{CHUNK_HEADER_BYTES, ChunkHeader};
use trace_format::plain::read_plain;

use crate::store::codec::Codec;
use crate::store::totals::ThreadTotals;
use crate::store::trace_file;

/// Bytes of definitions that the process holds beside the file.
const LEAST_FREED_BYTES: u64 = 6 << 10;
const MOST_FREED_BYTES: u64 = 1 << 20;

static KEEPING: OnceLock<Keeping> = OnceLock::new();

/// Chooses what is kept; called once, before the first window is opened.
pub fn choose(keeping: Keeping) {
    let _ = KEEPING.set(keeping);
}

fn policy() -> KeepingPolicy {
    KEEPING.get().map_or(KeepingPolicy::First, |keeping| keeping.policy)
}

/// Whether no event is kept one by one when the run ends.
pub fn only_totals() -> bool {
    policy() == KeepingPolicy::Totals
}

/// Whether every event so far stays one by one, so that every definition is needed.
pub fn keeps_all() -> bool {
    policy() == KeepingPolicy::First && !trace_file::is_full()
}

/// Bytes of definitions that may stay of what the program has freed.
pub fn freed_definition_bytes() -> u64 {
    match KEEPING.get() {
        // Their events may still be there.
        Some(keeping) if keeping.policy == KeepingPolicy::Last => {
            (keeping.max_bytes / 16).clamp(LEAST_FREED_BYTES, MOST_FREED_BYTES)
        }
        _ => LEAST_FREED_BYTES,
    }
}

/// What a thread keeps besides its windows.
#[derive(Debug, Default)]
pub struct Kept {
    codec: Codec,
    totals: Option<Box<ThreadTotals>>,
    /// Where the totals will stand, when their place was taken early.
    place: Option<u64>,
    /// Chunks whose place a newer one may take, oldest first: offset and length.
    places: VecDeque<(u64, u64)>,
}

impl Kept {
    /// Of a thread that begins. Where only totals stay, they stand before the windows, so that the file
    /// can end behind them.
    pub fn begin(thread: (u32, u32)) -> Result<Self, String> {
        let place = only_totals().then(|| trace_file::totals_chunk(thread)).transpose()?;
        Ok(Self { place, ..Self::default() })
    }

    /// Keeps the events of a window. `place_bytes` is what its chunk takes at least, so that another may
    /// take its place; `next_opened` is when the window after it was opened.
    pub fn keep(
        &mut self,
        window: &ChunkHeader,
        slots: &[u8],
        place_bytes: usize,
        next_opened: u64,
    ) -> Result<(), String> {
        match policy() {
            KeepingPolicy::First if self.totals.is_none() => {
                let appended = match self.codec.encode(window, slots) {
                    Some(encoded) => trace_file::append_encoded(window, encoded)?,
                    None => trace_file::append(window, slots, 0)?,
                };
                if appended.is_some() {
                    return Ok(());
                }
            }
            KeepingPolicy::Last => {
                if let Some(offset) = trace_file::append(window, slots, place_bytes)? {
                    let length = (CHUNK_HEADER_BYTES + slots.len()).max(place_bytes);
                    self.places.push_back((offset, length as u64));
                    return Ok(());
                }
                return self.replace_oldest(window, slots, next_opened);
            }
            KeepingPolicy::First | KeepingPolicy::Totals => {}
        }
        self.fold(window, slots, next_opened)
    }

    fn fold(&mut self, window: &ChunkHeader, slots: &[u8], next_opened: u64) -> Result<(), String> {
        let totals = match &mut self.totals {
            Some(totals) => totals,
            none => {
                let place = match self.place {
                    Some(place) => place,
                    None => trace_file::totals_chunk((window.thread, window.thread_os_id))?,
                };
                none.insert(Box::new(ThreadTotals::begin(window, place)))
            }
        };
        totals.fold(window, slots, next_opened)
    }

    /// Folds the oldest chunk and puts the window's events in its place.
    fn replace_oldest(
        &mut self,
        window: &ChunkHeader,
        slots: &[u8],
        next_opened: u64,
    ) -> Result<(), String> {
        let needed = (CHUNK_HEADER_BYTES + slots.len()) as u64;
        while let Some((offset, length)) = self.places.pop_front() {
            let mut chunk = vec![0; length as usize];
            trace_file::read_back(offset, &mut chunk)?;
            let oldest: ChunkHeader = read_plain(&chunk).ok_or("a chunk is too short")?;
            let next = match self.places.front() {
                Some(&(offset, _)) => opened_at(offset)?,
                None => window.opened_ticks,
            };
            self.fold(&oldest, &chunk[CHUNK_HEADER_BYTES..], next)?;
            if length >= needed {
                trace_file::replace(offset, length, window, slots)?;
                self.places.push_back((offset, length));
                return Ok(());
            }
        }
        self.fold(window, slots, next_opened)
    }

    /// Moves the totals to the front of their chunk; where it begins and where they end in the file.
    pub fn compact(&mut self) -> Option<(u64, u64)> {
        self.totals.as_mut()?.compact().ok()
    }
}

/// When the chunk at an offset of the file was opened.
fn opened_at(offset: u64) -> Result<u64, String> {
    let mut header = [0; CHUNK_HEADER_BYTES];
    trace_file::read_back(offset, &mut header)?;
    read_plain(&header).map(|h: ChunkHeader| h.opened_ticks).ok_or("a chunk is too short".into())
}
