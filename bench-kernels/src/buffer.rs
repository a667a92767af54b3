//! Page-aligned message buffers.
//!
//! Libraries copy large messages within a host directly from one process to the other, and
//! processors copy two to three times slower between buffers with different alignment within a
//! cache line. Where an allocator places a buffer depends on earlier allocations; page alignment is
//! what programs with large arrays get.

use std::ops::{Deref, DerefMut};

const PAGE: usize = 4096;

/// Bytes that begin on a page boundary.
#[derive(Default)]
pub struct Buffer {
    store: Vec<u8>,
    begin: usize,
    bytes: usize,
}

impl Buffer {
    /// `bytes` bytes of one value.
    pub fn filled(bytes: usize, value: u8) -> Self {
        let store = vec![value; bytes + PAGE];
        let begin = store.as_ptr().align_offset(PAGE).min(PAGE);
        Self { store, begin, bytes }
    }

    /// Grows to at least `bytes` bytes; if it grows, all get the value.
    pub fn grow(&mut self, bytes: usize, value: u8) {
        if bytes > self.bytes {
            *self = Self::filled(bytes, value);
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.store[self.begin..self.begin + self.bytes]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.begin..self.begin + self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_page_aligned_and_keep_their_size() {
        for bytes in [0, 1, 4097, 65_537] {
            let mut buffer = Buffer::filled(bytes, 7);
            assert!(buffer.len() == bytes && buffer.iter().all(|byte| *byte == 7));
            assert_eq!(buffer.as_ptr().addr() % PAGE, 0);
            buffer.grow(bytes / 2, 1);
            assert_eq!(buffer.len(), bytes);
            buffer.grow(bytes + 1, 1);
            assert!(buffer.len() == bytes + 1 && buffer[0] == 1);
        }
    }
}
