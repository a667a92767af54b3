//! Region markers, with readings of the performance counters if there are any.

use trace_format::counters::MAX_COUNTERS;
use trace_format::layout::{REGION_BEGIN, Slot, TOOL, slot_word};
use trace_format::markers::CounterSlot;

use crate::host::counter;
use crate::host::own_work::OwnWork;
use crate::host::perf_counters::Opened;
use crate::state::thread_block::ThreadBlock;
use crate::store::slots::{close, publish};
use crate::store::window::{make_room, take_slot};

/// Fills a marker's slot.
///
/// # Safety
/// `slot` is the calling thread's, not published yet.
#[inline(always)]
pub unsafe fn write_marker(slot: *mut Slot, id: u32, function: u16, ticks: u64) {
    // SAFETY: only this thread writes its own slot.
    unsafe {
        (&raw mut (*slot).begin).write_volatile(ticks);
        (&raw mut (*slot).peer).write_volatile(id as i32);
        publish(slot, slot_word(0, function, 0));
    }
}

/// Writes a region's marker with a reading of every counter. Readings stand before the begin and
/// behind the end, so that taking them is not part of the region. The slots of the readings touch
/// the marker: they end where the region begins, or begin where it ends.
#[cold]
#[inline(never)]
pub fn mark_with_counters(block: &ThreadBlock, opened: &[Opened], id: u32, function: u16) {
    let _own = OwnWork::begin();
    // SAFETY: every slot is taken, and so the thread's own, before it is written.
    unsafe {
        make_room(block, opened.len());
        let mut readings = [(0u64, 0u32); MAX_COUNTERS];
        let from = counter::read(block);
        for (reading, one) in readings.iter_mut().zip(opened) {
            *reading = one.read();
        }
        let until = counter::read(block);
        let begins = function == REGION_BEGIN;
        if !begins {
            write_marker(take_slot(block), id, function, from);
        }
        // The time of the readings is that of the first one before a begin, and of the last one
        // behind an end.
        let timed = if begins { 0 } else { opened.len() - 1 };
        for (index, (one, (value, state))) in opened.iter().zip(readings).enumerate() {
            let (begin, duration) = match (index == timed, begins) {
                (true, _) => (from, until.wrapping_sub(from)),
                (false, true) => (until, 0),
                (false, false) => (from, 0),
            };
            let reading = CounterSlot { number: one.number, value, state };
            let slot = take_slot(block);
            slot.write(Slot { begin, ..Slot::of_reading(reading) });
            close(block, slot, duration, TOOL, 0);
        }
        if begins {
            write_marker(take_slot(block), id, function, until);
        }
    }
}
