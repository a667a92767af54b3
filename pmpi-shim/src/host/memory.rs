//! The recorder's allocator, which takes its memory from the kernel.
//!
//! A signal handler may call MPI at any instruction: while its thread is inside the program's
//! `malloc`, whose lock would then never be released, or inside this allocator. So there is no
//! lock. Free blocks of a size form a list. A caller that needs a block takes the whole list by one
//! exchange and puts back all but the first block. Meanwhile others find the list empty and ask the
//! kernel. A block that another thread may have taken is never read, so blocks need no generation.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const PAGE_BYTES: usize = 4096;
/// Blocks are powers of two between these sizes. Anything larger gets a mapping of its own.
const SMALLEST_SHIFT: u32 = 5;
const LARGEST_SHIFT: u32 = 19;
/// Minimum number of bytes requested from the kernel at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A free block holds the pointer to the next one of its list.
struct Free {
    next: *mut Free,
}

/// The recorder's allocator. It never returns the memory of its blocks to the kernel.
pub struct Memory {
    lists: [AtomicPtr<Free>; (LARGEST_SHIFT - SMALLEST_SHIFT + 1) as usize],
}

impl Memory {
    pub const fn new() -> Self {
        Self { lists: [const { AtomicPtr::new(null_mut()) }; _] }
    }

    /// Takes a free block from a list, or makes a new one.
    fn take(&self, shift: u32) -> *mut u8 {
        let list = self.list(shift);
        let taken = list.swap(null_mut(), Acquire);
        if taken.is_null() {
            return self.refill(shift);
        }
        // SAFETY: this call owns the whole list: its blocks are mapped and belong to nobody else.
        self.put_back(shift, unsafe { (*taken).next });
        taken.cast()
    }

    /// Puts a chain of free blocks owned by the caller on their list.
    fn put_back(&self, shift: u32, chain: *mut Free) {
        let list = self.list(shift);
        while !chain.is_null() {
            if list.compare_exchange(null_mut(), chain, Release, Relaxed).is_ok() {
                return;
            }
            // Other threads have put blocks back meanwhile; append theirs to the end of this chain.
            let theirs = list.swap(null_mut(), Acquire);
            let mut last = chain;
            // SAFETY: this call owns both chains.
            unsafe {
                while !(*last).next.is_null() {
                    last = (*last).next;
                }
                (*last).next = theirs;
            }
        }
    }

    /// Splits a new chunk into blocks, returns one and frees the others.
    fn refill(&self, shift: u32) -> *mut u8 {
        let block = 1 << shift;
        let first = map(CHUNK_BYTES.max(block));
        if first.is_null() {
            return null_mut();
        }
        let mut chain = null_mut();
        for index in (1..CHUNK_BYTES / block).rev() {
            // SAFETY: inside the chunk, which nobody else knows. Blocks are aligned up to the size
            // of a page.
            unsafe {
                let free: *mut Free = first.add(index * block).cast();
                free.write(Free { next: chain });
                chain = free;
            }
        }
        self.put_back(shift, chain);
        first
    }

    fn list(&self, shift: u32) -> &AtomicPtr<Free> {
        &self.lists[(shift - SMALLEST_SHIFT) as usize]
    }
}

/// The power of two of the block that a layout needs. If it exceeds the largest, the block is a
/// mapping of its own.
fn shift_of(layout: Layout) -> u32 {
    let bytes = layout.size().max(layout.align()).max(1 << SMALLEST_SHIFT);
    usize::BITS - (bytes - 1).leading_zeros()
}

fn map(bytes: usize) -> *mut u8 {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: creates a new mapping.
    let mapping = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
    if mapping == libc::MAP_FAILED { null_mut() } else { mapping.cast() }
}

// SAFETY: a block is either on one list or the caller's, never both. Its size and alignment are at
// least the layout's (an alignment above a page is refused).
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
        // SAFETY: the caller promises that the block came from `alloc` with this layout and is not
        // used again.
        unsafe {
            if shift > LARGEST_SHIFT {
                libc::munmap(block.cast(), layout.size());
                return;
            }
            let list = self.list(shift);
            let free: *mut Free = block.cast();
            let mut next = list.load(Relaxed);
            loop {
                // The head of the list is stored but never read, so it does no harm if it was taken
                // and put back meanwhile.
                free.write(Free { next });
                match list.compare_exchange_weak(next, free, AcqRel, Relaxed) {
                    Ok(_) => return,
                    Err(now) => next = now,
                }
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size is valid for a layout.
        let new = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        let shift = shift_of(layout);
        if shift == shift_of(new) && shift <= LARGEST_SHIFT {
            return block;
        }
        // SAFETY: the caller promises that `block` came from `alloc` with this layout; the two blocks
        // do not overlap.
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
        Layout::from_size_align(bytes, align).expect("the layout is valid")
    }

    #[test]
    fn blocks_are_sized_aligned_and_reused() {
        let memory = Memory::new();
        for (bytes, align) in [(1, 1), (33, 8), (100, 64), (5000, 4096), (90_000, 16), (3 << 20, 8)]
        {
            let layout = layout(bytes, align);
            // SAFETY: the layout has a size, and the block was allocated with it.
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
        // SAFETY: the layout has a size.
        assert!(unsafe { memory.alloc(layout(8, 2 * PAGE_BYTES)) }.is_null());
    }

    #[test]
    fn keeps_bytes_of_growing_block() {
        let memory = Memory::new();
        let mut bytes = 3;
        // SAFETY: every call is given the size of the one before.
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
    fn gives_block_to_one_thread_only() {
        static MEMORY: Memory = Memory::new();
        let work = |mark: u8| {
            let mut held: Vec<(*mut u8, Layout)> = Vec::new();
            for round in 0..20_000_usize {
                let layout = layout(1 + (round * 37) % 300, 8);
                // SAFETY: the layout has a size; each block is written and freed within its size, with the
                // layout of its allocation.
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
