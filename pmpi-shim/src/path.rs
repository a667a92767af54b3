//! The hot path: one event a call.
//!
//! Per call: counter, real call, counter, one 32-byte slot in a mapping that was populated before;
//! no lock, no system call, no allocation. Only the outermost call of a thread is recorded
//! (`outermost`).

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::Release};

use trace_format::layout::{
    CONTINUATION, CONTINUES_DURATION, DURATION_ESCAPE, FUNCTION_OPEN, Slot, slot_word,
};
use trace_format::markers::ToolReason;

use crate::abi;
use crate::attributes::{self, OwnStatuses};
use crate::clock_schedule::{self, waits_for_all};
use crate::counter;
use crate::entries::Invoke;
use crate::ignored_statuses;
use crate::lifetimes;
use crate::outermost::{Spacer, enter, is_inside, leave};
use crate::plan::Procedure;
use crate::polls;
use crate::real_entry::RealEntry;
use crate::sites;
use crate::thread_block::{ThreadBlock, thread_block};
use crate::window::{self, SITES_LEVEL};

/// Stores the word that publishes a slot.
///
/// # Safety
/// `slot` is a slot that this thread owns.
#[inline(always)]
pub unsafe fn publish(slot: *mut Slot, word: u64) {
    // SAFETY: the caller's promise; the field is an aligned u64 that only this thread writes.
    unsafe { AtomicU64::from_ptr(&raw mut (*slot).word) }.store(word, Release);
}

/// Takes the thread's next slot, with `RESERVED_SLOTS` free behind it, moving to a new window where
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
pub unsafe fn recorded_plain<A: Invoke>(
    entry: &'static RealEntry,
    function: u16,
    arguments: A,
) -> usize {
    let block = thread_block();
    // SAFETY: the block is this thread's; the arguments go on to the entry they were meant for.
    unsafe {
        let here = (*block).entered_stack;
        if is_inside(block, here) {
            return arguments.invoke(entry.get());
        }
        enter(block, here);
        let _spacer = Spacer::new();
        let real = entry.get_outermost(block);
        let slot = take_slot(block);
        if (*block).level >= SITES_LEVEL {
            sites::write(block);
        }
        let begin = counter::read(block);
        open(slot, begin, function, 0);
        let result = arguments.invoke(real);
        let duration = counter::read(block).wrapping_sub(begin);
        close_call(block, slot, duration, (function, 0), result);
        leave(block);
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
    entry: &'static RealEntry,
    mut arguments: [usize; N],
) -> usize
where
    [usize; N]: Invoke,
{
    let block = thread_block();
    let function = P::PLAN.function;
    if const { P::PLAN.persistent } {
        ignored_statuses::persistent();
    }
    // SAFETY: as in `recorded_plain`; attributes are those of the procedure's own plan.
    unsafe {
        let here = (*block).entered_stack;
        if is_inside(block, here) {
            if !lifetimes::frees::<P>() {
                return arguments.invoke(entry.get());
            }
            // A callback's: not an event, but its handle may come again for something else.
            let doomed = lifetimes::doomed::<P>(&arguments);
            let result = arguments.invoke(entry.get());
            lifetimes::forget::<P>(doomed, result);
            return result;
        }
        enter(block, here);
        let _spacer = Spacer::new();
        let real = entry.get_outermost(block);
        if const { waits_for_all(P::PLAN.function) } {
            clock_schedule::before_collective(block, arguments[P::PLAN.communicator as usize]);
        }
        let needed = attributes::room::<P>(&arguments);
        if needed > 0 && ((*block).level > 0 || (*block).window.is_null()) {
            make_room(block, needed);
        }
        let slot = take_slot(block);
        if (*block).level == 0 {
            let doomed = lifetimes::doomed::<P>(&arguments);
            let begin = counter::read(block);
            open(slot, begin, function, 0);
            let result = arguments.invoke(real);
            let duration = counter::read(block).wrapping_sub(begin);
            if P::PLAN.polls && attributes::found_nothing::<P>(&arguments, result) {
                polls::merge(block, slot, begin, duration, function, 0);
            } else {
                close_call(block, slot, duration, (function, 0), result);
            }
            // Other threads may be recording attributes while this one has no space.
            lifetimes::forget::<P>(doomed, result);
            leave(block);
            return result;
        }
        if (*block).level >= SITES_LEVEL {
            sites::write(block);
        }
        let mut own = MaybeUninit::<OwnStatuses>::uninit();
        let mut call = attributes::before::<P>(block, slot, &mut arguments, own.as_mut_ptr());
        let doomed = lifetimes::doomed::<P>(&arguments);
        let begin = counter::read(block);
        open(slot, begin, function, call.communicator);
        let result = arguments.invoke(real);
        let duration = counter::read(block).wrapping_sub(begin);
        if P::PLAN.polls && attributes::found_nothing::<P>(&arguments, result) {
            polls::merge(block, slot, begin, duration, function, call.communicator);
        } else {
            let first = slot;
            let slot = attributes::after::<P>(block, slot, &arguments, &mut call, result);
            close_call(block, slot, duration, (function, call.communicator), result);
            lifetimes::forget::<P>(doomed, result);
            if slot != first {
                window::tool_event(block, ToolReason::Window, begin.wrapping_add(duration));
            }
            if lifetimes::defines::<P>() && result as i32 == 0 {
                lifetimes::define(block, slot, &P::PLAN, &arguments, call.communicator);
            }
        }
        leave(block);
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

/// Completes the event of an MPI call that returned `result`.
///
/// # Safety
/// As [`close`].
#[inline(always)]
unsafe fn close_call(
    block: *mut ThreadBlock,
    slot: *mut Slot,
    duration: u64,
    (function, communicator): (u16, u16),
    result: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        // One comparison for both: an error code stands above every duration that fits.
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
    block: *mut ThreadBlock,
    slot: *mut Slot,
    duration: u64,
    function: u16,
    communicator: u16,
) {
    // SAFETY: the caller's promise.
    unsafe { close_with_more(block, slot, duration, (function, communicator), 0) };
}

/// [`close_call`] where the duration does not fit the slot, or the call failed: its continuation has both.
#[cold]
#[inline(never)]
unsafe fn close_with_more(
    block: *mut ThreadBlock,
    slot: *mut Slot,
    duration: u64,
    (function, communicator): (u16, u16),
    code: i32,
) {
    // SAFETY: the promises of `close`; one of the reserved slots is still free behind the event.
    unsafe {
        let more = (*block).cursor;
        (&raw mut (*more).begin).write_volatile(duration);
        (*more).peer = if code == 0 { 0 } else { abi::error_class(code) as i32 };
        publish(more, slot_word(CONTINUES_DURATION, CONTINUATION, 0));
        (*block).cursor = more.add(1);
        publish(slot, slot_word(DURATION_ESCAPE, function, communicator));
    }
}

/// Moves to a new window unless an event and that many slots more fit the current one.
///
/// # Safety
/// `block` is the calling thread's.
#[inline(always)]
pub unsafe fn make_room(block: *mut ThreadBlock, slots: usize) {
    // SAFETY: the caller's promise.
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
pub unsafe fn forwarded<A: Invoke>(entry: &'static RealEntry, arguments: A) -> usize {
    let block = thread_block();
    // SAFETY: as in `recorded`.
    unsafe {
        let here = (*block).entered_stack;
        if is_inside(block, here) {
            return arguments.invoke(entry.get());
        }
        enter(block, here);
        let _spacer = Spacer::new();
        let result = arguments.invoke(entry.get());
        leave(block);
        result
    }
}
