//! What a wait or test on several requests completed.
//!
//! A wait for all writes its requests before the call, one continuation slot each, so that a call in
//! which a rank hangs shows what it waits for; the others copy the handles, because the call
//! overwrites those that it completes, and write what was completed after it.

use std::ptr::null_mut;

use trace_format::layout::{COMPLETED, CONTINUATION, CONTINUES_REQUEST, Slot, slot_word};

use crate::mpi::abi::{self, Said};
use crate::state::thread_block::ThreadBlock;
use crate::store::slots::publish;

/// Words that a thread's handle buffer has room for at first.
const FIRST_PLACES: usize = 4096;

/// Room for that many words in the thread's own buffer; null when the system refuses.
///
/// # Safety
/// `block` is the calling thread's.
#[inline(always)]
pub unsafe fn buffer(block: *mut ThreadBlock, words: usize) -> *mut usize {
    // SAFETY: the caller's promise.
    unsafe {
        if (*block).handle_places < words {
            grow(block, words);
        }
        (*block).handles
    }
}

#[cold]
#[inline(never)]
unsafe fn grow(block: *mut ThreadBlock, words: usize) {
    let _own = crate::host::own_work::OwnWork::begin();
    let places = words.next_power_of_two().max(FIRST_PLACES);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the old buffer is the thread's own and holds nothing between calls; no allocator is
    // involved, which may be the program's.
    unsafe {
        if !(*block).handles.is_null() {
            libc::munmap((*block).handles.cast(), (*block).handle_places * size_of::<usize>());
        }
        let made = libc::mmap(null_mut(), places * size_of::<usize>(), protection, flags, -1, 0);
        let failed = made == libc::MAP_FAILED;
        (*block).handles = if failed { null_mut() } else { made.cast() };
        (*block).handle_places = if failed { 0 } else { places };
    }
}

/// Copies an array of handles into the thread's buffer.
///
/// # Safety
/// `block` is the calling thread's; the program passed `count` handles.
pub unsafe fn copy_handles(block: *mut ThreadBlock, array: usize, count: usize, places: usize) {
    // SAFETY: the caller's promise; `buffer` has at least `places` words.
    unsafe {
        let copy = buffer(block, places);
        if copy.is_null() {
            return;
        }
        for index in 0..count {
            *copy.add(index) = abi::handle_at(array + index * abi::handle_stride());
        }
    }
}

/// Writes one continuation slot a request, none of them completed.
///
/// # Safety
/// `block` is the calling thread's, with room for `count` slots; the program passed that many.
pub unsafe fn write_requests(block: *mut ThreadBlock, array: usize, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        for index in 0..count {
            let request = abi::handle_at(array + index * abi::handle_stride());
            let slot = (*block).cursor;
            slot.write(Slot { request: abi::request_key(request), ..Slot::default() });
            publish(slot, slot_word(CONTINUES_REQUEST, CONTINUATION, 0));
            (*block).cursor = slot.add(1);
        }
    }
}

/// Completes a slot that [`write_requests`] wrote; `error` is the class of the operation's error, 0 none.
///
/// # Safety
/// `slot` is such a slot of this thread.
pub unsafe fn complete(slot: *mut Slot, said: Said, error: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        (*slot).bytes = error;
        (*slot).begin = said.bytes;
        (*slot).peer = said.source;
        (*slot).tag = said.tag;
        publish(slot, slot_word(CONTINUES_REQUEST, CONTINUATION, COMPLETED | said.cancelled));
    }
}

/// Writes a continuation slot for a request that was completed; `error` as in [`complete`].
///
/// # Safety
/// `block` is the calling thread's, with room for the slot.
pub unsafe fn write_completed(block: *mut ThreadBlock, request: usize, said: Said, error: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        let slot = (*block).cursor;
        slot.write(Slot { request: abi::request_key(request), ..Slot::default() });
        complete(slot, said, error);
        (*block).cursor = slot.add(1);
    }
}
