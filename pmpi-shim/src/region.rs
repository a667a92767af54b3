//! Regions: named stretches of a rank's time, marked by the program through `gammachi.h`.

use std::ffi::{CStr, c_char};
use std::panic::catch_unwind;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use trace_format::header::Definition;
use trace_format::layout::{REGION_BEGIN, REGION_END, Slot, slot_word};

use crate::counter;
use crate::counters;
use crate::life;
use crate::outermost::{Spacer, enter, is_inside, leave};
use crate::path::{publish, take_slot};
use crate::real_entry::OwnWork;
use crate::thread_block::{ThreadBlock, entry_stub, thread_block};
use crate::trace_file::define;

/// Places for names; a program with more regions has the rest under one name.
const MOST_REGIONS: usize = 1024;
/// Name of the regions that found no place; its id is the table's last.
const MORE_REGIONS: &CStr = c"(more regions)";

/// One name: its hash, 0 in a free place, stored after the name.
struct Name {
    hash: AtomicU64,
    name: AtomicPtr<c_char>,
}

static NAMES: [Name; MOST_REGIONS] =
    [const { Name { hash: AtomicU64::new(0), name: AtomicPtr::new(null_mut()) } }; MOST_REGIONS];
static INSERTING: Mutex<()> = Mutex::new(());

/// Names that `--compute regions=NAME,…` gives; none where every region counts.
static CHOSEN_NAMES: OnceLock<Vec<String>> = OnceLock::new();
/// Whether each region is computation.
static COMPUTES: [AtomicBool; MOST_REGIONS] = [const { AtomicBool::new(true) }; MOST_REGIONS];

/// Chooses the regions that are computation, before any begins.
pub fn choose(compute: &str) {
    if let Some(names) = compute.strip_prefix("regions=") {
        let _ = CHOSEN_NAMES.set(names.split(',').map(str::to_owned).collect());
    }
}

/// Whether a region's time is computation with `--compute regions`.
pub fn computes(id: i32) -> bool {
    usize::try_from(id)
        .ok()
        .and_then(|id| COMPUTES.get(id))
        .is_none_or(|computes| computes.load(Ordering::Relaxed))
}

fn hash_of(name: &CStr) -> u64 {
    let hash = name.to_bytes().iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash | 1
}

/// The place of a name, or the first free one on its way; the last place is never given.
fn place_of(name: &CStr, hash: u64) -> Option<(usize, bool)> {
    let places = MOST_REGIONS - 1;
    (0..places).map(|step| (hash as usize).wrapping_add(step) % places).find_map(|place| {
        let held = NAMES[place].hash.load(Ordering::Acquire);
        if held == 0 {
            return Some((place, false));
        }
        let there = NAMES[place].name.load(Ordering::Relaxed);
        // SAFETY: a stored hash means a stored name, a leaked C string.
        (held == hash && unsafe { CStr::from_ptr(there) } == name).then_some((place, true))
    })
}

/// Id of a region by its name; defines it in the trace when it is new.
fn id_of(name: &CStr) -> u32 {
    let hash = hash_of(name);
    match place_of(name, hash) {
        Some((place, true)) => place as u32,
        found => insert(name, hash, found.is_none()),
    }
}

#[cold]
fn insert(name: &CStr, hash: u64, full: bool) -> u32 {
    let _own = OwnWork::begin();
    let _guard = INSERTING.lock().unwrap_or_else(PoisonError::into_inner);
    let (place, name) = match place_of(name, hash) {
        Some((place, true)) => return place as u32,
        Some((place, false)) if !full => (place, name),
        _ => (MOST_REGIONS - 1, MORE_REGIONS),
    };
    let entry = &NAMES[place];
    if entry.hash.load(Ordering::Acquire) == 0 {
        entry.name.store(name.to_owned().into_raw(), Ordering::Relaxed);
        entry.hash.store(hash, Ordering::Release);
        let name = name.to_string_lossy().into_owned();
        let chosen = CHOSEN_NAMES.get().is_none_or(|names| names.contains(&name));
        COMPUTES[place].store(chosen, Ordering::Relaxed);
        let _ = define(&Definition::Region { id: place as u32, name });
    }
    place as u32
}

unsafe fn mark(name: *const c_char, function: u16) {
    let block = thread_block();
    // SAFETY: the thread's own block, whose stub has stored where the marker was entered; the program
    // passes a C string.
    unsafe {
        let here = (*block).entered_stack;
        // Inside an MPI call (a callback) the call's own slot is open: no marker may follow it.
        if name.is_null() || !life::is_recording() || is_inside(block, here) {
            return;
        }
        enter(block, here);
        let _spacer = Spacer::new();
        write_down(block, CStr::from_ptr(name), function);
        leave(block);
    }
}

/// # Safety
/// `block` is the calling thread's, inside its outermost call.
unsafe fn write_down(block: *mut ThreadBlock, name: &CStr, function: u16) {
    let Ok(id) = catch_unwind(|| id_of(name)) else { return };
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(opened) = counters::opened() {
            return counters::mark(block, opened, id, function);
        }
        let slot = take_slot(block);
        write_marker(slot, id, function, counter::read(block));
    }
}

/// Fills a marker's slot.
///
/// # Safety
/// `slot` is the calling thread's, not published yet.
#[inline(always)]
pub unsafe fn write_marker(slot: *mut Slot, id: u32, function: u16, ticks: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        (&raw mut (*slot).begin).write_volatile(ticks);
        (&raw mut (*slot).peer).write_volatile(id as i32);
        publish(slot, slot_word(0, function, 0));
    }
}

entry_stub!(
    gammachi_recorder_region_begin,
    region_begin,
    "Begins a region; what `gammachi.h` calls when the recorder is present. Takes null or a C string."
);
entry_stub!(
    gammachi_recorder_region_end,
    region_end,
    "Ends a region; what `gammachi.h` calls when the recorder is present. Takes null or a C string."
);

unsafe extern "C-unwind" fn region_begin(name: *const c_char) {
    // SAFETY: the caller of the stub answers for the name.
    unsafe { mark(name, REGION_BEGIN) };
}

unsafe extern "C-unwind" fn region_end(name: *const c_char) {
    // SAFETY: as above.
    unsafe { mark(name, REGION_END) };
}
