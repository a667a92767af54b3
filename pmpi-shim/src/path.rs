//! The hot path: one event a call.
//!
//! Per call: counter, real call, counter, one 32-byte slot in a mapping that was populated before;
//! no lock, no system call, no allocation. Only the outermost call of a thread is recorded. The
//! thread's block keeps the stack address of that call: an entry below it is inside it and only
//! goes on; an entry at or above it means that the call was left by longjmp or an exception.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::Release};

use trace_format::layout::{
    CHUNK_HEADER_BYTES, CONTINUATION, CONTINUES_DURATION, DURATION_ESCAPE, FUNCTION_ABANDONED,
    FUNCTION_OPEN, Slot, slot_word,
};

use crate::attributes::{self, OwnStatuses};
use crate::counter;
use crate::entries::Invoke;
use crate::plan::Procedure;
use crate::polls;
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

/// Takes the thread's next slot, with [`RESERVED_SLOTS`] free behind it, moving to a new window where
/// the current one is full.
///
/// # Safety
/// `block` is the calling thread's block.
#[inline(always)]
pub unsafe fn take_slot(block: *mut ThreadBlock) -> *mut Slot {
    // SAFETY: the block is the thread's own; between `cursor` and `end` lie slots of a granted,
    // writable mapping (or the block's scratch slots).
    unsafe {
        if (*block).cursor >= (*block).end {
            window::next(block, 0);
        }
        let slot = (*block).cursor;
        (*block).cursor = slot.add(1);
        slot
    }
}

/// Forwards a call and records function and times when it is the thread's outermost.
///
/// # Safety
/// The arguments are those that the program passed to the entry's own name.
#[inline(always)]
pub unsafe fn recorded_plain<A: Invoke>(entry: &RealEntry, function: u16, arguments: A) -> usize {
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
        open(slot, begin, function, 0);
        let result = arguments.invoke(real);
        let duration = counter::read(block).wrapping_sub(begin);
        close(block, slot, duration, function, 0);
        (*block).outer_stack = 0;
        result
    }
}

/// Forwards a call and records it, with its attributes from level 1 on, when it is the thread's
/// outermost.
///
/// # Safety
/// As [`recorded_plain`].
#[inline(always)]
pub unsafe fn recorded<P: Procedure, const N: usize>(
    entry: &RealEntry,
    mut arguments: [usize; N],
) -> usize
where
    [usize; N]: Invoke,
{
    let block = thread_block();
    let here = stack_address();
    let function = P::PLAN.function;
    // SAFETY: as in `recorded_plain`; attributes are those of the procedure's own plan.
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
        let needed = attributes::room::<P>(&arguments);
        if needed > 0 && ((*block).level > 0 || (*block).window.is_null()) {
            make_room(block, needed);
        }
        let slot = take_slot(block);
        if (*block).level == 0 {
            let begin = counter::read(block);
            open(slot, begin, function, 0);
            let result = arguments.invoke(real);
            let duration = counter::read(block).wrapping_sub(begin);
            if P::PLAN.polls && attributes::found_nothing::<P>(&arguments, result) {
                polls::merge(block, slot, begin, duration, function, 0);
            } else {
                close(block, slot, duration, function, 0);
            }
            if attributes::defines::<P>() && result as i32 == 0 && P::PLAN.frees_datatype {
                crate::communicators::forget_handles();
            }
            (*block).outer_stack = 0;
            return result;
        }
        let mut own = MaybeUninit::<OwnStatuses>::uninit();
        let mut call = attributes::before::<P>(block, slot, &mut arguments, own.as_mut_ptr());
        let doomed = attributes::doomed::<P>(&arguments);
        let begin = counter::read(block);
        open(slot, begin, function, call.communicator);
        let result = arguments.invoke(real);
        let duration = counter::read(block).wrapping_sub(begin);
        if P::PLAN.polls && attributes::found_nothing::<P>(&arguments, result) {
            polls::merge(block, slot, begin, duration, function, call.communicator);
        } else {
            let slot = attributes::after::<P>(block, slot, &arguments, &mut call, result);
            close(block, slot, duration, function, call.communicator);
            if attributes::defines::<P>() && result as i32 == 0 {
                attributes::define(block, slot, &P::PLAN, &arguments, call.communicator, doomed);
            }
        }
        (*block).outer_stack = 0;
        result
    }
}

/// Begins an event: function and begin are visible while the call runs.
///
/// # Safety
/// `slot` is a slot that this thread owns.
#[inline(always)]
pub unsafe fn open(slot: *mut Slot, begin: u64, function: u16, communicator: u16) {
    // SAFETY: the caller's promise.
    unsafe {
        (&raw mut (*slot).begin).write_volatile(begin);
        publish(slot, slot_word(0, function | FUNCTION_OPEN, communicator));
    }
}

/// Completes an event.
///
/// # Safety
/// `block` is the calling thread's, `slot` the last event's that it took.
#[inline(always)]
pub unsafe fn close(
    block: *mut ThreadBlock,
    slot: *mut Slot,
    duration: u64,
    function: u16,
    communicator: u16,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if duration < u64::from(DURATION_ESCAPE) {
            publish(slot, slot_word(duration as u32, function, communicator));
        } else {
            close_long(block, slot, duration, function, communicator);
        }
    }
}

/// [`close`] for a duration that does not fit the slot.
#[cold]
#[inline(never)]
unsafe fn close_long(
    block: *mut ThreadBlock,
    slot: *mut Slot,
    duration: u64,
    function: u16,
    communicator: u16,
) {
    // SAFETY: the promises of `close`; one of the reserved slots is still free behind the event.
    unsafe {
        let more = (*block).cursor;
        (&raw mut (*more).begin).write_volatile(duration);
        publish(more, slot_word(CONTINUES_DURATION, CONTINUATION, 0));
        (*block).cursor = more.add(1);
        publish(slot, slot_word(DURATION_ESCAPE, function, communicator));
    }
}

/// Moves to a new window unless an event and that many slots more fit the current one.
#[inline(always)]
unsafe fn make_room(block: *mut ThreadBlock, slots: usize) {
    // SAFETY: the calling thread's block.
    unsafe {
        let left = ((*block).end as usize).saturating_sub((*block).cursor as usize);
        if left < (slots + 1) * size_of::<Slot>() {
            window::next(block, slots + 1);
        }
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

/// Marks the open call as abandoned: longjmp or an exception left it.
///
/// # Safety
/// `block` is the calling thread's.
#[cold]
#[inline(never)]
pub unsafe fn heal(block: *mut ThreadBlock) {
    // SAFETY: while a call is open no other event begins, so its slot, if it has one, is the last
    // before the cursor that is no continuation; its window is still mapped.
    unsafe {
        (*block).outer_stack = 0;
        let first = (*block).window as usize + CHUNK_HEADER_BYTES;
        let mut slot = (*block).cursor;
        if (*block).window.is_null() || !(first..=(*block).end as usize).contains(&(slot as usize))
        {
            return;
        }
        while slot as usize > first {
            slot = slot.sub(1);
            if (*slot).function() != CONTINUATION {
                break;
            }
        }
        if (*slot).is_open() {
            let word =
                slot_word(0, (*slot).function() | FUNCTION_ABANDONED, (*slot).communicator());
            publish(slot, word);
        }
    }
}
