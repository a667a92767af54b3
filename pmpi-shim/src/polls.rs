//! Runs of tests and probes that found nothing, merged into one record.
//!
//! A run is of one function with no other event of the thread between. Its record is the first poll's
//! slot and a continuation with number, time inside and span; further polls only add to it.

use trace_format::layout::{
    CONTINUATION, CONTINUES_POLLS, CONTINUES_SITE, DURATION_ESCAPE, Slot, slot_word,
};

use crate::path::publish;
use crate::thread_block::ThreadBlock;
use crate::window::SITES_LEVEL;

/// Adds a poll that found nothing to the run before it, or makes it the first of a run.
///
/// # Safety
/// `block` is the calling thread's, `slot` the last event's that it took; at least one reserved slot
/// is free behind it.
#[inline(never)]
pub unsafe fn merge(
    block: *mut ThreadBlock,
    slot: *mut Slot,
    begin: u64,
    duration: u64,
    function: u16,
    communicator: u16,
) {
    // SAFETY: the caller's promise; a run's record directly before `slot` is the thread's own too.
    unsafe {
        let run = (*block).poll;
        // Behind a run's slot stand its numbers and, at level 2, where the first poll was called.
        let length = if (*block).level >= SITES_LEVEL { 3 } else { 2 };
        let continues = !run.is_null() && run.add(length) == slot && (*run).function() == function;
        if continues {
            let more = run.add(1);
            let count = join((*more).peer as u32, (*more).tag as u32) + 1;
            ((*more).peer, (*more).tag) = (count as u32 as i32, (count >> 32) as u32 as i32);
            let span = begin.wrapping_add(duration).wrapping_sub((*run).begin);
            ((*more).bytes, (*more).request) = (span as u32, (span >> 32) as u32);
            (*more).begin += duration;
            // The poll's own slot becomes an empty one again, and so do its continuations.
            let mut used = (*block).cursor;
            while used > slot {
                used = used.sub(1);
                publish(used, 0);
                used.write(Slot::default());
            }
            (*block).cursor = slot;
            return;
        }
        let more = (*block).cursor;
        let first_more = slot.add(1);
        let site = first_more.read();
        // Only the record's own continuations may follow its slot.
        let mut used = more;
        while used > first_more {
            used = used.sub(1);
            publish(used, 0);
        }
        first_more.write(Slot {
            begin: duration,
            word: 0,
            peer: 1,
            tag: 0,
            bytes: duration as u32,
            request: (duration >> 32) as u32,
        });
        publish(first_more, slot_word(CONTINUES_POLLS, CONTINUATION, 0));
        if length == 3 {
            let last = first_more.add(1);
            last.write(Slot { word: 0, ..site });
            publish(last, slot_word(CONTINUES_SITE, CONTINUATION, 0));
        }
        publish(slot, slot_word(DURATION_ESCAPE, function, communicator));
        (*block).cursor = slot.add(length);
        (*block).poll = slot;
    }
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
