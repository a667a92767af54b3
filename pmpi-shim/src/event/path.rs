//! The hot path: one event per call.
//!
//! A call costs two counter readings and one slot of 40 bytes in a mapping that was populated
//! before; no lock, no system call, no allocation. Only a thread's outermost call is recorded
//! (`outermost`).

use std::ffi::c_void;
use std::mem::MaybeUninit;

use trace_format::markers::ToolReason;

use crate::clock::schedule::{self, waits_for_all};
use crate::event::attributes::{self, OwnStatuses};
use crate::event::call_paths::{self, PATHS_LEVEL};
use crate::event::ignored_statuses;
use crate::event::polls;
use crate::event::sites;
use crate::handles::groups;
use crate::handles::lifetimes;
use crate::host::counter;
use crate::mpi::invoke::Invoke;
use crate::mpi::plan::{NONE, Procedure};
use crate::mpi::real_entry::RealEntry;
use crate::state;
use crate::state::thread_block::{ThreadBlock, thread_block};
use crate::store::due;
use crate::store::outermost::{Spacer, enter, is_inside, leave};
use crate::store::slots::{close_call, open};
use crate::store::usage;
use crate::store::window::{self, SITES_LEVEL, make_room, take_slot};

/// Forwards a call. Records function and times if it is the thread's outermost call.
///
/// # Safety
/// The arguments are those that the program passed to the function of the entry's name.
#[inline(always)]
pub unsafe fn recorded_plain<A: Invoke>(
    entry: &'static RealEntry,
    function: u16,
    arguments: A,
) -> usize {
    let block = thread_block();
    // SAFETY: the block is this thread's; the arguments are passed on to the function they were
    // meant for.
    unsafe {
        let here = block.entered_stack.get();
        if is_inside(block, here) {
            return arguments.invoke(entry.get());
        }
        enter(block, here);
        let _spacer = Spacer::new();
        let real = real_outermost(entry, block);
        let slot = take_slot(block);
        if block.level.get() >= SITES_LEVEL {
            sites::note(block, slot);
        }
        let begin = counter::read(block);
        open(slot, begin, function, 0);
        let result = arguments.invoke(real);
        let duration = counter::read(block).wrapping_sub(begin);
        close_call(block, slot, duration, (function, 0), result);
        if block.level.get() >= PATHS_LEVEL && call_paths::is_long(duration) {
            call_paths::note(block, begin.wrapping_add(duration));
        }
        let end = begin.wrapping_add(duration);
        if due::is_due(end) {
            usage::take(block, end, true);
        }
        leave(block);
        result
    }
}

/// Finds the real function of an entry for an outermost call that is about to take its slot.
/// Looking it up counts as the tool's time.
#[inline(always)]
fn real_outermost(entry: &'static RealEntry, block: &ThreadBlock) -> *const c_void {
    let address = entry.known();
    if address.is_null() { resolve_outermost(entry, block) } else { address }
}

#[cold]
#[inline(never)]
fn resolve_outermost(entry: &'static RealEntry, block: &ThreadBlock) -> *const c_void {
    if !state::is_recording() || block.paused_at.get() != 0 {
        return entry.get();
    }
    // A new window is opened before the time is read.
    make_room(block, 1);
    let begin = counter::read(block);
    let address = entry.get();
    window::tool_event(block, ToolReason::Entries, begin);
    address
}

/// Forwards a call. Records it, with its attributes from level 1 on, if it is the thread's
/// outermost call.
///
/// # Safety
/// As for [`recorded_plain`].
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
    // SAFETY: the program's own arguments go to the function they were meant for, and are read at
    // the positions of that procedure's plan.
    unsafe {
        let here = block.entered_stack.get();
        if is_inside(block, here) {
            if !lifetimes::frees::<P>() {
                return arguments.invoke(entry.get());
            }
            // A call inside a callback is not an event, but its handle may be reused for another
            // object.
            let being_freed = lifetimes::before_free::<P>(&arguments);
            let result = arguments.invoke(entry.get());
            lifetimes::after_free::<P>(being_freed, result);
            return result;
        }
        enter(block, here);
        let _spacer = Spacer::new();
        let real = real_outermost(entry, block);
        if const { waits_for_all(P::PLAN.function) } {
            schedule::before_collective(block, arguments[P::PLAN.communicator as usize]);
        }
        if const { P::PLAN.group != NONE } {
            groups::prepare(block, arguments[P::PLAN.group as usize]);
        }
        let needed = attributes::room::<P>(&arguments);
        if needed > 0 && (block.level.get() > 0 || block.window.get().is_null()) {
            make_room(block, needed);
        }
        let slot = take_slot(block);
        if block.level.get() == 0 {
            let being_freed = lifetimes::before_free::<P>(&arguments);
            let begin = counter::read(block);
            open(slot, begin, function, 0);
            let result = arguments.invoke(real);
            let duration = counter::read(block).wrapping_sub(begin);
            let is_poll = P::PLAN.polls && attributes::found_nothing::<P>(&arguments, result);
            if is_poll {
                polls::merge(block, slot, begin, duration, function, 0);
            } else {
                close_call(block, slot, duration, (function, 0), result);
            }
            // Other threads may be recording attributes while this one has no space.
            lifetimes::after_free::<P>(being_freed, result);
            let end = begin.wrapping_add(duration);
            if due::is_due(end) {
                usage::take(block, end, !is_poll);
            }
            leave(block);
            return result;
        }
        if block.level.get() >= SITES_LEVEL {
            sites::note(block, slot);
        }
        let mut own = MaybeUninit::<OwnStatuses>::uninit();
        let mut call = attributes::before::<P>(block, slot, &mut arguments, own.as_mut_ptr());
        let being_freed = lifetimes::before_free::<P>(&arguments);
        let begin = counter::read(block);
        open(slot, begin, function, call.communicator);
        let result = arguments.invoke(real);
        let duration = counter::read(block).wrapping_sub(begin);
        let end = begin.wrapping_add(duration);
        let is_poll = P::PLAN.polls && attributes::found_nothing::<P>(&arguments, result);
        if is_poll {
            polls::merge(block, slot, begin, duration, function, call.communicator);
        } else {
            let first = slot;
            let slot = attributes::after::<P>(block, slot, &arguments, &mut call, result);
            close_call(block, slot, duration, (function, call.communicator), result);
            lifetimes::after_free::<P>(being_freed, result);
            if slot != first {
                window::tool_event(block, ToolReason::Window, end);
            }
            if lifetimes::defines::<P>() && result as i32 == 0 {
                lifetimes::define(block, slot, &P::PLAN, &arguments, call.communicator);
            } else if block.level.get() >= PATHS_LEVEL
                && call_paths::is_long(duration)
                && slot == first
            {
                call_paths::note(block, end);
            }
        }
        if due::is_due(end) {
            usage::take(block, end, !is_poll);
        }
        leave(block);
        result
    }
}

/// Forwards a call that is never recorded. Calls inside it are not recorded either.
///
/// # Safety
/// As for [`recorded`].
#[inline(always)]
pub unsafe fn forwarded<A: Invoke>(entry: &'static RealEntry, arguments: A) -> usize {
    let block = thread_block();
    // SAFETY: the program's own arguments go to the function they were meant for.
    unsafe {
        let here = block.entered_stack.get();
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
