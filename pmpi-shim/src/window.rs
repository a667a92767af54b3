//! A thread's window: the mapped chunk that its events go to.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use trace_format::header::{Definition, Phase};
use trace_format::layout::{
    CHUNK_GRANULE, CHUNK_HEADER_BYTES, RESERVED_SLOTS, SLOT_BYTES, Slot, TOOL, ToolReason,
};

use crate::counter;
use crate::life;
use crate::machine;
use crate::path::{close, publish, take_slot};
use crate::real_entry::OwnWork;
use crate::thread_block::ThreadBlock;
use crate::trace_file::{self, define};

/// Bytes of a thread's next window, unless one event needs more: the first is small, for many
/// threads make few calls; the first thread's later ones are large, for a change then costs the least
/// an event (docs/overhead.md). Two stay mapped, 8 MiB at most for the first thread.
fn window_bytes(thread: u32, sequence: u32) -> usize {
    match (thread, sequence) {
        (0, 0) => 256 << 10,
        (0, _) => 4 << 20,
        (_, 0) => 64 << 10,
        (_, _) => 512 << 10,
    }
}

static THREAD_END: OnceLock<libc::pthread_key_t> = OnceLock::new();
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
        if !life::is_recording() || (*block).paused_at != 0 {
            life::count_lost_event();
            scratch(block);
            return;
        }
        let _own = OwnWork::begin();
        (*block).counter_slow = u32::from(counter::is_slow());
        let begin = counter::read(block);
        match open(block, begin, slots) {
            Ok(()) => tool_event(block, ToolReason::Window, begin),
            Err(reason) => {
                life::stop(begin, &reason);
                life::count_lost_event();
                scratch(block);
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
        (*block).poll = null_mut();
        (*block).cursor = &raw mut (*block).scratch[0];
        (*block).end = &raw mut (*block).scratch[1];
    }
}

/// Stops recording the calling thread (MPI_Pcontrol with level 0).
///
/// # Safety
/// `block` is the calling thread's, outside every call.
pub unsafe fn pause(block: *mut ThreadBlock) {
    // SAFETY: the caller's promise.
    unsafe {
        if life::is_recording() && (*block).paused_at == 0 && !(*block).window.is_null() {
            (*block).paused_at = counter::read(block);
            (*block).paused = ((*block).cursor, (*block).end);
            scratch(block);
        }
    }
}

/// Goes on recording the calling thread; the time between is an event of the tool's.
///
/// # Safety
/// As [`pause`].
pub unsafe fn resume(block: *mut ThreadBlock) {
    // SAFETY: the caller's promise: nothing has touched the window since.
    unsafe {
        let paused_at = (*block).paused_at;
        if paused_at != 0 {
            (*block).paused_at = 0;
            ((*block).cursor, (*block).end) = (*block).paused;
            (*block).level = LEVEL.load(Relaxed);
            tool_event(block, ToolReason::Paused, paused_at);
        }
    }
}

/// Opens the thread's next window.
///
/// # Safety
/// `block` is the calling thread's.
pub unsafe fn open(block: *mut ThreadBlock, opened_ticks: u64, slots: usize) -> Result<(), String> {
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
        let usual = window_bytes(thread, sequence);
        let bytes = needed.next_multiple_of(CHUNK_GRANULE as usize).max(usual);
        let least = needed.next_multiple_of(CHUNK_GRANULE as usize);
        let open_chunk =
            |bytes| trace_file::event_chunk(thread, sequence, opened_ticks, os_id(), since, bytes);
        // Where there is no space for the usual window, the least one may still fit.
        let chunk = open_chunk(bytes)
            .or_else(|reason| if bytes > least { open_chunk(least) } else { Err(reason) })?;
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
        (*block).poll = null_mut();
        (*block).level = LEVEL.load(Relaxed);
        if let Some(key) = THREAD_END.get() {
            libc::pthread_setspecific(*key, block.cast());
        }
    }
    Ok(())
}

/// Runs when a thread ends: gives its windows back to the system, and writes down what the system did
/// to the thread. The events stay in the file.
unsafe extern "C" fn thread_ended(block: *mut c_void) {
    let block: *mut ThreadBlock = block.cast();
    // SAFETY: the C library passes what the ending thread itself stored: its block, which lives as
    // long as the thread. Nothing is open any more; a later destructor that calls MPI gets a new
    // window.
    unsafe {
        let (window, previous) = ((*block).window, (*block).previous_window);
        let (thread, handles) = ((*block).thread, (*block).handles);
        // A later destructor that calls MPI finds neither slots nor window, and asks for new ones.
        (*block).cursor = null_mut();
        (*block).end = null_mut();
        (*block).poll = null_mut();
        (*block).level = 0;
        (*block).window = null_mut();
        (*block).previous_window = null_mut();
        (*block).handles = null_mut();
        if !window.is_null() {
            libc::munmap(window.cast(), (*block).window_bytes);
        }
        if !previous.is_null() {
            libc::munmap(previous.cast(), (*block).previous_bytes);
        }
        if !handles.is_null() {
            libc::munmap(handles.cast(), (*block).handle_places * size_of::<usize>());
        }
        (*block).handle_places = 0;
        // What the system did is asked of threads that did much; for the others it costs too much.
        if life::is_recording() && (*block).sequence > 1 {
            let _ = std::panic::catch_unwind(|| {
                if let Some(usage) = machine::thread_usage(os_id(), thread, Phase::Finalize) {
                    let _ = define(&Definition::ThreadUsage(usage));
                }
            });
        }
    }
}

/// Asks to be told when threads end; called once, before the first window is opened.
pub fn watch_threads() {
    let mut key = 0;
    // SAFETY: `key` is ours to be written; the destructor fits what `open` stores.
    if unsafe { libc::pthread_key_create(&mut key, Some(thread_ended)) } == 0 {
        let _ = THREAD_END.set(key);
    }
}

/// Room for `slots` continuations behind the event that the thread is completing: where its window has
/// too little, the event moves to a new one, which begins when the event began. `None` where there is
/// no space for one: recording ends with this event.
///
/// # Safety
/// `block` is the calling thread's, `slot` the last event's that it took, without continuations.
pub unsafe fn with_room(
    block: *mut ThreadBlock,
    slot: *mut Slot,
    slots: usize,
) -> Option<*mut Slot> {
    // SAFETY: the caller's promise. The old window stays mapped as the previous one.
    unsafe {
        let left = ((*block).end as usize).saturating_sub((*block).cursor as usize);
        if left >= slots * SLOT_BYTES {
            return Some(slot);
        }
        if !life::is_recording() {
            return None;
        }
        let _own = OwnWork::begin();
        let event = slot.read();
        if let Err(reason) = open(block, event.begin, slots) {
            life::stop(event.begin, &reason);
            return None;
        }
        let moved = take_slot(block);
        moved.write(Slot { word: 0, ..event });
        publish(moved, event.word);
        publish(slot, 0);
        Some(moved)
    }
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
