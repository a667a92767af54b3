//! Decides which events are kept one by one, and archives the others.
//!
//! A thread's full window becomes either a chunk of the file with the same events in few bytes or
//! part of the thread's totals ([`crate::store::totals`]), depending on the run's policy and its
//! size limit.

use std::sync::OnceLock;

use trace_format::header::{Keeping, KeepingPolicy};
use trace_format::layout::ChunkHeader;

use crate::host::counter;
use crate::store::chunk_headers::chunk_bytes;
use crate::store::codec::Codec;
use crate::store::ring::{self, Ring};
use crate::store::totals::ThreadTotals;
use crate::store::trace_file;

/// Limits for the bytes of definitions that the process holds in memory.
const MIN_FREED_BYTES: u64 = 6 << 10;
const MAX_FREED_BYTES: u64 = 1 << 20;

static KEEPING: OnceLock<Keeping> = OnceLock::new();

/// Chooses what is kept; of the newest events so many seconds are enough. Called once, before the first window is opened.
pub fn choose(keeping: Keeping, last_s: Option<f64>) {
    let _ = KEEPING.set(keeping);
    if let Some(last_s) = last_s {
        ring::keep_ticks((last_s * 1e9 / counter::ns_per_tick()) as u64);
    }
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
    folded: Folded,
    /// Events that newer ones may replace.
    ring: Ring,
}

/// Events of a thread that are not kept one by one.
#[derive(Debug, Default)]
struct Folded {
    totals: Option<Box<ThreadTotals>>,
    /// Offset of the totals, if their space was reserved early.
    offset: Option<u64>,
}

impl Folded {
    fn add(&mut self, window: &ChunkHeader, slots: &[u8], next_opened: u64) -> Result<(), String> {
        let totals = match &mut self.totals {
            Some(totals) => totals,
            none => {
                let offset = match self.offset {
                    Some(offset) => offset,
                    None => trace_file::totals_chunk((window.thread, window.thread_os_id))?,
                };
                none.insert(Box::new(ThreadTotals::begin(window, offset)))
            }
        };
        totals.fold(window, slots, next_opened)
    }
}

impl Archive {
    /// The archive of a new thread. If only totals are kept, they precede the windows, so that the
    /// file can end behind them.
    pub fn begin(thread: (u32, u32)) -> Result<Self, String> {
        let offset = only_totals().then(|| trace_file::totals_chunk(thread)).transpose()?;
        Ok(Self { folded: Folded { totals: None, offset }, ..Self::default() })
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
            self.folded.totals.is_some() || self.folded.offset.is_some() || !self.ring.is_empty();
        has_space && self.folded.totals.as_ref().is_none_or(|totals| !totals.is_in_region())
    }

    /// Makes room for further totals behind the end of a file that was completed.
    pub fn resume(&mut self, thread: (u32, u32)) -> Result<(), String> {
        match &mut self.folded.totals {
            Some(totals) if self.folded.offset.is_some() => {
                totals.move_to(trace_file::totals_chunk(thread)?)
            }
            _ => Ok(()),
        }
    }

    /// Archives the events of a window; `next_opened` is when the next window was opened.
    pub fn keep(
        &mut self,
        window: &ChunkHeader,
        slots: &[u8],
        next_opened: u64,
    ) -> Result<(), String> {
        match policy() {
            KeepingPolicy::First if self.folded.totals.is_none() => {
                let (header, body) = self.codec.chunk(window, slots);
                match trace_file::append(&header, body)? {
                    Some(_) => Ok(()),
                    None => self.folded.add(window, slots, next_opened),
                }
            }
            KeepingPolicy::Last => {
                let (header, body) = self.codec.chunk(window, slots);
                let thread = (window.thread, window.thread_os_id);
                let bytes = chunk_bytes(body);
                while !self.ring.has_room(bytes, window.opened_ticks, thread)? {
                    let Some(oldest) = self.ring.oldest()? else {
                        return self.folded.add(window, slots, next_opened);
                    };
                    let next_opened = oldest.next_opened.unwrap_or(window.opened_ticks);
                    self.folded.add(&oldest.header, oldest.slots, next_opened)?;
                    self.ring.free_oldest(thread)?;
                }
                self.ring.write(&header, body)
            }
            KeepingPolicy::First | KeepingPolicy::Totals => {
                self.folded.add(window, slots, next_opened)
            }
        }
    }

    /// Bytes of the totals in a chunk of their own length; `None` if there are none.
    pub fn compact_bytes(&self) -> Option<u64> {
        self.folded.totals.as_ref().map(|totals| totals.compact_bytes())
    }

    /// Moves the totals to a chunk of their own length at this offset of the file.
    pub fn move_compacted(&mut self, thread: (u32, u32), offset: u64) -> Result<(), String> {
        let totals = self.folded.totals.as_mut().ok_or("there are no totals")?;
        totals.move_compacted(thread, offset)
    }

    /// Moves the totals to the front of their chunk. Returns where the chunk begins and where the
    /// totals end in the file.
    pub fn compact(&mut self) -> Option<(u64, u64)> {
        self.folded.totals.as_mut()?.compact().ok()
    }
}
