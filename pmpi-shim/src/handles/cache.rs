//! Invalidates what threads remember by handle. Freeing a handle anywhere advances a generation,
//! which empties the caches of every thread at its next call.

use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use trace_format::header::COMMUNICATOR_UNKNOWN;

use crate::state::thread_block::{CACHED_COMMUNICATORS, CACHED_SIZES, ThreadBlock};

/// Advances whenever a handle is freed.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Empties the thread's caches if a handle was freed since they were filled.
///
/// # Safety
/// `block` is the calling thread's.
#[inline(always)]
pub unsafe fn refresh(block: *mut ThreadBlock) {
    // SAFETY: the caller's promise.
    unsafe {
        let generation = GENERATION.load(Relaxed);
        if (*block).generation != generation {
            empty_caches(block, generation);
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn empty_caches(block: *mut ThreadBlock, generation: u32) {
    // SAFETY: the calling thread's block.
    unsafe {
        (*block).sizes = [(0, 0); CACHED_SIZES];
        (*block).communicators = [(0, null()); CACHED_COMMUNICATORS];
        (*block).object = ((0, false), (0, COMMUNICATOR_UNKNOWN));
        (*block).generation = generation;
    }
}

/// Whether no handle has been freed since the thread's caches were filled.
///
/// # Safety
/// `block` is the calling thread's.
pub unsafe fn is_fresh(block: *mut ThreadBlock) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*block).generation == GENERATION.load(Relaxed) }
}

/// Empties all caches, because a handle was freed.
pub fn forget_handles() {
    GENERATION.fetch_add(1, Relaxed);
}

/// Index of a handle in a cache of `entries` entries, a power of two up to 256.
#[inline(always)]
pub fn index_of(handle: usize, entries: usize) -> usize {
    (handle as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - 8)
        & (entries - 1)
}
