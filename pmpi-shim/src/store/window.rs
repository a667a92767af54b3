//! A thread's windows: the memory that its events are written to.
//!
//! Two windows of a thread take turns. The one being filled is mapped from the rank's file, so what
//! was recorded survives the process. The other one, which is full, also stays mapped until the
//! first is full, too. Then [`keeping`] writes its events behind the end of the file in few bytes,
//! or folds them into the thread's totals, and the window is reused. So few pages are mapped, they
//! stay in the processor's cache, and the last events are always there.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use trace_format::header::{Definition, Phase};
use trace_format::layout::{CHUNK_HEADER_BYTES, RESERVED_SLOTS, SLOT_BYTES, Slot, TOOL};
use trace_format::markers::ToolReason;

use crate::host::counter;
use crate::host::machine;
use crate::host::own_work::OwnWork;
use crate::host::warn::warn;
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::chunk_headers::event_header;
use crate::store::file_sums;
use crate::store::keeping;
use crate::store::mapping::{Window, acquire, forget_recycled, recycle};
use crate::store::outermost::within;
use crate::store::sampling;
use crate::store::site_table::{SiteTable, look_at_modules};
use crate::store::slots::{close, publish};
use crate::store::teams;
use crate::store::thread_records::{self, ThreadRecord};
use crate::store::trace_file::{self, Cut, Memory, define};

/// Size of a window, unless one event needs more: some 3,270 slots, which are always kept. Two
/// windows fit in a second-level cache, and a window is changed in 30 to 50 µs (docs/measurements/overhead.md).
const WINDOW_BYTES: usize = 128 << 10;
/// The length of a window is a multiple of this.
const PAGE_BYTES: usize = 4096;
/// Size of the first window of every thread but the first: many threads make few calls.
const SMALL_WINDOW_BYTES: usize = 64 << 10;

static THREAD_END: OnceLock<libc::pthread_key_t> = OnceLock::new();
/// Detail level from which events have a call site.
pub const SITES_LEVEL: u32 = 1;

/// Detail level of the run.
static LEVEL: AtomicU32 = AtomicU32::new(0);

/// The recording state of a thread, found through its block.
#[derive(Debug)]
struct Recorder {
    record: ThreadRecord,
    /// Minor faults of the thread when the current window was opened.
    minor_faults: u64,
    current: Window,
    older: Option<Window>,
    /// Addresses that the thread has called from.
    sites: SiteTable,
    /// Calls on files inside calls of MPI.
    file_calls: file_sums::Later,
}

/// Sets the detail level. Called once, before the first window is opened.
pub fn set_level(level: u8) {
    LEVEL.store(u32::from(level), Relaxed);
}

impl Recorder {
    /// Opens the first window of a thread, when it begins or when the thread before it ended.
    fn new(memory: Memory, mut record: ThreadRecord, opened_ticks: u64) -> Self {
        let opened_ticks = record.continues_since.unwrap_or(opened_ticks);
        let (thread, sequence) = (record.thread, record.sequence);
        let header = event_header(thread, sequence, opened_ticks, memory.bytes, 0);
        record.sequence += 1;
        Self {
            record,
            minor_faults: minor_faults(),
            current: Window::open(memory, header),
            older: None,
            sites: SiteTable::default(),
            file_calls: file_sums::Later::default(),
        }
    }

    /// Makes the older window, or new memory, the current one. On an error nothing has changed.
    fn advance(&mut self, used: usize, opened_ticks: u64, needed: usize) -> Result<(), String> {
        self.current.used = used;
        if LEVEL.load(Relaxed) >= SITES_LEVEL && look_at_modules() {
            self.sites.forget();
        }
        sampling::look();
        let usual = WINDOW_BYTES.max(needed);
        if let Some(older) = &self.older {
            let next_opened = self.current.header.opened_ticks;
            let archive = &mut self.record.archive;
            archive.keep(&older.header, older.slots(), next_opened)?;
        }
        let memory = match self.older.take().map(Window::clear) {
            Some(memory) if memory.bytes >= usual => memory,
            smaller => {
                if let Some(memory) = smaller {
                    recycle([memory]);
                }
                acquire(usual).or_else(|reason| {
                    // If there is no space for a window of the usual size, the smallest one may
                    // still fit.
                    if needed < usual { acquire(needed) } else { Err(reason) }
                })?
            }
        };
        let faults = minor_faults();
        let header = event_header(
            self.record.thread,
            self.record.sequence,
            opened_ticks,
            memory.bytes,
            faults - self.minor_faults,
        );
        self.record.sequence += 1;
        self.minor_faults = faults;
        let full = std::mem::replace(&mut self.current, Window::open(memory, header));
        self.older = Some(full);
        Ok(())
    }

    /// Archives the contents of both windows and clears them. A window that cannot be archived is
    /// left as it is.
    fn archive_windows(&mut self, used: usize, ticks: u64) -> Vec<Memory> {
        self.current.used = used;
        let next_opened = self.current.header.opened_ticks;
        let mut cleared = Vec::new();
        if let Some(older) = self.older.take() {
            let archive = &mut self.record.archive;
            if archive.keep(&older.header, older.slots(), next_opened).is_err() {
                return cleared;
            }
            cleared.push(older.clear());
        }
        let current = &self.current;
        if self.record.archive.keep(&current.header, current.slots(), ticks).is_ok() {
            let Memory { mapping, bytes, offset } = current.memory;
            let window =
                Window { memory: Memory { mapping, bytes, offset }, header: current.header, used };
            cleared.push(window.clear());
        }
        cleared
    }
}

/// Takes the thread's next slot, with `RESERVED_SLOTS` free behind it. Moves to a new window if the
/// current one is full.
#[inline(always)]
pub fn take_slot(block: &ThreadBlock) -> *mut Slot {
    // SAFETY: the block is the thread's own; between `cursor` and `end` lie slots of a granted,
    // writable mapping (or the block's scratch slots).
    unsafe {
        if block.cursor.get() >= block.end.get() {
            next(block, 0, None);
        }
        let slot = block.cursor.get();
        block.cursor.set(slot.add(1));
        slot
    }
}

/// Moves to a new window unless an event and this many more slots fit in the current one.
#[inline(always)]
pub fn make_room(block: &ThreadBlock, slots: usize) {
    let left = (block.end.get() as usize).saturating_sub(block.cursor.get() as usize);
    if left < (slots + 1) * size_of::<Slot>() {
        next(block, slots + 1, None);
    }
}

/// Gives the thread slots to write to, at least `slots` in addition to the reserved ones: its next
/// window, or scratch if nothing is recorded. The window opens when the recorder's work began, now
/// unless `since` says otherwise: no event in it may begin earlier.
/// The window is full or there is none.
#[cold]
#[inline(never)]
fn next(block: &ThreadBlock, slots: usize, since: Option<u64>) {
    if !state::is_recording() || block.paused_at.get() != 0 {
        state::count_lost_event();
        scratch(block);
        return;
    }
    let _own = OwnWork::begin();
    block.counter_slow.set(u32::from(counter::is_slow()));
    let begin = since.unwrap_or_else(|| counter::read(block));
    match open(block, begin, slots) {
        Ok(()) => tool_event(block, ToolReason::Window, begin),
        Err(reason) => {
            stop(begin, &reason);
            state::count_lost_event();
            scratch(block);
        }
    }
}

/// Ends recording for good and prints the reason in one line.
fn stop(ticks: u64, reason: &str) {
    if state::stop() {
        warn(&format!("recording stopped; the program continues: {reason}"));
        // The chunk of definitions may still have room even if the file cannot grow.
        let _ = define(&Definition::Stopped { ticks, reason: reason.to_owned() });
    }
}

/// The thread's table of call addresses.
///
/// # Safety
/// The thread has a window.
#[inline(always)]
pub unsafe fn sites(block: &ThreadBlock) -> *mut SiteTable {
    // SAFETY: a thread with a window has a recorder, which lives as long as the window.
    unsafe { &raw mut (*recorder_of(block)).sites }
}

/// What the thread did on files inside calls of MPI; `None` if it has no window.
pub fn file_calls_for_later(block: &ThreadBlock) -> Option<&file_sums::Later> {
    // SAFETY: a thread with a window has a recorder, which lives as long as the window. Its sums are
    // atomic.
    (!block.window.get().is_null()).then(|| unsafe { &(*recorder_of(block)).file_calls })
}

#[inline(always)]
fn recorder_of(block: &ThreadBlock) -> *mut Recorder {
    block.recorder.get().cast()
}

/// Directs the thread's events to the scratch slots, so that they are dropped.
pub fn scratch(block: &ThreadBlock) {
    // SAFETY: the two slots are inside the block; the cursor reaches the end after each event.
    unsafe {
        block.level.set(0);
        block.polls.set((null_mut(), null_mut()));
        block.file_calls.set((null_mut(), null_mut()));
        let slots: *mut Slot = block.scratch.get().cast();
        block.cursor.set(slots);
        block.end.set(slots.add(1));
    }
}

/// In a forked process, abandons the windows: they belong to the parent, even if recording was
/// paused there.
pub fn leave_to_parent(block: &ThreadBlock) {
    scratch(block);
    block.paused_at.set(0);
    block.paused.set((null_mut(), null_mut()));
    // Mapping and recorder stay where they are: this process neither stores to them nor frees them.
    block.window.set(null_mut());
    block.window_bytes.set(0);
    block.recorder.set(null_mut());
}

/// Stops recording the calling thread (MPI_Pcontrol with level 0).
/// No call of the program is open.
pub fn pause(block: &ThreadBlock) {
    if !state::is_recording() || block.paused_at.get() != 0 || block.window.get().is_null() {
        return;
    }
    let _own = OwnWork::begin();
    // The event of the pause begins now, and is written when the pause ends.
    ensure_slot(block);
    if state::is_recording() {
        block.paused_at.set(counter::read(block));
        block.paused.set((block.cursor.get(), block.end.get()));
        scratch(block);
    }
}

/// Resumes recording the calling thread. The time between is an event of the tool.
pub fn resume(block: &ThreadBlock) {
    let paused_at = block.paused_at.get();
    if paused_at != 0 {
        let _own = OwnWork::begin();
        block.paused_at.set(0);
        let (first, second) = block.paused.get();
        block.cursor.set(first);
        block.end.set(second);
        block.level.set(LEVEL.load(Relaxed));
        tool_event(block, ToolReason::Paused, paused_at);
    }
}

/// Bytes of slots that the thread has used in its current window.
fn used_bytes(block: &ThreadBlock) -> usize {
    let first = block.window.get() as usize + CHUNK_HEADER_BYTES;
    let used = (block.cursor.get() as usize).wrapping_sub(first);
    // A thread that stopped recording has its cursor elsewhere; then the whole window counts.
    let most = block.window_bytes.get().saturating_sub(CHUNK_HEADER_BYTES);
    if used <= most { used } else { most / SLOT_BYTES * SLOT_BYTES }
}

/// Opens the thread's next window.
pub fn open(block: &ThreadBlock, opened_ticks: u64, slots: usize) -> Result<(), String> {
    // Room for the event itself, a long duration, and the tool's own events before or behind it.
    let needed = CHUNK_HEADER_BYTES + (slots + 5 + RESERVED_SLOTS) * SLOT_BYTES;
    let needed = needed.next_multiple_of(PAGE_BYTES);
    // SAFETY: recorder and windows are the thread's own; a window has room for the reserved slots.
    unsafe {
        let is_first = block.recorder.get().is_null();
        if is_first {
            let recorder = Box::new(begin_thread(needed, opened_ticks)?);
            sampling::begin_thread(recorder.record.thread);
            block.recorder.set(Box::into_raw(recorder).cast());
        } else {
            (*recorder_of(block)).advance(used_bytes(block), opened_ticks, needed)?;
        }
        let current = &(*recorder_of(block)).current;
        block.window.set(current.memory.mapping);
        block.window_bytes.set(current.memory.bytes);
        let slots = (current.memory.bytes - CHUNK_HEADER_BYTES) / SLOT_BYTES;
        block.cursor.set(current.memory.mapping.add(CHUNK_HEADER_BYTES).cast());
        block.end.set(block.cursor.get().add(slots - RESERVED_SLOTS));
        block.polls.set((null_mut(), null_mut()));
        block.file_calls.set((null_mut(), null_mut()));
        block.level.set(LEVEL.load(Relaxed));
        tell_when_ended(block);
        if is_first && let Some(since) = (*recorder_of(block)).record.continues_since {
            let slot = take_slot(block);
            slot.write(Slot { begin: since, ..Slot::of_tool(ToolReason::BetweenThreads, 0) });
            close(block, slot, opened_ticks.saturating_sub(since), TOOL, 0);
        }
    }
    Ok(())
}

/// Has the C library say when the calling thread ends.
pub fn tell_when_ended(block: &ThreadBlock) {
    if let Some(key) = THREAD_END.get() {
        // SAFETY: the destructor expects the thread's block, which lives as long as the thread.
        unsafe { libc::pthread_setspecific(*key, (&raw const *block).cast()) };
    }
}

/// Assigns the calling thread a record and a first window.
fn begin_thread(needed: usize, opened_ticks: u64) -> Result<Recorder, String> {
    let record = thread_records::begin(os_id(), opened_ticks)?;
    let usual = if record.thread.0 == 0 { WINDOW_BYTES } else { SMALL_WINDOW_BYTES };
    let memory = acquire(usual.max(needed)).or_else(|_| acquire(needed))?;
    Ok(Recorder::new(memory, record, opened_ticks))
}

/// Runs when a thread ends: its events are written to the file, its windows are given to other
/// threads, and its resource usage is recorded.
unsafe extern "C" fn thread_ended(block: *mut c_void) {
    let _own = OwnWork::begin();
    // SAFETY: the C library passes the value that the ending thread itself stored: its block, which
    // lives as long as the thread.
    let block = unsafe { &*block.cast::<ThreadBlock>() };
    within(block, || end_thread(block));
}

/// The thread is ending: nothing is open any more. A later destructor that calls MPI gets a
/// recorder of its own.
fn end_thread(block: &ThreadBlock) {
    // SAFETY: recorder and buffer are the thread's own, and its block no longer names them.
    unsafe {
        sampling::end_thread(block);
        teams::give_back(block);
        let recorder = recorder_of(block);
        let (used, handles) = (used_bytes(block), block.handles.get());
        block.recorder.set(null_mut());
        block.cursor.set(null_mut());
        block.end.set(null_mut());
        block.polls.set((null_mut(), null_mut()));
        block.file_calls.set((null_mut(), null_mut()));
        block.level.set(0);
        block.window.set(null_mut());
        block.handles.set(null_mut());
        if !handles.is_null() {
            libc::munmap(handles.cast(), block.handle_capacity.get() * size_of::<usize>());
        }
        block.handle_capacity.set(0);
        if recorder.is_null() || !state::is_recording() {
            return;
        }
        let _ = std::panic::catch_unwind(|| {
            machine::thread_ends();
            let mut recorder = Box::from_raw(recorder);
            recorder.file_calls.take(file_sums::add);
            let ((number, id), many) = (recorder.record.thread, recorder.older.is_some());
            let (windows, end) = (recorder.windows().count(), counter::now());
            let cleared = recorder.archive_windows(used, end);
            let all = cleared.len() == windows;
            recycle(cleared);
            // Resource usage is queried for threads that did much; for the others it costs too
            // much.
            if many && let Some(usage) = machine::thread_usage(id, number, Phase::Finalize) {
                for of in machine::thread_cores([id].into_iter()) {
                    let _ = define(&Definition::ThreadCores(of));
                }
                let _ = define(&Definition::ThreadUsage(usage));
            }
            if all {
                thread_records::end(recorder.record, end);
            }
        });
    }
}

/// Has the C library report the end of threads. Called once, before the first window is opened.
pub fn watch_threads() {
    let mut key = 0;
    // SAFETY: `key` is ours to write; the destructor matches the value that `open` stores.
    if unsafe { libc::pthread_key_create(&mut key, Some(thread_ended)) } == 0 {
        let _ = THREAD_END.set(key);
    }
}

/// Ends the calling thread's recording when MPI is finalized, and completes the file.
///
/// # Errors
/// As for [`trace_file::finish`].
/// Nothing is recorded any more.
pub fn finish(block: &ThreadBlock, lost_events: u64) -> Result<(), String> {
    // SAFETY: recorder and mappings are the thread's own, and its block no longer names them.
    unsafe {
        let (recorder, used) = (recorder_of(block), used_bytes(block));
        scratch(block);
        block.window.set(null_mut());
        block.recorder.set(null_mut());
        if recorder.is_null() {
            return trace_file::finish(None, counter::now(), lost_events);
        }
        let mut recorder = Box::from_raw(recorder);
        let cut = if keeping::only_totals() || recorder.current.memory.offset.is_none() {
            let windows = recorder.windows().count();
            let cleared = recorder.archive_windows(used, counter::now());
            for memory in cleared.iter().filter(|memory| memory.offset.is_some()) {
                libc::munmap(memory.mapping.cast(), memory.bytes);
            }
            let totals = recorder.record.archive.compact();
            let only_totals =
                keeping::only_totals() && cleared.len() == windows && !sampling::has_areas();
            let last = totals.filter(|_| only_totals).and_then(thread_records::gather_totals);
            last.map(|(chunk, used_end)| Cut::Behind { chunk, used_end })
        } else {
            let Memory { mapping, bytes, offset } = recorder.current.memory;
            libc::munmap(mapping.cast(), bytes);
            offset.map(|at| Cut::Tail {
                used_end: at + (CHUNK_HEADER_BYTES + used) as u64,
                given_end: at + bytes as u64,
            })
        };
        let outcome = trace_file::finish(cut, counter::now(), lost_events);
        thread_records::finish(recorder.record);
        outcome
    }
}

/// Resumes recording in a thread that begins its next window now.
/// The window was closed by [`finish`], or there is none.
pub fn reopen(block: &ThreadBlock, opened_ticks: u64) -> Result<(), String> {
    forget_recycled();
    open(block, opened_ticks, 0)
}

impl Recorder {
    fn windows(&self) -> impl Iterator<Item = &Memory> {
        [Some(&self.current), self.older.as_ref()].into_iter().flatten().map(|w| &w.memory)
    }
}

/// Makes room for `slots` continuations behind the event that the thread is completing. If its
/// window has too little, the event and its continuations move to a new window that begins when the
/// event began. `None` if there is no space: recording ends with this event.
///
/// # Safety
/// `block` is the calling thread's, and `slot` is that of the last event it took.
pub unsafe fn with_room(block: &ThreadBlock, slot: *mut Slot, slots: usize) -> Option<*mut Slot> {
    // SAFETY: from the slot to the cursor all slots are the thread's own; the old window stays
    // mapped as the older one.
    unsafe {
        let left = (block.end.get() as usize).saturating_sub(block.cursor.get() as usize);
        if left >= slots * SLOT_BYTES {
            return Some(slot);
        }
        if !state::is_recording() {
            return None;
        }
        let _own = OwnWork::begin();
        let event = slot.read();
        let first_more = slot.add(1);
        let more = block.cursor.get().offset_from_unsigned(first_more);
        if let Err(reason) = open(block, event.begin, more + slots) {
            stop(event.begin, &reason);
            return None;
        }
        let moved = take_slot(block);
        moved.write(Slot { word: 0, ..event });
        for index in 0..more {
            take_slot(block).write(first_more.add(index).read());
        }
        publish(moved, event.word);
        slot.write_bytes(0, 1 + more);
        Some(moved)
    }
}

/// Ensures that the thread has a free slot: what begins from now on lies behind the opening of its
/// window.
pub fn ensure_slot(block: &ThreadBlock) {
    if block.cursor.get() >= block.end.get() {
        next(block, 0, None);
    }
}

/// Records time that the recorder spent since `begin`. No event of the thread may have begun later.
/// If the window is full, the time is part of opening the next one, and the event, at its end, has
/// no length.
pub fn tool_event(block: &ThreadBlock, reason: ToolReason, begin: u64) {
    tool_event_with(block, reason, 0, begin);
}

/// Like [`tool_event`], with a number that belongs to the reason.
pub fn tool_event_with(block: &ThreadBlock, reason: ToolReason, number: u32, begin: u64) {
    // SAFETY: a slot that was taken is the thread's own.
    unsafe {
        let mut begin = begin;
        if block.cursor.get() >= block.end.get() {
            next(block, 0, Some(begin));
            begin = counter::read(block);
        }
        let slot = take_slot(block);
        slot.write(Slot { begin, ..Slot::of_tool(reason, number) });
        let duration = counter::read(block).wrapping_sub(begin);
        close(block, slot, duration, TOOL, 0);
    }
}

fn os_id() -> u32 {
    // SAFETY: the system call has no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

fn minor_faults() -> u64 {
    // SAFETY: a zeroed rusage may be written over.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_minflt as u64
    }
}
