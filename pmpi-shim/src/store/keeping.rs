//! Decides which events are kept one by one, and archives the others.
//!
//! A thread's full window becomes either a chunk of the file with the same events in few bytes or
//! part of the thread's totals ([`crate::store::totals`]), depending on the run's policy and its
//! size limit.

use std::collections::VecDeque;
use std::sync::OnceLock;

use trace_format::header::{Keeping, KeepingPolicy};
use trace_format::layout::{CHUNK_HEADER_BYTES, ChunkHeader};
use trace_format::plain::read_plain;

use crate::store::codec::Codec;
use crate::store::totals::ThreadTotals;
use crate::store::trace_file;

/// Limits for the bytes of definitions that the process holds in memory.
const MIN_FREED_BYTES: u64 = 6 << 10;
const MAX_FREED_BYTES: u64 = 1 << 20;

static KEEPING: OnceLock<Keeping> = OnceLock::new();

/// Chooses what is kept. Called once, before the first window is opened.
pub fn choose(keeping: Keeping) {
    let _ = KEEPING.set(keeping);
}

fn policy() -> KeepingPolicy {
    KEEPING.get().map_or(KeepingPolicy::First, |keeping| keeping.policy)
}

/// Whether no event is kept one by one at the end of the run.
pub fn only_totals() -> bool {
    policy() == KeepingPolicy::Totals
}

/// Whether every event so far is kept one by one, so that every definition is needed.
pub fn keeps_all() -> bool {
    policy() == KeepingPolicy::First && !trace_file::is_full()
}

/// Number of bytes of definitions of freed objects that may be kept.
pub fn freed_definition_bytes() -> u64 {
    match KEEPING.get() {
        // Their events may still be in the file.
        Some(keeping) if keeping.policy == KeepingPolicy::Last => {
            (keeping.max_bytes / 16).clamp(MIN_FREED_BYTES, MAX_FREED_BYTES)
        }
        _ => MIN_FREED_BYTES,
    }
}

/// What a thread keeps besides its windows.
#[derive(Debug, Default)]
pub struct Archive {
    codec: Codec,
    totals: Option<Box<ThreadTotals>>,
    /// Offset of the totals, if their space was reserved early.
    totals_offset: Option<u64>,
    /// Chunks that newer events may replace, oldest first: offset and length.
    replaceable: VecDeque<(u64, u64)>,
}

impl Archive {
    /// The archive of a new thread. If only totals are kept, they precede the windows, so that the
    /// file can end behind them.
    pub fn begin(thread: (u32, u32)) -> Result<Self, String> {
        let totals_offset = only_totals().then(|| trace_file::totals_chunk(thread)).transpose()?;
        Ok(Self { totals_offset, ..Self::default() })
    }

    /// Whether a thread that begins continues the archive of one that has ended: only if another one
    /// would exceed the limit.
    pub fn reuses() -> bool {
        match policy() {
            KeepingPolicy::Totals => true,
            KeepingPolicy::First | KeepingPolicy::Last => trace_file::is_full(),
        }
    }

    /// Whether another thread may continue this archive: it has space in the file of its own, and
    /// its thread ended outside all regions.
    pub fn may_continue(&self) -> bool {
        let has_space =
            self.totals.is_some() || self.totals_offset.is_some() || !self.replaceable.is_empty();
        has_space && self.totals.as_ref().is_none_or(|totals| !totals.is_in_region())
    }

    /// Makes room for further totals behind the end of a file that was completed.
    pub fn resume(&mut self, thread: (u32, u32)) -> Result<(), String> {
        match &mut self.totals {
            Some(totals) if self.totals_offset.is_some() => {
                totals.move_to(trace_file::totals_chunk(thread)?)
            }
            _ => Ok(()),
        }
    }

    /// Archives the events of a window. `min_bytes` is the minimum size of its chunk, so that
    /// another may replace it; `next_opened` is when the next window was opened.
    pub fn keep(
        &mut self,
        window: &ChunkHeader,
        slots: &[u8],
        min_bytes: usize,
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
                if let Some(offset) = trace_file::append(window, slots, min_bytes)? {
                    let length = (CHUNK_HEADER_BYTES + slots.len()).max(min_bytes);
                    self.replaceable.push_back((offset, length as u64));
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
                let totals_offset = match self.totals_offset {
                    Some(totals_offset) => totals_offset,
                    None => trace_file::totals_chunk((window.thread, window.thread_os_id))?,
                };
                none.insert(Box::new(ThreadTotals::begin(window, totals_offset)))
            }
        };
        totals.fold(window, slots, next_opened)
    }

    /// Folds the oldest chunk into the totals and replaces it with the window's events.
    fn replace_oldest(
        &mut self,
        window: &ChunkHeader,
        slots: &[u8],
        next_opened: u64,
    ) -> Result<(), String> {
        let needed = (CHUNK_HEADER_BYTES + slots.len()) as u64;
        while let Some((offset, length)) = self.replaceable.pop_front() {
            let mut chunk = vec![0; length as usize];
            trace_file::read_back(offset, &mut chunk)?;
            let oldest: ChunkHeader = read_plain(&chunk).ok_or("a chunk is too short")?;
            let next = match self.replaceable.front() {
                Some(&(offset, _)) => opened_at(offset)?,
                None => window.opened_ticks,
            };
            self.fold(&oldest, &chunk[CHUNK_HEADER_BYTES..], next)?;
            if length >= needed {
                trace_file::replace(offset, length, window, slots)?;
                self.replaceable.push_back((offset, length));
                return Ok(());
            }
        }
        self.fold(window, slots, next_opened)
    }

    /// Bytes of the totals in a chunk of their own length; `None` if there are none.
    pub fn compact_bytes(&self) -> Option<u64> {
        self.totals.as_ref().map(|totals| totals.compact_bytes())
    }

    /// Moves the totals to a chunk of their own length at this offset of the file.
    pub fn move_compacted(&mut self, thread: (u32, u32), offset: u64) -> Result<(), String> {
        let totals = self.totals.as_mut().ok_or("there are no totals")?;
        totals.move_compacted(thread, offset)
    }

    /// Moves the totals to the front of their chunk. Returns where the chunk begins and where the
    /// totals end in the file.
    pub fn compact(&mut self) -> Option<(u64, u64)> {
        self.totals.as_mut()?.compact().ok()
    }
}

/// When the chunk at a file offset was opened.
fn opened_at(offset: u64) -> Result<u64, String> {
    let mut header = [0; CHUNK_HEADER_BYTES];
    trace_file::read_back(offset, &mut header)?;
    read_plain(&header).map(|h: ChunkHeader| h.opened_ticks).ok_or("a chunk is too short".into())
}
