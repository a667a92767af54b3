//! The hot path: one event a call.
//!
//! Per call: counter, real call, counter, one 32-byte slot in a mapping that was populated before;
//! no lock, no system call, no allocation. Only the outermost call of a thread is recorded. The
//! thread's block keeps the stack address of that call: an entry below it is inside it and only
//! goes on; an entry at or above it means that the call was left by longjmp or an exception.

use std::sync::atomic::{AtomicU64, Ordering::Release};

use trace_format::layout::{
    CONTINUATION, CONTINUES_DURATION, DURATION_ESCAPE, FUNCTION_ABANDONED, FUNCTION_OPEN, Slot,
    slot_word,
};

use crate::counter;
use crate::entries::Invoke;
use crate::real_entry::RealEntry;
use crate::thread_block::{ThreadBlock, stack_address, thread_block};
use crate::window;

/// Stores the word that publishes a slot.
///
/// # Safety
/// `slot` is a slot that this thread owns.
#[inline(always)]
pub unsafe fn publish(slot: *mut Slot, word: u64) {
    // SAFETY: the caller's promise; the field is an aligned u64 that only this thread writes.
    unsafe { AtomicU64::from_ptr(&raw mut (*slot).word) }.store(word, Release);
}

/// Takes the thread's next slot, moving to a new window where the current one is full.
///
/// # Safety
/// `block` is the calling thread's block.
#[inline(always)]
pub unsafe fn take_slot(block: *mut ThreadBlock) -> *mut Slot {
    // SAFETY: the block is the thread's own; between `cursor` and `end` lie slots of a granted,
    // writable mapping (or the block's scratch slots).
    unsafe {
        if (*block).cursor == (*block).end {
            window::next(block);
        }
        let slot = (*block).cursor;
        (*block).cursor = slot.add(1);
        slot
    }
}

/// Forwards a call and records it when it is the thread's outermost.
///
/// # Safety
/// The arguments are those that the program passed to the entry's own name.
#[inline(always)]
pub unsafe fn recorded<A: Invoke>(entry: &RealEntry, function: u16, arguments: A) -> usize {
    let block = thread_block();
    let here = stack_address();
    // SAFETY: the block is this thread's; the arguments go on to the entry they were meant for.
    unsafe {
        let outer = (*block).outer_stack;
        if outer != 0 {
            if here < outer {
                return arguments.invoke(entry.get());
            }
            heal(block);
        }
        (*block).outer_stack = here;
        let real = entry.get();
        let slot = take_slot(block);
        let begin = counter::read(block);
        (&raw mut (*slot).begin).write_volatile(begin);
        publish(slot, slot_word(0, function | FUNCTION_OPEN, 0));
        let result = arguments.invoke(real);
        let duration = counter::read(block).wrapping_sub(begin);
        if duration < u64::from(DURATION_ESCAPE) {
            publish(slot, slot_word(duration as u32, function, 0));
        } else {
            publish_long(block, slot, function, duration);
        }
        (*block).outer_stack = 0;
        result
    }
}

/// Forwards a call that is never recorded; calls inside it are not recorded either.
///
/// # Safety
/// As [`recorded`].
#[inline(always)]
pub unsafe fn forwarded<A: Invoke>(entry: &RealEntry, arguments: A) -> usize {
    let block = thread_block();
    let here = stack_address();
    // SAFETY: as in `recorded`.
    unsafe {
        let outer = (*block).outer_stack;
        if outer != 0 {
            if here < outer {
                return arguments.invoke(entry.get());
            }
            heal(block);
        }
        (*block).outer_stack = here;
        let result = arguments.invoke(entry.get());
        (*block).outer_stack = 0;
        result
    }
}

/// Closes a call whose duration does not fit the slot.
///
/// # Safety
/// `block` is the calling thread's, `slot` the last one it took.
#[cold]
#[inline(never)]
pub unsafe fn publish_long(block: *mut ThreadBlock, slot: *mut Slot, function: u16, duration: u64) {
    // SAFETY: the caller's promise. `window::next` keeps the previous window mapped, so `slot`
    // stays valid when the continuation needs a new one.
    unsafe {
        let more = take_slot(block);
        (&raw mut (*more).begin).write_volatile(duration);
        publish(more, slot_word(CONTINUES_DURATION, CONTINUATION, 0));
        publish(slot, slot_word(DURATION_ESCAPE, function, 0));
    }
}

/// Marks the open call as abandoned: longjmp or an exception left it.
///
/// # Safety
/// `block` is the calling thread's.
#[cold]
#[inline(never)]
pub unsafe fn heal(block: *mut ThreadBlock) {
    // SAFETY: while a call is open nothing else takes a slot, so the open slot, if the abandoned
    // call had one, is the last one taken, and its window is still mapped.
    unsafe {
        (*block).outer_stack = 0;
        let window = (*block).window as usize;
        let last = ((*block).cursor as usize).wrapping_sub(size_of::<Slot>());
        if (*block).window.is_null() || last < window || last >= window + (*block).window_bytes {
            return;
        }
        let slot = last as *mut Slot;
        if (*slot).is_open() {
            publish(slot, slot_word(0, (*slot).function() | FUNCTION_ABANDONED, 0));
        }
    }
}
