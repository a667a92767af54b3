//! Memory that a thread's events go to: taken from the rank's file, opened as a window, emptied, taken again.
//!
//! Where no memory can be shared with the file, only the process has it; such windows are written when it exits.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Release, SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trace_format::header::Definition;
use trace_format::layout::{CHUNK_HEADER_BYTES, ChunkHeader, RESERVED_SLOTS, SLOT_BYTES};
use trace_format::plain::bytes_of;

use crate::host::own_work::OwnWork;
use crate::state::thread_block::thread_block;
use crate::store::outermost::within;
use crate::store::trace_file::{self, Memory, define};

/// Memory of threads that ended, for those that begin.
static SPARE: Mutex<Vec<Memory>> = Mutex::new(Vec::new());
/// Windows of the process's own memory, which are written when it exits.
static UNMAPPED: Mutex<Vec<Unmapped>> = Mutex::new(Vec::new());

/// A window and what is in it.
#[derive(Debug)]
pub struct Window {
    pub memory: Memory,
    pub header: ChunkHeader,
    /// Bytes of slots that are used; of the current window as of its last change.
    pub used: usize,
}

/// A window that only this process has.
#[derive(Debug)]
struct Unmapped {
    process: u32,
    mapping: usize,
    bytes: usize,
}

impl Window {
    /// The slots that were used.
    pub fn slots(&self) -> &[u8] {
        // SAFETY: a mapping of so many bytes, which only the calling thread stores to.
        unsafe {
            std::slice::from_raw_parts(self.memory.mapping.add(CHUNK_HEADER_BYTES), self.used)
        }
    }

    /// Makes clean memory a window: its header is stored, the word with the magic last.
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

    /// Empties a window whose events are kept elsewhere. The header says so while the slots go and goes last:
    /// whoever finds a window that a process died in then knows how far it reaches.
    pub fn clean(self) -> Memory {
        const CLEARING_AT: usize = std::mem::offset_of!(ChunkHeader, clearing);
        let Memory { mapping, bytes, .. } = self.memory;
        let used = (CHUNK_HEADER_BYTES + self.used + RESERVED_SLOTS * SLOT_BYTES).min(bytes);
        // SAFETY: as in `open`; slots behind the used ones were never stored to, but for
        // continuations that an event was begun with.
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

/// Keeps clean memory for whoever acquires some next.
pub fn spare(clean: impl IntoIterator<Item = Memory>) {
    spares().extend(clean);
}

fn spares() -> MutexGuard<'static, Vec<Memory>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Clean memory for a window of at least so many bytes.
pub fn acquire(bytes: usize) -> Result<Memory, String> {
    let mut spares = spares();
    if let Some(index) = spares.iter().position(|memory| memory.bytes >= bytes) {
        return Ok(spares.swap_remove(index));
    }
    drop(spares);
    let memory = trace_file::window(bytes)?;
    if memory.offset.is_none() {
        let mut unmapped = UNMAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let (process, is_first) = (std::process::id(), unmapped.is_empty());
        unmapped.push(Unmapped { process, mapping: memory.mapping as usize, bytes: memory.bytes });
        drop(unmapped);
        if is_first {
            let _ = define(&Definition::Unmapped);
            // SAFETY: a handler without arguments.
            unsafe { libc::atexit(write_unmapped) };
        }
    }
    Ok(memory)
}

/// Writes the windows that only the process has, when it exits.
extern "C" fn write_unmapped() {
    let _own = OwnWork::begin();
    let write = || {
        let unmapped = UNMAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        for window in unmapped.iter().filter(|window| window.process == std::process::id()) {
            // SAFETY: windows of the process's own memory are never unmapped; another thread may still
            // be storing slots, of which the committed ones count.
            let bytes =
                unsafe { std::slice::from_raw_parts(window.mapping as *const u8, window.bytes) };
            trace_file::append_window(bytes);
        }
    };
    // SAFETY: the calling thread's own block.
    let _ = unsafe { within(thread_block(), || std::panic::catch_unwind(write)) };
}
