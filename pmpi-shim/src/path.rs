//! The hot path: one event a call.
//!
//! Per call: counter, real call, counter, one 32-byte slot in a mapping that was populated before;
//! no lock, no system call, no allocation. Only the outermost call of a thread is recorded
//! ([`is_inside`]).

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::Release};

use trace_format::layout::{
    CHUNK_HEADER_BYTES, CONTINUATION, CONTINUES_DURATION, DURATION_ESCAPE, FUNCTION_ABANDONED,
    FUNCTION_OPEN, Slot, ToolReason, slot_word,
};

use crate::attributes::{self, OwnStatuses};
use crate::clock_schedule::{self, waits_for_all};
use crate::counter;
use crate::entries::Invoke;
use crate::ignored_statuses;
use crate::lifetimes;
use crate::plan::Procedure;
use crate::polls;
use crate::real_entry::{OwnWork, RealEntry};
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

/// Whether the thread is inside an outermost call already, for a call entered at `here`.
///
/// Calls inside it are entered below it, and its return address still stands where it was entered.
/// What longjmp or an exception has left shows by an entry at or above it, or by another word in that
/// place (every later call of the same caller writes one); then the open call is marked abandoned.
///
/// # Safety
/// `block` is the calling thread's.
#[inline(always)]
pub unsafe fn is_inside(block: *mut ThreadBlock, here: usize) -> bool {
    // SAFETY: the caller's promise; the address lies on a stack of this thread, which stays mapped.
    unsafe {
        let outer = (*block).outer_stack;
        let well_below = here.saturating_add(STACK_ARGUMENT_BYTES) < outer;
        outer != 0 && (well_below && returns_unchanged(block) || is_inside_elsewhere(block, here))
    }
}

/// Most bytes that a caller pushes before a call (13 arguments, alignment): two calls of one caller are
/// entered no further apart, and one inside the other always is, because every wrapper has a frame
/// larger than this ([`Spacer`]).
const STACK_ARGUMENT_BYTES: usize = 8 * 8;

/// Keeps a wrapper's frame larger than [`STACK_ARGUMENT_BYTES`].
pub struct Spacer(MaybeUninit<[u64; 10]>);

impl Spacer {
    #[inline(always)]
    pub fn new() -> Self {
        let spacer = Self(MaybeUninit::uninit());
        // SAFETY: the assembly is empty; it only makes the compiler keep the bytes in the frame.
        unsafe {
            std::arch::asm!("/* {0} */", in(reg) spacer.0.as_ptr(), options(nostack, preserves_flags));
        }
        spacer
    }
}

/// Whether the outermost call's return address stands where it was.
#[inline(always)]
unsafe fn returns_unchanged(block: *mut ThreadBlock) -> bool {
    // SAFETY: as `is_inside`. AArch64 keeps return addresses in a register; there the order of
    // addresses decides alone.
    unsafe {
        cfg!(not(target_arch = "x86_64"))
            || ((*block).outer_stack as *const usize).read_volatile() == (*block).outer_return
    }
}

/// [`is_inside`] where the entry does not stand below an intact call.
#[cold]
#[inline(never)]
unsafe fn is_inside_elsewhere(block: *mut ThreadBlock, here: usize) -> bool {
    // SAFETY: the calling thread's block.
    unsafe {
        let above = here >= (*block).outer_stack;
        if above && returns_unchanged(block) && is_on_alternate_stack() {
            return true;
        }
        heal(block);
        false
    }
}

/// Whether a signal handler runs on a stack of its own.
fn is_on_alternate_stack() -> bool {
    let _own = OwnWork::begin();
    // SAFETY: a zeroed stack_t is valid to be written over.
    unsafe {
        let mut stack: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &mut stack) == 0
            && stack.ss_flags & libc::SS_ONSTACK != 0
    }
}

/// Begins an outermost call.
///
/// # Safety
/// `block` is the calling thread's, as the wrapper's stub left it.
#[inline(always)]
pub unsafe fn enter(block: *mut ThreadBlock) {
    // SAFETY: the caller's promise: the address is the wrapper's own entry.
    unsafe {
        let entered = (*block).entered_stack;
        (*block).outer_return = (entered as *const usize).read_volatile();
        (*block).outer_stack = entered;
    }
}

/// Ends an outermost call.
///
/// # Safety
/// `block` is the calling thread's.
#[inline(always)]
pub unsafe fn leave(block: *mut ThreadBlock) {
    // SAFETY: the caller's promise.
    unsafe { (*block).outer_stack = 0 };
}

/// Forwards a call and records function and times when it is the thread's outermost.
///
/// # Safety
/// The arguments are those that the program passed to the entry's own name.
#[inline(always)]
pub unsafe fn recorded_plain<A: Invoke>(entry: &RealEntry, function: u16, arguments: A) -> usize {
    let block = thread_block();
    // SAFETY: the block is this thread's; the arguments go on to the entry they were meant for.
    unsafe {
        if is_inside(block, (*block).entered_stack) {
            return arguments.invoke(entry.get());
        }
        enter(block);
        let _spacer = Spacer::new();
        let real = entry.get();
        let slot = take_slot(block);
        if (*block).level >= SITES_LEVEL {
            sites::write(block);
        }
        let begin = counter::read(block);
        open(slot, begin, function, 0);
        let result = arguments.invoke(real);
        let duration = counter::read(block).wrapping_sub(begin);
        close(block, slot, duration, function, 0);
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
    entry: &RealEntry,
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
        if is_inside(block, (*block).entered_stack) {
            if !lifetimes::frees::<P>() {
                return arguments.invoke(entry.get());
            }
            // A callback's: not an event, but its handle may come again for something else.
            let doomed = lifetimes::doomed::<P>(&arguments);
            let result = arguments.invoke(entry.get());
            lifetimes::forget::<P>(doomed, result);
            return result;
        }
        enter(block);
        let _spacer = Spacer::new();
        let real = entry.get();
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
                close(block, slot, duration, function, 0);
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
            close(block, slot, duration, function, call.communicator);
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
pub unsafe fn forwarded<A: Invoke>(entry: &RealEntry, arguments: A) -> usize {
    let block = thread_block();
    // SAFETY: as in `recorded`.
    unsafe {
        if is_inside(block, (*block).entered_stack) {
            return arguments.invoke(entry.get());
        }
        enter(block);
        let _spacer = Spacer::new();
        let result = arguments.invoke(entry.get());
        leave(block);
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
        let last = (*block).window as usize + (*block).window_bytes;
        let mut slot = (*block).cursor;
        if (*block).window.is_null() || !(first..=last).contains(&(slot as usize)) {
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
