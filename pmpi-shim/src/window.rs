//! A thread's window: the mapped chunk that its events go to.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use trace_format::layout::{
    CHUNK_GRANULE, CHUNK_HEADER_BYTES, RESERVED_SLOTS, SLOT_BYTES, TOOL, ToolReason,
};

use crate::counter;
use crate::life;
use crate::path::{close, take_slot};
use crate::real_entry::ErrnoGuard;
use crate::thread_block::ThreadBlock;
use crate::trace_file;

/// Bytes of a window unless one event needs more: 32,758 slots and the reserved ones, populated in one
/// go.
pub const WINDOW_BYTES: usize = 1 << 20;

static THREADS: AtomicU32 = AtomicU32::new(0);
/// Operating system's ids of the threads that have windows, in order of their numbers.
static THREAD_OS_IDS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Detail level of the run.
static LEVEL: AtomicU32 = AtomicU32::new(0);

/// Chooses the detail level; called once, before the first window is opened.
pub fn set_level(level: u8) {
    LEVEL.store(u32::from(level), Relaxed);
}

/// Operating system's ids of the recorded threads; the index is the thread's number.
pub fn thread_os_ids() -> Vec<u32> {
    THREAD_OS_IDS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Gives the thread slots to write to, at least `slots` beside the reserved ones: its next window, or
/// scratch when nothing is recorded.
///
/// # Safety
/// `block` is the calling thread's, and its window is full or it has none.
#[cold]
#[inline(never)]
pub unsafe fn next(block: *mut ThreadBlock, slots: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if !life::is_recording() {
            scratch(block);
            return;
        }
        let _errno = ErrnoGuard::new();
        (*block).counter_slow = u32::from(counter::is_slow());
        let begin = counter::read(block);
        match open(block, begin, slots) {
            Ok(()) => tool_event(block, ToolReason::Window, begin),
            Err(reason) => {
                scratch(block);
                life::stop(begin, &reason);
            }
        }
    }
}

/// Sends the thread's events nowhere.
///
/// # Safety
/// `block` is the calling thread's.
pub unsafe fn scratch(block: *mut ThreadBlock) {
    // SAFETY: two slots inside the block; the cursor meets the end after each event.
    unsafe {
        (*block).level = 0;
        (*block).poll = std::ptr::null_mut();
        (*block).cursor = &raw mut (*block).scratch[0];
        (*block).end = &raw mut (*block).scratch[1];
    }
}

/// Opens the thread's next window.
///
/// # Safety
/// `block` is the calling thread's.
pub unsafe fn open(
    block: *mut ThreadBlock,
    opened_ticks: u64,
    slots: usize,
) -> Result<(), String> {
    // SAFETY: the caller's promise; the mappings are the thread's own.
    unsafe {
        if (*block).window.is_null() && (*block).sequence == 0 {
            (*block).thread = THREADS.fetch_add(1, Relaxed);
            let mut ids = THREAD_OS_IDS.lock().unwrap_or_else(PoisonError::into_inner);
            let number = (*block).thread as usize;
            if ids.len() <= number {
                ids.resize(number + 1, 0);
            }
            ids[number] = os_id();
        }
        let faults = minor_faults();
        let since = if (*block).sequence == 0 { 0 } else { faults - (*block).minor_faults };
        let (thread, sequence) = ((*block).thread, (*block).sequence);
        // The tool's own event comes first.
        let needed = CHUNK_HEADER_BYTES + (slots + 2 + RESERVED_SLOTS) * SLOT_BYTES;
        let bytes = needed.next_multiple_of(CHUNK_GRANULE as usize).max(WINDOW_BYTES);
        let chunk =
            trace_file::event_chunk(thread, sequence, opened_ticks, os_id(), since, bytes)?;
        if !(*block).previous_window.is_null() {
            libc::munmap((*block).previous_window.cast(), (*block).previous_bytes);
        }
        (*block).previous_window = (*block).window;
        (*block).previous_bytes = (*block).window_bytes;
        (*block).window = chunk.mapping;
        (*block).window_bytes = chunk.bytes;
        (*block).sequence += 1;
        (*block).minor_faults = minor_faults();
        let slots = (chunk.bytes - CHUNK_HEADER_BYTES) / SLOT_BYTES;
        (*block).cursor = chunk.mapping.add(CHUNK_HEADER_BYTES).cast();
        (*block).end = (*block).cursor.add(slots - RESERVED_SLOTS);
        (*block).poll = std::ptr::null_mut();
        (*block).level = LEVEL.load(Relaxed);
    }
    Ok(())
}

/// Records time that the recorder spent since `begin`.
///
/// # Safety
/// `block` is the calling thread's.
pub unsafe fn tool_event(block: *mut ThreadBlock, reason: ToolReason, begin: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        let slot = take_slot(block);
        (&raw mut (*slot).begin).write_volatile(begin);
        (&raw mut (*slot).peer).write_volatile(reason as i32);
        let duration = counter::read(block).wrapping_sub(begin);
        close(block, slot, duration, TOOL, 0);
    }
}

fn os_id() -> u32 {
    // SAFETY: a system call without arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

fn minor_faults() -> u64 {
    // SAFETY: a zeroed rusage is valid to be written over.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_minflt as u64
    }
}
