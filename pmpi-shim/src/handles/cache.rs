//! Invalidates what threads remember by handle. Freeing a handle anywhere advances a generation,
//! which empties the caches of every thread at its next call.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use trace_format::header::COMMUNICATOR_UNKNOWN;

use crate::state::thread_block::ThreadBlock;

/// Advances whenever a handle is freed.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Empties the thread's caches if a handle was freed since they were filled.
#[inline(always)]
pub fn refresh(block: &ThreadBlock) {
    let generation = GENERATION.load(Relaxed);
    if block.generation.get() != generation {
        empty_caches(block, generation);
    }
}

#[cold]
#[inline(never)]
fn empty_caches(block: &ThreadBlock, generation: u32) {
    block.sizes.iter().for_each(|cached| cached.set((0, 0)));
    block.communicators.iter().for_each(|cached| cached.set((0, None)));
    block.object.set(((0, false), (0, COMMUNICATOR_UNKNOWN)));
    block.generation.set(generation);
}

/// Whether no handle has been freed since the thread's caches were filled.
pub fn is_fresh(block: &ThreadBlock) -> bool {
    block.generation.get() == GENERATION.load(Relaxed)
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
