//! Regions: named sections of a rank's time, marked by the program through `gammachi.h`.

use std::ffi::{CStr, c_char};
use std::panic::catch_unwind;

use trace_format::layout::{REGION_BEGIN, REGION_END};

use crate::event::markers::{mark_with_counters, write_marker};
use crate::host::counter;
use crate::host::perf_counters;
use crate::state;
use crate::state::thread_block::{ThreadBlock, entry_stub, thread_block};
use crate::store::outermost::{Spacer, enter, is_inside, leave};
use crate::store::regions::id_of;
use crate::store::window::take_slot;

unsafe fn mark(name: *const c_char, function: u16) {
    let block = thread_block();
    // SAFETY: the thread's own block, whose stub has stored where the marker was entered. The
    // program passes a C string.
    unsafe {
        let here = block.entered_stack.get();
        // Inside an MPI call (in a callback) the call's own slot is open, so no marker may follow
        // it.
        if name.is_null() || !state::is_recording() || is_inside(block, here) {
            return;
        }
        enter(block, here);
        let _spacer = Spacer::new();
        write_marker_of(block, CStr::from_ptr(name), function);
        leave(block);
    }
}

/// The thread is inside its outermost call.
fn write_marker_of(block: &ThreadBlock, name: &CStr, function: u16) {
    let Ok(id) = catch_unwind(|| id_of(name)) else { return };
    if let Some(opened) = perf_counters::opened() {
        return mark_with_counters(block, opened, id, function);
    }
    let slot = take_slot(block);
    // SAFETY: the slot was taken just now, and is published by the marker.
    unsafe { write_marker(slot, id, function, counter::read(block)) };
}

entry_stub!(
    gammachi_recorder_region_begin,
    region_begin,
    "Begins a region. Called by `gammachi.h` if the recorder is present. Takes null or a C string."
);
entry_stub!(
    gammachi_recorder_region_end,
    region_end,
    "Ends a region. Called by `gammachi.h` if the recorder is present. Takes null or a C string."
);

unsafe extern "C-unwind" fn region_begin(name: *const c_char) {
    // SAFETY: the caller of the stub vouches for the name.
    unsafe { mark(name, REGION_BEGIN) };
}

unsafe extern "C-unwind" fn region_end(name: *const c_char) {
    // SAFETY: the caller of the stub vouches for the name.
    unsafe { mark(name, REGION_END) };
}
