//! Peer, tag, bytes, requests and statuses of a call, by its plan.
//!
//! [`before`] writes what the arguments say, so that the trace shows it even if the rank hangs in
//! the call. [`after`] adds the results. Both are specialised for each procedure: what its plan
//! does not have costs nothing. A status that the program ignores is written to the recorder's
//! memory instead.

use trace_format::layout::{BYTES_ESCAPE, Continuation, Half, Slot};
use trace_format::slot::{bytes_fit, completion_flags};

use crate::event::collective_bytes::{self, CallContext, count};
use crate::event::completions;
use crate::event::ignored_statuses;
use crate::handles::cache;
use crate::handles::communicators;
use crate::handles::datatypes::{self, Sizes};
use crate::handles::groups;
use crate::mpi::abi;
use crate::mpi::plan::{NONE, Plan, Procedure, Shape, Side};
use crate::state::thread_block::CommunicatorFacts;
use crate::state::thread_block::ThreadBlock;
use crate::store::slots::append;
use crate::store::window;

/// Statuses that fit in the caller's frame. Longer arrays use the thread's buffer.
pub const FRAME_STATUSES: usize = 16;
/// Size of the largest MPI_Status in words.
const STATUS_WORDS: usize = 4;
/// Memory for statuses that the program ignores.
pub type OwnStatuses = [u64; FRAME_STATUSES * STATUS_WORDS];

/// State that [`after`] needs from [`before`].
pub struct Call {
    /// Value for the event's communicator field.
    pub communicator: u16,
    /// Whether the bytes are still to be written because the datatype's size must be queried from
    /// MPI.
    unresolved: bool,
    /// Communicator of a collective call.
    facts: Option<&'static CommunicatorFacts>,
    /// Address of the status or statuses that the call writes, the program's or the recorder's. 0:
    /// none.
    status: usize,
    /// Whether an array of statuses is the recorder's.
    own: bool,
    /// Length of a request array.
    requests: usize,
    /// First continuation slot written by `before`.
    first: *mut Slot,
}

/// Continuation slots that a call writes before it runs, in addition to the reserved ones.
#[inline(always)]
pub fn room<P: Procedure>(arguments: &[usize]) -> usize {
    let plan = &P::PLAN;
    if plan.request_count == NONE
        || !writes_requests_before(plan)
        || arguments[plan.request as usize] == 0
    {
        return 0;
    }
    (arguments[plan.request_count as usize] as i32).max(0) as usize
}

/// Whether a call's requests are written before the call, because it completes or starts all of
/// them.
#[inline(always)]
fn writes_requests_before(plan: &Plan) -> bool {
    matches!(plan.shape, Shape::Requests) || matches!(plan.shape, Shape::All) && !plan.polls
}

#[inline(always)]
unsafe fn simple_bytes(
    block: &ThreadBlock,
    plan: &Plan,
    arguments: &[usize],
    side: &Side,
    sizes: Sizes,
) -> Option<u64> {
    if side.datatype == NONE {
        return Some(0);
    }
    let elements = if side.count == NONE { 1 } else { count(plan, arguments[side.count as usize]) };
    if elements == 0 {
        return Some(0);
    }
    let datatype = abi::handle(arguments[side.datatype as usize]);
    let size = datatypes::size(block, datatype, sizes)?;
    Some(elements.wrapping_mul(size))
}

#[inline(always)]
const fn is_collective(plan: &Plan) -> bool {
    matches!(plan.shape, Shape::Collective | Shape::Broadcast | Shape::ReduceScatter)
}

/// Bytes sent (or moved) and received. `None` if a datatype's size is not known yet.
#[inline(always)]
unsafe fn bytes<P: Procedure>(
    block: &ThreadBlock,
    arguments: &[usize],
    facts: Option<&CommunicatorFacts>,
    sizes: Sizes,
) -> Option<(u64, u64)> {
    let plan = &P::PLAN;
    if plan.send.datatype == NONE && plan.receive.datatype == NONE {
        return Some((0, 0));
    }
    // SAFETY: the program's own arguments, at the positions of its procedure's plan.
    unsafe {
        if const { collective_bytes::is_symmetric(&P::PLAN) } {
            return simple_bytes(block, plan, arguments, &plan.send, sizes)
                .map(|both| (both, both));
        }
        if is_collective(plan) {
            let Some(facts) = facts else { return Some((0, 0)) };
            let context = CallContext { block, facts, sizes };
            return collective_bytes::sent_and_received(context, plan, arguments);
        }
        let (first, second) = if plan.send.datatype == NONE {
            (simple_bytes(block, plan, arguments, &plan.receive, sizes)?, 0)
        } else {
            let sent = simple_bytes(block, plan, arguments, &plan.send, sizes)?;
            (sent, simple_bytes(block, plan, arguments, &plan.receive, sizes)?)
        };
        if plan.partitions == NONE {
            return Some((first, second));
        }
        let partitions = (arguments[plan.partitions as usize] as i32).max(0) as u64;
        Some((first.wrapping_mul(partitions), second))
    }
}

/// Stores what a call's arguments say of its bytes. The half of a call that sends and receives has
/// those received.
#[inline(always)]
unsafe fn store_bytes<P: Procedure>(
    block: &ThreadBlock,
    slot: *mut Slot,
    first: *mut Slot,
    (sent, received): (u64, u64),
) {
    let plan = &P::PLAN;
    // SAFETY: the caller's slots, which are the thread's own.
    unsafe {
        if matches!(plan.shape, Shape::SendReceive) {
            (*first).begin = received;
            store_fitting(block, slot, (sent, 0), false);
        } else {
            store_fitting(block, slot, (sent, received), is_collective(plan));
        }
    }
}

/// Stores bytes sent and received in the event's slot, or in a continuation if they do not fit.
#[inline(always)]
unsafe fn store_fitting(
    block: &ThreadBlock,
    slot: *mut Slot,
    (sent, received): (u64, u64),
    has_received: bool,
) {
    // SAFETY: the caller's slot, which is the thread's own; reserved slots are free behind it.
    unsafe {
        if !bytes_fit(sent, received, has_received) {
            (*slot).bytes = BYTES_ESCAPE;
            return write_bytes(block, sent, received);
        }
        (*slot).bytes = sent as u32;
        if has_received {
            (*slot).detail = received as i32;
        }
    }
}

/// Writes bytes sent and received that do not fit in the event's slot to a continuation.
#[cold]
#[inline(never)]
unsafe fn write_bytes(block: &ThreadBlock, sent: u64, received: u64) {
    // SAFETY: the block is the calling thread's; reserved slots are free behind every event.
    unsafe { append(block, Continuation::Bytes { sent, received }) };
}

/// Writes what the arguments say to the slot, and substitutes the recorder's memory for a status
/// that the program ignores.
///
/// # Safety
/// `slot` is the thread's, with room behind it. The arguments are the program's own. `own` lives
/// until the call has returned.
#[inline(always)]
pub unsafe fn before<P: Procedure>(
    block: &ThreadBlock,
    slot: *mut Slot,
    arguments: &mut [usize],
    own: *mut OwnStatuses,
) -> Call {
    let plan = &P::PLAN;
    let mut call = Call {
        communicator: 0,
        unresolved: false,
        facts: None,
        status: 0,
        own: false,
        requests: 0,
        first: std::ptr::null_mut(),
    };
    let (mut peer, mut detail, mut request) = (0i32, 0i32, 0u32);
    // SAFETY: the program's own arguments, at the positions of its procedure's plan; the slot is
    // the thread's own, and the reserved ones behind it are free.
    unsafe {
        cache::refresh(block);
        if plan.communicator != NONE {
            let handle = abi::handle(arguments[plan.communicator as usize]);
            call.facts = Some(communicators::facts(block, handle));
        } else if plan.freed_communicator != NONE {
            let handle = abi::handle_at(arguments[plan.freed_communicator as usize]);
            call.facts = Some(communicators::facts(block, handle));
        }
        if let Some(facts) = call.facts {
            call.communicator = facts.id;
        }
        if plan.peer != NONE {
            peer = arguments[plan.peer as usize] as i32;
        }
        if plan.tag != NONE {
            detail = arguments[plan.tag as usize] as i32;
        }
        if plan.object != NONE || plan.freed_object != NONE {
            let handle = if plan.object != NONE {
                abi::handle_of_object(plan.window, arguments[plan.object as usize])
            } else {
                abi::object_at(plan.window, arguments[plan.freed_object as usize])
            };
            let (id, communicator) = communicators::object(block, plan.window, handle);
            detail = id as i32;
            call.communicator = communicator;
        }
        if plan.request != NONE && plan.request_count == NONE {
            let word = arguments[plan.request as usize];
            let handle =
                if plan.request_by_value { abi::handle(word) } else { abi::handle_at(word) };
            request = abi::request_key(handle);
        }
        if plan.message != NONE && plan.receive.datatype != NONE {
            let message = abi::request_key(abi::handle_at(arguments[plan.message as usize]));
            if plan.request_out == NONE {
                request = message;
            } else {
                append(block, Continuation::Message(message));
            }
        }
        (*slot).peer = peer;
        (*slot).detail = detail;
        (*slot).bytes = 0;
        (*slot).request = request;
        if matches!(plan.shape, Shape::SendReceive) {
            let peer = arguments[plan.source as usize] as i32;
            let tag = arguments[plan.receive_tag as usize] as i32;
            call.first = append(block, Continuation::Receive(Half { peer, tag, bytes: 0 }));
        }
        match bytes::<P>(block, arguments, call.facts, Sizes::Cached) {
            Some(both) => store_bytes::<P>(block, slot, call.first, both),
            None => call.unresolved = true,
        }
        if plan.group != NONE {
            (*slot).bytes = groups::number(block, arguments[plan.group as usize]);
        }
        if plan.lock_type != NONE {
            (*slot).bytes = arguments[plan.lock_type as usize] as u32;
        }
        if plan.request_count != NONE {
            before_several(block, plan, arguments, &mut call, own);
        } else if plan.status != NONE {
            let status = &mut arguments[plan.status as usize];
            if abi::is_ignored(*status) {
                // MPI leaves the fields of a send's status unchanged.
                own.cast::<u64>().write_bytes(0, STATUS_WORDS);
                *status = own as usize;
            }
            call.status = *status;
        }
    }
    call
}

/// [`before`] for calls on arrays of requests.
#[inline(never)]
unsafe fn before_several(
    block: &ThreadBlock,
    plan: &Plan,
    arguments: &mut [usize],
    call: &mut Call,
    own: *mut OwnStatuses,
) {
    // SAFETY: the program's array has as many handles as it says, and `room` slots are free.
    unsafe {
        let array = arguments[plan.request as usize];
        if array == 0 {
            return;
        }
        let requests = (arguments[plan.request_count as usize] as i32).max(0) as usize;
        call.requests = requests;
        call.first = block.cursor.get();
        let mut statuses = 0;
        let ignored = plan.status != NONE && abi::is_ignored(arguments[plan.status as usize]);
        if ignored {
            let single = matches!(plan.shape, Shape::Any);
            if single || requests <= FRAME_STATUSES {
                own.write_bytes(0, 1);
                arguments[plan.status as usize] = own as usize;
            } else {
                statuses = requests * STATUS_WORDS;
            }
        }
        if writes_requests_before(plan) {
            completions::write_requests(block, array, requests);
        } else {
            completions::copy_handles(block, array, requests, requests + statuses);
        }
        if statuses > 0 {
            let buffer = completions::buffer(block, requests + statuses);
            if !buffer.is_null() {
                buffer.add(requests).write_bytes(0, statuses);
                arguments[plan.status as usize] = buffer.add(requests) as usize;
            }
        }
        if plan.status != NONE {
            let status = arguments[plan.status as usize];
            call.status = if abi::is_ignored(status) { 0 } else { status };
            call.own = ignored;
        }
    }
}

/// Whether a test or probe found nothing.
///
/// # Safety
/// The call has returned; the arguments are the program's own.
#[inline(always)]
pub unsafe fn found_nothing<P: Procedure>(arguments: &[usize], result: usize) -> bool {
    let plan = &P::PLAN;
    let position = if plan.flag != NONE { plan.flag } else { plan.completed };
    // SAFETY: both arguments are pointers to ints, which the call has written.
    plan.polls
        && position != NONE
        && result as i32 == 0
        && unsafe { *(arguments[position as usize] as *const i32) } == 0
}

/// Adds the call's results. Returns the event's slot, which may have moved to a window with more
/// room.
///
/// # Safety
/// As for [`before`], which returned `call`; the MPI call has returned `result`.
#[inline(always)]
pub unsafe fn after<P: Procedure>(
    block: &ThreadBlock,
    slot: *mut Slot,
    arguments: &[usize],
    call: &mut Call,
    result: usize,
) -> *mut Slot {
    let plan = &P::PLAN;
    // SAFETY: on success, MPI has written what the procedure returns and has
    // accepted its datatypes.
    unsafe {
        if matches!(plan.shape, Shape::All | Shape::Any | Shape::Some) {
            return after_several(block, plan, slot, arguments, call, result);
        }
        if result as i32 != 0 {
            if has_failure_attributes(plan) {
                after_failure(block, plan, slot, arguments, call, result);
            }
            return slot;
        }
        if call.unresolved
            && let Some(both) = bytes::<P>(block, arguments, call.facts, Sizes::Queried)
        {
            store_bytes::<P>(block, slot, call.first, both);
        }
        if plan.request_out != NONE {
            let request = abi::handle_at(arguments[plan.request_out as usize]);
            (*slot).request = abi::request_key(request);
        }
        if plan.message != NONE && plan.receive.datatype == NONE {
            let message = abi::handle_at(arguments[plan.message as usize]);
            (*slot).request = abi::request_key(message);
        }
        match plan.shape {
            Shape::One => {
                if call.status != 0 {
                    let fields = abi::read_status(call.status);
                    write_status(block, slot, fields);
                    call.communicator = completion_flags(true, fields.cancelled);
                }
            }
            Shape::SendReceive => {
                if call.status != 0 {
                    write_half(call.first, abi::read_status(call.status));
                }
            }
            _ => {
                if plan.receives && plan.status != NONE && call.status != 0 {
                    let fields = abi::read_status(call.status);
                    if plan.object == NONE {
                        write_status(block, slot, fields);
                    } else {
                        store_fitting(block, slot, (fields.bytes, 0), false);
                    }
                }
            }
        }
        slot
    }
}

/// Whether [`after_failure`] has anything to do for a procedure.
#[inline(always)]
const fn has_failure_attributes(plan: &Plan) -> bool {
    matches!(plan.shape, Shape::One | Shape::SendReceive)
        || plan.receives && plan.status != NONE && plan.object == NONE
}

/// [`after`] for a call that returned an error. The event then consists of the call's arguments,
/// with one exception: a message longer than its buffer was received nevertheless, and the status
/// describes it.
#[cold]
#[inline(never)]
unsafe fn after_failure(
    block: &ThreadBlock,
    plan: &Plan,
    slot: *mut Slot,
    arguments: &[usize],
    call: &mut Call,
    result: usize,
) {
    let truncated = abi::error_class(result as i32) == abi::error_classes().truncate;
    // SAFETY: the program's own arguments; libraries write the status of a message that they
    // truncate.
    unsafe {
        match plan.shape {
            _ if call.status == 0 => {}
            Shape::One => {
                let request = arguments[plan.request as usize];
                if plan.request_by_value || (*slot).request == 0 {
                    return;
                }
                // A refused request stays unchanged.
                if truncated || abi::request_key(abi::handle_at(request)) == 0 {
                    call.communicator = completion_flags(true, false);
                    if truncated {
                        write_status(block, slot, abi::read_status(call.status));
                    }
                }
            }
            Shape::SendReceive if truncated => {
                write_half(call.first, abi::read_status(call.status));
            }
            _ if truncated && plan.receives && plan.status != NONE && plan.object == NONE => {
                write_status(block, slot, abi::read_status(call.status));
            }
            _ => {}
        }
    }
}

/// Writes a status to the receiving half of a call that sends and receives.
#[inline(always)]
unsafe fn write_half(half: *mut Slot, fields: abi::StatusFields) {
    // SAFETY: the caller's slot.
    unsafe {
        (*half).begin = fields.bytes;
        (*half).peer = fields.source;
        (*half).detail = fields.tag;
    }
}

/// Writes a status to the event's slot.
#[inline(always)]
unsafe fn write_status(block: &ThreadBlock, slot: *mut Slot, fields: abi::StatusFields) {
    // SAFETY: the caller's slot, which is the thread's own; reserved slots are free behind it.
    unsafe {
        (*slot).peer = fields.source;
        (*slot).detail = fields.tag;
        store_fitting(block, slot, (fields.bytes, 0), false);
    }
}

/// [`after`] for calls on arrays of requests.
#[inline(never)]
unsafe fn after_several(
    block: &ThreadBlock,
    plan: &Plan,
    slot: *mut Slot,
    arguments: &[usize],
    call: &mut Call,
    result: usize,
) -> *mut Slot {
    let success = result as i32 == 0;
    let stride = abi::status_bytes();
    let array = arguments[plan.request as usize];
    // SAFETY: the program's own arguments. Statuses and indices are written as far as MPI
    // specifies; the handles were copied before the call.
    unsafe {
        if call.status == 0 {
            return slot;
        }
        let status = |index: usize| call.status + index * stride;
        let left = writes_requests_before(plan)
            && call.own
            && ignored_statuses::left_pending(array, call.requests, call.status);
        // In this case each status has its own error, and some requests may have completed.
        let each = left || abi::is_in_status(result);
        let is_gone = |index: usize| {
            abi::request_key(abi::handle_at(array + index * abi::handle_stride())) == 0
        };
        // If so, MPI has accepted the arguments, and a test reports whether it concerns all
        // requests.
        let all =
            each && (plan.flag == NONE || *(arguments[plan.flag as usize] as *const i32) != 0);
        // Error class of a request that completed. `None` if it did not.
        let completion = |index: usize, order: usize| {
            let error = if each { abi::error_class(abi::status_error(status(order))) } else { 0 };
            let done = error != abi::error_classes().pending
                && (success || is_gone(index) || all && ignored_statuses::knows_persistent());
            done.then_some(error)
        };
        if writes_requests_before(plan) {
            for index in 0..call.requests {
                let error = match success && !left {
                    true => Some(0),
                    false if each => completion(index, index),
                    false => None,
                };
                if let Some(error) = error {
                    let fields = abi::read_status(status(index));
                    completions::complete(call.first.add(index), fields, error);
                }
            }
            if left {
                ignored_statuses::free_remaining(array, call.requests);
            }
            return slot;
        }
        let handles = block.handles.get();
        if handles.is_null() {
            return slot;
        }
        if matches!(plan.shape, Shape::Any) {
            // After a failed call the index may not have been written. A request that is gone was
            // completed.
            let was_there = |index: &usize| abi::request_key(*handles.add(*index)) != 0;
            let index = if success {
                usize::try_from(*(arguments[plan.index as usize] as *const i32)).ok()
            } else {
                (0..call.requests).filter(was_there).find(|index| is_gone(*index))
            };
            if let Some(index) = index.filter(|index| *index < call.requests) {
                let fields = abi::read_status(call.status);
                write_status(block, slot, fields);
                (*slot).request = abi::request_key(*handles.add(index));
                call.communicator = completion_flags(true, success && fields.cancelled);
            }
            return slot;
        }
        if !success && !each {
            return slot;
        }
        // All requests, or those named by the indices.
        let (completed, indices) = if matches!(plan.shape, Shape::All) {
            (call.requests, std::ptr::null())
        } else {
            let completed = *(arguments[plan.completed as usize] as *const i32);
            let indices = arguments[plan.index as usize] as *const i32;
            ((completed.max(0) as usize).min(call.requests), indices)
        };
        let Some(slot) = window::with_room(block, slot, completed) else { return slot };
        for order in 0..completed {
            let index = if indices.is_null() { order } else { *indices.add(order) as usize };
            if index < call.requests
                && let Some(error) = completion(index, order)
            {
                let fields = abi::read_status(status(order));
                completions::write_completed(block, *handles.add(index), fields, error);
            }
        }
        slot
    }
}
