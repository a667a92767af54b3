//! The requests completed by a wait or test on several requests.
//!
//! A wait for all requests writes them before the call, one continuation slot each, so that the
//! trace shows what the call waits for even if the rank hangs in it. The other procedures copy the
//! handles, because the call overwrites those that it completes, and write the completed requests
//! afterwards.

use std::ptr::null_mut;

use trace_format::layout::{Continuation, RequestState, Slot};

use crate::mpi::abi::{self, StatusFields};
use crate::state::thread_block::ThreadBlock;
use crate::store::slots::{append, put};

/// Initial capacity of a thread's handle buffer in words.
const INITIAL_WORDS: usize = 4096;

/// The thread's own buffer, with room for `words` words. Null if the system refuses the memory.
#[inline(always)]
pub fn buffer(block: &ThreadBlock, words: usize) -> *mut usize {
    if block.handle_capacity.get() < words {
        grow(block, words);
    }
    block.handles.get()
}

#[cold]
#[inline(never)]
fn grow(block: &ThreadBlock, words: usize) {
    let _own = crate::host::own_work::OwnWork::begin();
    let capacity = words.next_power_of_two().max(INITIAL_WORDS);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the old buffer is the thread's own and holds nothing between calls. No allocator is
    // involved, since that may be the program's.
    unsafe {
        if !block.handles.get().is_null() {
            libc::munmap(
                block.handles.get().cast(),
                block.handle_capacity.get() * size_of::<usize>(),
            );
        }
        let made = libc::mmap(null_mut(), capacity * size_of::<usize>(), protection, flags, -1, 0);
        let failed = made == libc::MAP_FAILED;
        block.handles.set(if failed { null_mut() } else { made.cast() });
        block.handle_capacity.set(if failed { 0 } else { capacity });
    }
}

/// Copies an array of handles into the thread's buffer.
///
/// # Safety
/// The program passed `count` handles.
pub unsafe fn copy_handles(block: &ThreadBlock, array: usize, count: usize, capacity: usize) {
    // SAFETY: the program's array has `count` handles, and `buffer` at least `capacity` words.
    unsafe {
        let copy = buffer(block, capacity);
        if copy.is_null() {
            return;
        }
        for index in 0..count {
            *copy.add(index) = abi::handle_at(array + index * abi::handle_stride());
        }
    }
}

/// Writes one continuation slot per request, none of them completed.
///
/// # Safety
/// The window has room for `count` slots. The program passed `count` handles.
pub unsafe fn write_requests(block: &ThreadBlock, array: usize, count: usize) {
    // SAFETY: the program's array has `count` handles, and the window as many free slots.
    unsafe {
        for index in 0..count {
            let request = abi::handle_at(array + index * abi::handle_stride());
            let request = abi::request_key(request);
            append(block, Continuation::Request(RequestState { request, ..Default::default() }));
        }
    }
}

/// A completed request. `error` is the class of its operation's error, or 0.
#[inline(always)]
fn completed(request: u32, fields: StatusFields, error: u32) -> Continuation {
    let StatusFields { source: peer, tag, bytes, cancelled } = fields;
    let completed = true;
    Continuation::Request(RequestState { request, completed, cancelled, peer, tag, bytes, error })
}

/// Completes a slot written by [`write_requests`].
///
/// # Safety
/// `slot` is a slot of this thread written by that function.
pub unsafe fn complete(slot: *mut Slot, fields: StatusFields, error: u32) {
    // SAFETY: the thread's own slot, which names its request.
    unsafe { put(slot, completed((*slot).request, fields, error)) };
}

/// Writes a continuation slot for a completed request.
///
/// # Safety
/// The window has room for the slot.
pub unsafe fn write_completed(
    block: &ThreadBlock,
    request: usize,
    fields: StatusFields,
    error: u32,
) {
    // SAFETY: there is a free slot at the cursor, as the caller promises.
    unsafe { append(block, completed(abi::request_key(request), fields, error)) };
}
