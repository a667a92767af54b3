//! What a call makes, names or frees: communicators, windows, files, datatypes.
//!
//! What is freed is taken out before the call, for another thread may get the same handle while it runs;
//! what is made is registered after it, outside the call's stamps, as the tool's own time.

use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;

use trace_format::layout::Slot;
use trace_format::markers::ToolReason;

use crate::handles::cache;
use crate::handles::communicators::{self, Registered};
use crate::handles::datatypes;
use crate::host::counter;
use crate::mpi::abi;
use crate::mpi::plan::{NONE, Plan, Procedure};
use crate::state::thread_block::ThreadBlock;
use crate::store::window;

/// Whether the call makes or names something.
#[inline(always)]
pub fn defines<P: Procedure>() -> bool {
    let plan = &P::PLAN;
    plan.new_communicator != NONE
        || plan.new_object != NONE
        || plan.text != NONE
        || plan.commits_datatype
}

/// What a call is about to free.
pub struct Doomed {
    handle: usize,
    /// Without a destructor: an error handler may leave the frame that holds it by longjmp.
    communicator: Option<ManuallyDrop<Registered>>,
}

/// Takes out what a call is about to free, before it overwrites the handle.
///
/// # Safety
/// The arguments are the program's own.
#[inline(always)]
pub unsafe fn doomed<P: Procedure>(arguments: &[usize]) -> Doomed {
    let plan = &P::PLAN;
    let mut doomed = Doomed { handle: 0, communicator: None };
    // SAFETY: the caller's promise.
    unsafe {
        if plan.freed_communicator != NONE {
            doomed.handle = abi::handle_at(arguments[plan.freed_communicator as usize]);
            doomed.communicator = communicators::withdraw(doomed.handle).map(ManuallyDrop::new);
        } else if plan.freed_object != NONE {
            doomed.handle = abi::object_at(plan.window, arguments[plan.freed_object as usize]);
        } else if plan.frees_datatype {
            datatypes::doomed(abi::handle_at(arguments[0]));
        }
    }
    doomed
}

/// Whether the call frees something.
#[inline(always)]
pub fn frees<P: Procedure>() -> bool {
    let plan = &P::PLAN;
    plan.freed_communicator != NONE || plan.freed_object != NONE || plan.frees_datatype
}

/// Forgets what a call has freed.
#[inline(always)]
pub fn forget<P: Procedure>(doomed: Doomed, result: usize) {
    let plan = &P::PLAN;
    let success = result as i32 == 0;
    if plan.freed_communicator != NONE {
        let withdrawn = doomed.communicator.map(ManuallyDrop::into_inner);
        communicators::freed(doomed.handle, withdrawn, success);
    } else if plan.freed_object != NONE && success {
        communicators::object_freed(plan.window, doomed.handle);
    } else if plan.frees_datatype {
        cache::forget_handles();
    }
}

/// Registers what a successful call made or named; its time is the tool's.
///
/// # Safety
/// As [`crate::event::attributes::after`].
#[cold]
#[inline(never)]
pub unsafe fn define(
    block: *mut ThreadBlock,
    slot: *mut Slot,
    plan: &Plan,
    arguments: &[usize],
    communicator: u16,
) {
    // SAFETY: the caller's promise; the window of the call's own slot stays mapped as the older one.
    unsafe { window::have_slot(block) };
    let begin = counter::now();
    // SAFETY: the caller's promise.
    unsafe {
        let text = if plan.text != NONE && arguments[plan.text as usize] != 0 {
            CStr::from_ptr(arguments[plan.text as usize] as *const c_char)
        } else {
            c""
        };
        let made_id = if plan.new_communicator != NONE {
            let handle = abi::handle_at(arguments[plan.new_communicator as usize]);
            let seed = text.to_bytes().iter().fold(u64::from((*slot).tag as u32), |seed, byte| {
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
                // With a leader or a root, other members name another communicator.
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
