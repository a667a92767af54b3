//! Blocks of the process's own memory that are read again and again, as the frames of a stack are.
//!
//! What was read the last time is copied in advance, many blocks with one system call: from one sample
//! to the next most of a stack stays. Nothing is believed from then: each block is copied anew.

use std::ffi::c_void;

use crate::host::own_memory::{Copied, read, read_many};

/// Size of the largest block that is copied in advance.
const MAX_BYTES: usize = 160;
/// Maximum number of blocks that are.
const MAX_BLOCKS: usize = 512;
/// Blocks of a system call.
const AT_ONCE: usize = 64;

/// A block: its address and length in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Block {
    address: u64,
    bytes: usize,
}

/// Blocks in the order in which they are asked for.
struct Blocks {
    blocks: Box<[Block]>,
    count: usize,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { blocks: vec![Block::default(); MAX_BLOCKS].into_boxed_slice(), count: 0 }
    }
}

impl Blocks {
    fn all(&self) -> &[Block] {
        &self.blocks[..self.count]
    }

    /// Adds a block, or makes the last one longer.
    fn note(&mut self, block: Block) {
        if let Some(last) = self.count.checked_sub(1).map(|last| &mut self.blocks[last])
            && last.address == block.address
        {
            last.bytes = last.bytes.max(block.bytes);
        } else if let Some(free) = self.blocks.get_mut(self.count) {
            *free = block;
            self.count += 1;
        }
    }
}

/// Memory that one thread reads.
#[derive(Default)]
pub struct Recurring {
    /// What was copied in advance, and the copies.
    copied: Blocks,
    copies: Copies,
    /// What has been asked for since.
    asked: Blocks,
    /// The block behind the one that was found last.
    next: usize,
}

struct Copies(Box<[[u8; MAX_BYTES]]>);

impl Default for Copies {
    fn default() -> Self {
        Self(vec![[0; MAX_BYTES]; MAX_BLOCKS].into_boxed_slice())
    }
}

impl Recurring {
    /// Copies what has been asked for since the last time. The thread changes none of it until it is
    /// asked for. May be called in a signal handler.
    pub fn begin(&mut self) {
        std::mem::swap(&mut self.copied, &mut self.asked);
        (self.asked.count, self.next) = (0, 0);
        let blocks = &mut self.copied.blocks[..self.copied.count];
        for (blocks, copies) in blocks.chunks_mut(AT_ONCE).zip(self.copies.0.chunks_mut(AT_ONCE)) {
            copy(blocks, copies);
        }
    }

    /// Copies the first bytes of an object; `None` if they cannot be read. May be called in a signal
    /// handler.
    pub fn read<const BYTES: usize>(
        &mut self,
        address: u64,
        bytes: usize,
    ) -> Option<Copied<BYTES>> {
        let mut copied = [0; BYTES];
        self.read_into(address, copied.get_mut(..bytes)?).then_some(Copied::new(copied))
    }

    /// Copies the bytes at an address. Returns `false` if not all of them can be read.
    pub fn read_into(&mut self, address: u64, to: &mut [u8]) -> bool {
        if address == 0 {
            return false;
        }
        if to.len() > MAX_BYTES {
            return read(address, to);
        }
        if self.find(address, to) || read(address, to) {
            self.asked.note(Block { address, bytes: to.len() });
            return true;
        }
        false
    }

    /// Takes bytes from what was copied in advance.
    fn find(&mut self, address: u64, to: &mut [u8]) -> bool {
        let (before, behind) = self.copied.all().split_at(self.next.min(self.copied.count));
        let is_it = |block: &Block| block.address == address && block.bytes >= to.len();
        let found = behind.iter().position(is_it).map(|at| before.len() + at);
        let Some(at) = found.or_else(|| before.iter().position(is_it)) else {
            return false;
        };
        // The same block may be asked for once more, with what follows it.
        self.next = at;
        to.copy_from_slice(&self.copies.0[at][..to.len()]);
        true
    }
}

/// Copies blocks, at most [`AT_ONCE`]. What cannot be read has no address afterwards.
fn copy(blocks: &mut [Block], copies: &mut [[u8; MAX_BYTES]]) {
    const NOTHING: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let (mut from, mut to) = ([NOTHING; AT_ONCE], [NOTHING; AT_ONCE]);
    for (number, (block, copy)) in blocks.iter().zip(&mut *copies).enumerate() {
        let bytes = block.bytes.min(MAX_BYTES);
        from[number] = libc::iovec { iov_base: block.address as *mut c_void, iov_len: bytes };
        to[number] = libc::iovec { iov_base: copy.as_mut_ptr().cast(), iov_len: bytes };
    }
    let mut at = 0;
    while at < blocks.len() {
        let range = at..blocks.len();
        // SAFETY: `to` has the copies, each at least as long as stated.
        let mut rest = unsafe { read_many(&from[range.clone()], &to[range]) };
        // Up to the first that cannot be read.
        while let Some(block) = blocks.get(at).filter(|block| block.bytes <= rest) {
            rest -= block.bytes;
            at += 1;
        }
        if let Some(block) = blocks.get_mut(at) {
            *block = Block::default();
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::own_memory::is_readable;

    #[test]
    fn blocks_are_copied_anew_each_time() {
        if !is_readable() {
            return;
        }
        let mut memory = vec![0u64; 4000];
        let at = memory.as_ptr() as u64;
        let mut recurring = Recurring::default();
        for round in 1..4u64 {
            memory.iter_mut().enumerate().for_each(|(n, word)| *word = n as u64 * round);
            recurring.begin();
            assert_eq!(recurring.copied.count, if round == 1 { 0 } else { 200 });
            // In another order each time; what cannot be read is among it.
            for number in (0..200).map(|n| n * round % 199) {
                let address = at + 160 * number;
                let found = recurring.read::<16>(address, 16).expect("it is there");
                assert_eq!(
                    (found.word(0), found.word(8)),
                    (20 * number * round, (20 * number + 1) * round)
                );
            }
        }
        assert!(recurring.read::<8>(0, 8).is_none());
        assert!(recurring.read::<8>(8, 9).is_none(), "more than there is room for");
    }

    #[test]
    fn what_cannot_be_read_hides_nothing_behind_it() {
        if !is_readable() {
            return;
        }
        let words: [u64; 3] = std::hint::black_box([5, 6, 7]);
        let address = |n: usize| &raw const words[n] as u64;
        let mut recurring = Recurring::default();
        for _ in 0..3 {
            recurring.begin();
            let mut word = |address| recurring.read::<8>(address, 8).map(|of| of.word(0));
            assert_eq!(word(address(0)), Some(5));
            assert_eq!((word(8), word(16)), (None, None));
            assert_eq!(word(address(1)), Some(6));
            assert_eq!(word(24), None);
            assert_eq!(word(address(2)), Some(7));
            // Longer than what was asked for first.
            let both = recurring.read::<16>(address(1), 16).map(|of| of.word(8));
            assert_eq!(both, Some(7));
        }
    }
}
