//! The memory of windows: taken from the rank's file, opened as a window, cleared, and reused.
//!
//! If the file's memory cannot be shared, the windows use the process's own memory and are written
//! when the process exits.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Release, SeqCst};

use trace_format::header::Definition;
use trace_format::layout::{CHUNK_HEADER_BYTES, ChunkHeader, RESERVED_SLOTS, SLOT_BYTES};
use trace_format::plain::bytes_of;

use crate::host::lock::{Lock, Locked};
use crate::host::own_work::OwnWork;
use crate::state;
use crate::state::thread_block::thread_block;
use crate::store::outermost::within;
use crate::store::trace_file::{self, Memory, define};

/// Memory of ended threads, for new ones.
static SPARE: Lock<Vec<Memory>> = Lock::new(Vec::new());
/// Windows in the process's own memory, which are written at exit.
static UNMAPPED: Lock<Vec<Unmapped>> = Lock::new(Vec::new());

/// A window and its contents.
#[derive(Debug)]
pub struct Window {
    pub memory: Memory,
    pub header: ChunkHeader,
    /// Bytes of slots in use; for the current window, as of the last change of windows.
    pub used: usize,
}

/// A window that exists only in this process.
#[derive(Debug)]
struct Unmapped {
    process: u32,
    mapping: usize,
    bytes: usize,
}

impl Window {
    /// The slots in use.
    pub fn slots(&self) -> &[u8] {
        // SAFETY: a mapping of that many bytes, to which only the calling thread stores.
        unsafe {
            std::slice::from_raw_parts(self.memory.mapping.add(CHUNK_HEADER_BYTES), self.used)
        }
    }

    /// Turns cleared memory into a window: stores its header, the word with the magic last.
    pub fn open(memory: Memory, header: ChunkHeader) -> Self {
        let (first, rest) = bytes_of(&header).split_at(8);
        // SAFETY: the memory is the calling thread's, aligned, and longer than a header.
        unsafe {
            memory.mapping.add(8).copy_from_nonoverlapping(rest.as_ptr(), rest.len());
            let first = u64::from_le_bytes(first.try_into().unwrap_or_default());
            AtomicU64::from_ptr(memory.mapping.cast()).store(first, Release);
        }
        Self { memory, header, used: 0 }
    }

    /// Clears a window whose events are kept elsewhere. The header states that clearing is in
    /// progress and is cleared last. If the process dies meanwhile, a reader of the window knows
    /// how far it was cleared.
    pub fn clear(self) -> Memory {
        const CLEARING_AT: usize = std::mem::offset_of!(ChunkHeader, clearing);
        let Memory { mapping, bytes, .. } = self.memory;
        let used = (CHUNK_HEADER_BYTES + self.used + RESERVED_SLOTS * SLOT_BYTES).min(bytes);
        // SAFETY: the mapping is the window's own. Slots behind the used ones were never stored to,
        // except for continuations written at the begin of an event.
        unsafe {
            AtomicU64::from_ptr(mapping.add(CLEARING_AT).cast()).store(1, Release);
            std::sync::atomic::fence(SeqCst);
            mapping.add(CHUNK_HEADER_BYTES).write_bytes(0, used - CHUNK_HEADER_BYTES);
            std::sync::atomic::fence(SeqCst);
            AtomicU64::from_ptr(mapping.cast()).store(0, Release);
            std::sync::atomic::fence(SeqCst);
            mapping.write_bytes(0, CHUNK_HEADER_BYTES);
        }
        self.memory
    }
}

/// Keeps cleared memory for the next caller of `acquire`.
pub fn recycle(cleared: impl IntoIterator<Item = Memory>) {
    recycled().extend(cleared);
}

/// Forgets cleared memory, which may lie behind the end of a completed file.
pub fn forget_recycled() {
    recycled().clear();
}

fn recycled() -> Locked<'static, Vec<Memory>> {
    SPARE.lock()
}

/// Cleared memory for a window of at least this many bytes.
pub fn acquire(bytes: usize) -> Result<Memory, String> {
    let mut recycled = recycled();
    if let Some(index) = recycled.iter().position(|memory| memory.bytes >= bytes) {
        return Ok(recycled.swap_remove(index));
    }
    drop(recycled);
    let memory = trace_file::window(bytes)?;
    if memory.offset.is_none() {
        let mut unmapped = UNMAPPED.lock();
        let (process, is_first) = (std::process::id(), unmapped.is_empty());
        unmapped.push(Unmapped { process, mapping: memory.mapping as usize, bytes: memory.bytes });
        drop(unmapped);
        if is_first {
            let _ = define(&Definition::Unmapped);
            // SAFETY: the handler takes no arguments.
            unsafe { libc::atexit(write_unmapped) };
        }
    }
    Ok(memory)
}

/// At exit, writes the windows that exist only in this process.
extern "C" fn write_unmapped() {
    if state::is_child() {
        return;
    }
    let _own = OwnWork::begin();
    let write = || {
        let unmapped = UNMAPPED.lock();
        for window in unmapped.iter().filter(|window| window.process == std::process::id()) {
            // SAFETY: windows in the process's own memory are never unmapped. Another thread may
            // still be storing slots; the committed ones count.
            let bytes =
                unsafe { std::slice::from_raw_parts(window.mapping as *const u8, window.bytes) };
            trace_file::append_window(bytes);
        }
    };
    let _ = within(thread_block(), || std::panic::catch_unwind(write));
}
