//! Memory of the recorder's own, taken from the kernel.
//!
//! A signal handler may call MPI at any instruction: where its thread is inside the program's `malloc`, whose
//! lock would never be free, or inside this allocator. So there is no lock: free blocks of a size stand in a
//! list that whoever needs one takes whole, by one exchange, and gives back but for its first. Meanwhile
//! others find the list empty and ask the kernel. Nothing is read that another may have taken, so no block
//! needs a generation.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const PAGE_BYTES: usize = 4096;
/// Blocks are powers of two: the smallest, the largest. What is larger is a mapping of its own.
const SMALLEST_SHIFT: u32 = 5;
const LARGEST_SHIFT: u32 = 19;
/// Bytes that are asked of the kernel at once, at least.
const CHUNK_BYTES: usize = 64 << 10;

/// A free block: where the next one of its list stands.
struct Free {
    next: *mut Free,
}

/// The recorder's allocator; what it has taken from the kernel for blocks it keeps.
pub struct Memory {
    lists: [AtomicPtr<Free>; (LARGEST_SHIFT - SMALLEST_SHIFT + 1) as usize],
}

impl Memory {
    pub const fn new() -> Self {
        Self { lists: [const { AtomicPtr::new(null_mut()) }; _] }
    }

    /// Takes a free block off a list, or a new one.
    fn take(&self, shift: u32) -> *mut u8 {
        let list = self.list(shift);
        let taken = list.swap(null_mut(), Acquire);
        if taken.is_null() {
            return self.refill(shift);
        }
        // SAFETY: the whole list is this call's: its blocks are mapped and nobody else's.
        self.give_back(shift, unsafe { (*taken).next });
        taken.cast()
    }

    /// Puts a chain of free blocks that are the caller's on their list.
    fn give_back(&self, shift: u32, chain: *mut Free) {
        let list = self.list(shift);
        while !chain.is_null() {
            if list.compare_exchange(null_mut(), chain, Release, Relaxed).is_ok() {
                return;
            }
            // Others have given back meanwhile: theirs go on behind the end of this chain.
            let theirs = list.swap(null_mut(), Acquire);
            let mut last = chain;
            // SAFETY: both chains are this call's.
            unsafe {
                while !(*last).next.is_null() {
                    last = (*last).next;
                }
                (*last).next = theirs;
            }
        }
    }

    /// Blocks of a new chunk: one is returned, the others become free.
    fn refill(&self, shift: u32) -> *mut u8 {
        let block = 1 << shift;
        let first = map(CHUNK_BYTES.max(block));
        if first.is_null() {
            return null_mut();
        }
        let mut chain = null_mut();
        for index in (1..CHUNK_BYTES / block).rev() {
            // SAFETY: inside the chunk, which nobody else knows; blocks are aligned as far as pages are.
            unsafe {
                let free: *mut Free = first.add(index * block).cast();
                free.write(Free { next: chain });
                chain = free;
            }
        }
        self.give_back(shift, chain);
        first
    }

    fn list(&self, shift: u32) -> &AtomicPtr<Free> {
        &self.lists[(shift - SMALLEST_SHIFT) as usize]
    }
}

/// Which block a layout needs, as a power of two; larger than any: a mapping of its own.
fn shift_of(layout: Layout) -> u32 {
    let bytes = layout.size().max(layout.align()).max(1 << SMALLEST_SHIFT);
    usize::BITS - (bytes - 1).leading_zeros()
}

fn map(bytes: usize) -> *mut u8 {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping.
    let mapping = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
    if mapping == libc::MAP_FAILED { null_mut() } else { mapping.cast() }
}

// SAFETY: a block is on one list or the caller's, never both; its size and alignment are at least the
// layout's (refused above a page).
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > PAGE_BYTES {
            return null_mut();
        }
        let shift = shift_of(layout);
        if shift > LARGEST_SHIFT { map(layout.size()) } else { self.take(shift) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let shift = shift_of(layout);
        // SAFETY: the caller's promise: the block came from `alloc` with this layout and is not used again.
        unsafe {
            if shift > LARGEST_SHIFT {
                libc::munmap(block.cast(), layout.size());
                return;
            }
            let list = self.list(shift);
            let free: *mut Free = block.cast();
            let mut next = list.load(Relaxed);
            loop {
                // The first of the list is named, never looked into: that it was taken and came back does no
                // harm.
                free.write(Free { next });
                match list.compare_exchange_weak(next, free, AcqRel, Relaxed) {
                    Ok(_) => return,
                    Err(now) => next = now,
                }
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise: the new size is none that a layout refuses.
        let new = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        let shift = shift_of(layout);
        if shift == shift_of(new) && shift <= LARGEST_SHIFT {
            return block;
        }
        // SAFETY: as above; two blocks do not overlap.
        unsafe {
            let moved = self.alloc(new);
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(block, moved, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes: usize, align: usize) -> Layout {
        Layout::from_size_align(bytes, align).expect("a layout")
    }

    #[test]
    fn blocks_have_their_size_and_alignment_and_come_back() {
        let memory = Memory::new();
        for (bytes, align) in [(1, 1), (33, 8), (100, 64), (5000, 4096), (90_000, 16), (3 << 20, 8)]
        {
            let layout = layout(bytes, align);
            // SAFETY: a layout of more than no bytes; what is freed was allocated with it.
            unsafe {
                let first = memory.alloc(layout);
                assert!(!first.is_null() && first.addr().is_multiple_of(align), "{layout:?}");
                first.write_bytes(7, bytes);
                memory.dealloc(first, layout);
                let second = memory.alloc(layout);
                assert!(bytes > 1 << LARGEST_SHIFT || second == first, "{layout:?}");
                memory.dealloc(second, layout);
            }
        }
        // SAFETY: as above.
        assert!(unsafe { memory.alloc(layout(8, 2 * PAGE_BYTES)) }.is_null());
    }

    #[test]
    fn what_grows_keeps_its_bytes() {
        let memory = Memory::new();
        let mut bytes = 3;
        // SAFETY: every size is handed on to the next call.
        unsafe {
            let mut block = memory.alloc(layout(bytes, 1));
            block.copy_from(b"abc".as_ptr(), 3);
            while bytes < 2 << 20 {
                block = memory.realloc(block, layout(bytes, 1), bytes * 2 + 1);
                bytes = bytes * 2 + 1;
                assert_eq!(std::slice::from_raw_parts(block, 3), b"abc");
            }
            memory.dealloc(block, layout(bytes, 1));
        }
    }

    #[test]
    fn a_block_has_one_owner_among_threads() {
        static MEMORY: Memory = Memory::new();
        let work = |mark: u8| {
            let mut held: Vec<(*mut u8, Layout)> = Vec::new();
            for round in 0..20_000_usize {
                let layout = layout(1 + (round * 37) % 300, 8);
                // SAFETY: as above; each block is written over its whole size.
                unsafe {
                    let block = MEMORY.alloc(layout);
                    block.write_bytes(mark, layout.size());
                    held.push((block, layout));
                    if held.len() > 20 {
                        let (block, layout) = held.swap_remove(round % 20);
                        let bytes = std::slice::from_raw_parts(block, layout.size());
                        assert!(bytes.iter().all(|&byte| byte == mark));
                        MEMORY.dealloc(block, layout);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for mark in 1..=6 {
                scope.spawn(move || work(mark));
            }
        });
    }
}
