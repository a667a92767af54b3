//! Tracks the communicators, windows, files, datatypes and groups that calls make, name or free.
//!
//! A freed object is removed before the call, because another thread may get the same handle while
//! the call runs. A new object is registered after the call, outside its time stamps, as the tool's
//! own time.

use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;

use trace_format::layout::Slot;
use trace_format::markers::ToolReason;

use crate::handles::cache;
use crate::handles::communicators::{self, Registered};
use crate::handles::datatypes;
use crate::handles::groups;
use crate::host::counter;
use crate::mpi::abi;
use crate::mpi::plan::{NONE, Plan, Procedure};
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::window;

/// Whether the call makes, names or commits something.
#[inline(always)]
pub fn defines<P: Procedure>() -> bool {
    let plan = &P::PLAN;
    plan.new_communicator != NONE
        || plan.new_object != NONE
        || plan.text != NONE
        || plan.commits_datatype
}

/// An object that a call is about to free.
pub struct BeingFreed {
    handle: usize,
    /// Has no destructor: an error handler may leave the frame that holds it by longjmp.
    communicator: Option<ManuallyDrop<Registered>>,
}

/// Removes the object that a call is about to free, before the call overwrites the handle.
///
/// # Safety
/// The arguments are the program's own.
#[inline(always)]
pub unsafe fn before_free<P: Procedure>(arguments: &[usize]) -> BeingFreed {
    let plan = &P::PLAN;
    let mut being_freed = BeingFreed { handle: 0, communicator: None };
    if !frees::<P>() || state::is_child() {
        return being_freed;
    }
    // SAFETY: the program's own arguments, at the positions of its procedure's plan.
    unsafe {
        if plan.freed_communicator != NONE {
            being_freed.handle = abi::handle_at(arguments[plan.freed_communicator as usize]);
            being_freed.communicator =
                communicators::withdraw(being_freed.handle).map(ManuallyDrop::new);
        } else if plan.freed_object != NONE {
            being_freed.handle = abi::object_at(plan.window, arguments[plan.freed_object as usize]);
        } else if plan.frees_datatype {
            datatypes::forget(abi::handle_at(arguments[0]));
        } else if plan.frees_group {
            groups::forget();
        }
    }
    being_freed
}

/// Whether the call frees something.
#[inline(always)]
pub fn frees<P: Procedure>() -> bool {
    let plan = &P::PLAN;
    plan.freed_communicator != NONE
        || plan.freed_object != NONE
        || plan.frees_datatype
        || plan.frees_group
}

/// Completes the removal of the object that a call was to free.
#[inline(always)]
pub fn after_free<P: Procedure>(being_freed: BeingFreed, result: usize) {
    let plan = &P::PLAN;
    let success = result as i32 == 0;
    if !frees::<P>() || state::is_child() {
        return;
    }
    if plan.freed_communicator != NONE {
        let withdrawn = being_freed.communicator.map(ManuallyDrop::into_inner);
        communicators::freed(being_freed.handle, withdrawn, success);
    } else if plan.freed_object != NONE && success {
        communicators::object_freed(plan.window, being_freed.handle);
    } else if plan.frees_datatype {
        cache::forget_handles();
    } else if plan.frees_group {
        groups::forget();
    }
}

/// Registers what a successful call made or named. This counts as the tool's time.
///
/// # Safety
/// As for [`crate::event::attributes::after`].
#[cold]
#[inline(never)]
pub unsafe fn define(
    block: &ThreadBlock,
    slot: *mut Slot,
    plan: &Plan,
    arguments: &[usize],
    communicator: u16,
) {
    window::ensure_slot(block);
    let begin = counter::now();
    // SAFETY: MPI has accepted the program's arguments and written the handles that it made. The
    // window of the call's own slot stays mapped as the older one.
    unsafe {
        let text = if plan.text != NONE && arguments[plan.text as usize] != 0 {
            CStr::from_ptr(arguments[plan.text as usize] as *const c_char)
        } else {
            c""
        };
        let made_id = if plan.new_communicator != NONE {
            let handle = abi::handle_at(arguments[plan.new_communicator as usize]);
            let seed =
                text.to_bytes().iter().fold(u64::from((*slot).tag() as u32), |seed, byte| {
                    (seed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
                });
            if plan.request_out != NONE && plan.communicator != NONE {
                let parent = abi::handle(arguments[plan.communicator as usize]);
                Some(u32::from(communicators::made_like(
                    handle,
                    parent,
                    communicator,
                    plan.function,
                )))
            } else {
                let asked = plan.asks_communicator;
                // If there is a leader or a root, other members name another communicator.
                let shared = plan.communicator != NONE && plan.peer == NONE;
                let origin = match shared {
                    true => abi::handle(arguments[plan.communicator as usize]),
                    false => 0,
                };
                let made = (communicator, plan.function);
                let made = communicators::made(handle, origin, made, seed, asked);
                Some(u32::from(made))
            }
        } else if plan.new_object != NONE {
            let handle = abi::object_at(plan.window, arguments[plan.new_object as usize]);
            Some(communicators::object_made(plan.window, handle, communicator, text))
        } else {
            None
        };
        if plan.commits_datatype {
            datatypes::committed(abi::handle_at(arguments[0]));
            return;
        }
        if let Some(id) = made_id {
            (*slot).bytes = id;
        } else if plan.text != NONE && plan.communicator != NONE {
            communicators::named(communicator, text);
        } else {
            return;
        }
        window::tool_event(block, ToolReason::Definitions, begin);
    }
}
