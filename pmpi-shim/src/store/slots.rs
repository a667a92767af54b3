//! Writes an event to its slots: opened, completed, published last.

use std::sync::atomic::{AtomicU64, Ordering::Release};

use trace_format::layout::{Continuation, DURATION_ESCAPE, FUNCTION_OPEN, Slot, slot_word};

use crate::mpi::abi;
use crate::state::thread_block::ThreadBlock;

/// Stores the word that publishes a slot.
///
/// # Safety
/// This thread owns `slot`.
#[inline(always)]
pub unsafe fn publish(slot: *mut Slot, word: u64) {
    // SAFETY: the field is an aligned u64 that only the slot's owner, this thread, writes.
    unsafe { AtomicU64::from_ptr(&raw mut (*slot).word) }.store(word, Release);
}

/// Writes a continuation to a slot behind its event, published or not.
///
/// # Safety
/// This thread owns `slot`.
#[inline(always)]
pub unsafe fn put(slot: *mut Slot, more: Continuation) {
    let Slot { begin, word, peer, detail, bytes, request, site } = more.slot();
    // SAFETY: only this thread writes its own slot. A published slot stays so: its word is not
    // cleared in between.
    unsafe {
        (*slot).begin = begin;
        (*slot).peer = peer;
        (*slot).detail = detail;
        (*slot).bytes = bytes;
        (*slot).request = request;
        (*slot).site = site;
        publish(slot, word);
    }
}

/// Appends a continuation to the thread's last event and returns its slot.
///
/// # Safety
/// There is a free slot at the thread's cursor, as one of the reserved ones is.
#[inline(always)]
pub unsafe fn append(block: &ThreadBlock, more: Continuation) -> *mut Slot {
    // SAFETY: the cursor of the thread's own block points into its window.
    unsafe {
        let slot = block.cursor.get();
        put(slot, more);
        block.cursor.set(slot.add(1));
        slot
    }
}

/// Empties the thread's last slots, from this one on.
///
/// # Safety
/// `from` is one of the slots in use of the thread's window.
pub unsafe fn take_back(block: &ThreadBlock, from: *mut Slot) {
    // SAFETY: the slots from there to the cursor are the thread's own.
    unsafe {
        while block.cursor.get() > from {
            let last = block.cursor.get().sub(1);
            publish(last, 0);
            last.write(Slot::default());
            block.cursor.set(last);
        }
    }
}

/// Opens an event. Its function and begin are visible while the call runs.
///
/// # Safety
/// This thread owns `slot`.
#[inline(always)]
pub unsafe fn open(slot: *mut Slot, begin: u64, function: u16, communicator: u16) {
    // SAFETY: only this thread writes its own slot.
    unsafe {
        (&raw mut (*slot).begin).write_volatile(begin);
        publish(slot, slot_word(0, function | FUNCTION_OPEN, communicator));
    }
}

/// Completes an event.
///
/// # Safety
/// `slot` is that of the last event that the thread took.
#[inline(always)]
pub unsafe fn close(
    block: &ThreadBlock,
    slot: *mut Slot,
    duration: u64,
    function: u16,
    communicator: u16,
) {
    // SAFETY: the slot is the thread's own, and the reserved ones behind it are free.
    unsafe {
        if duration < u64::from(DURATION_ESCAPE) {
            publish(slot, slot_word(duration as u32, function, communicator));
        } else {
            close_long(block, slot, duration, function, communicator);
        }
    }
}

/// Completes the event of an MPI call that returned `result`.
///
/// # Safety
/// As for [`close`].
#[inline(always)]
pub unsafe fn close_call(
    block: &ThreadBlock,
    slot: *mut Slot,
    duration: u64,
    (function, communicator): (u16, u16),
    result: usize,
) {
    // SAFETY: the slot is the thread's own, and the reserved ones behind it are free.
    unsafe {
        // One comparison covers both: an error code is above every duration that fits.
        if duration | (result as u64) << 32 < u64::from(DURATION_ESCAPE) {
            publish(slot, slot_word(duration as u32, function, communicator));
        } else {
            close_with_more(block, slot, duration, (function, communicator), result as i32);
        }
    }
}

/// [`close`] for a duration that does not fit the slot.
#[cold]
#[inline(never)]
unsafe fn close_long(
    block: &ThreadBlock,
    slot: *mut Slot,
    duration: u64,
    function: u16,
    communicator: u16,
) {
    // SAFETY: the slot is the thread's own, and the reserved ones behind it are free.
    unsafe { close_with_more(block, slot, duration, (function, communicator), 0) };
}

/// [`close_call`] if the duration does not fit the slot or the call failed. Its continuation holds
/// both.
#[cold]
#[inline(never)]
unsafe fn close_with_more(
    block: &ThreadBlock,
    slot: *mut Slot,
    duration: u64,
    (function, communicator): (u16, u16),
    code: i32,
) {
    // SAFETY: the slot is the thread's own, and one of the reserved ones behind it is free.
    unsafe {
        let error = if code == 0 { 0 } else { abi::error_class(code) };
        append(block, Continuation::Duration { ticks: duration, error });
        publish(slot, slot_word(DURATION_ESCAPE, function, communicator));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicPtr, Ordering::Acquire};

    use super::*;

    /// A block whose cursor is behind the first of some slots.
    fn with_slots(work: impl FnOnce(&ThreadBlock, *mut Slot)) -> ([Slot; 4], usize) {
        let mut slots = [Slot::default(); 4];
        // SAFETY: a thread's block is all zero when the thread starts.
        let block: Box<ThreadBlock> = unsafe { Box::new(std::mem::zeroed()) };
        let first = slots.as_mut_ptr();
        // SAFETY: inside the array.
        block.cursor.set(unsafe { first.add(1) });
        work(&block, first);
        // SAFETY: both lie in the array.
        let used = unsafe { block.cursor.get().offset_from_unsigned(first) };
        (slots, used)
    }

    #[test]
    fn open_event_shows_function_and_begin() {
        // SAFETY: the slots are the test's own.
        let (slots, used) = with_slots(|_, slot| unsafe { open(slot, 77, 12, 3) });
        assert_eq!((used, slots[0].begin, slots[0].is_open()), (1, 77, true));
        assert_eq!((slots[0].function(), slots[0].communicator()), (12, 3));
    }

    #[test]
    fn stores_what_fits_in_slot_and_rest_in_continuation() {
        let longest = u64::from(DURATION_ESCAPE) - 1;
        for (duration, result, slots_used) in
            [(0, 0, 1), (longest, 0, 1), (longest + 1, 0, 2), (1 << 40, 0, 2), (5, 17, 2)]
        {
            let (slots, used) = with_slots(|block, slot| {
                // SAFETY: the slots are the test's own, and one behind the event is free.
                unsafe {
                    open(slot, 77, 12, 3);
                    close_call(block, slot, duration, (12, 3), result);
                }
            });
            assert_eq!(used, slots_used, "{duration} {result}");
            let [event, more, ..] = slots;
            assert_eq!((event.function(), event.communicator()), (12, 3));
            assert!(!event.is_open());
            if used == 1 {
                assert_eq!(u64::from(event.duration()), duration);
                continue;
            }
            assert_eq!(event.duration(), DURATION_ESCAPE);
            let Some(Continuation::Duration { ticks, error }) = Continuation::decode(&more) else {
                panic!("{more:?}")
            };
            assert_eq!((ticks, error != 0), (duration, result != 0));
        }
    }

    /// Miri runs this with other orders of the threads, and of the stores as far as processors allow.
    #[test]
    fn other_thread_that_sees_word_sees_fields() {
        let mut slots = [Slot::default(); 4];
        let shared = AtomicPtr::new(slots.as_mut_ptr());
        let load = |slot: usize| {
            // SAFETY: inside the array, which outlives both threads; words are atomic.
            unsafe {
                AtomicU64::from_ptr(&raw mut (*shared.load(Acquire).add(slot)).word).load(Acquire)
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: a thread's block is all zero when the thread starts; the slots are this thread's.
                unsafe {
                    let (block, slot) =
                        (Box::new(std::mem::zeroed::<ThreadBlock>()), shared.load(Acquire));
                    block.cursor.set(slot.add(1));
                    open(slot, 77, 12, 3);
                    (*slot).peer = 5;
                    append(&block, Continuation::Message(9));
                    close(&block, slot, 1 << 40, 12, 3);
                }
            });
            let wait_for = |slot: usize, is_there: fn(u64) -> bool| {
                while !is_there(load(slot)) {
                    std::thread::yield_now();
                }
            };
            let first = shared.load(Acquire);
            wait_for(0, |word| word != 0);
            // SAFETY: inside the array. The writer does not store to a field that a word has published.
            unsafe {
                assert_eq!((*first).begin, 77);
                wait_for(1, |word| word != 0);
                assert_eq!((*first.add(1)).request, 9);
                wait_for(0, |word| word as u32 == DURATION_ESCAPE);
                assert_eq!(((*first).peer, (*first.add(2)).begin), (5, 1 << 40));
            }
        });
    }
}
