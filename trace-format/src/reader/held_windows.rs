//! Copies of the windows of a process that fills them faster than its file is read.
//!
//! A thread has two windows, and copies of them are made one after the other, so there may be a gap between them, and
//! between them and the rest of the file. At the next attempt the file has grown by what lies before the thread's last
//! copy. So this one is kept, and what the thread has recorded since is not wanted.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::layout::ChunkHeader;

#[derive(Debug)]
struct Copy {
    range: Range<usize>,
    header: ChunkHeader,
    bytes: Vec<u8>,
    /// Whether nothing beyond it is wanted.
    is_last: bool,
}

/// The last copy of each thread.
#[derive(Debug, Default)]
pub(super) struct HeldWindows(BTreeMap<u32, Copy>);

impl HeldWindows {
    /// Notes a copy if it is the thread's last.
    pub fn add(&mut self, range: Range<usize>, header: ChunkHeader, bytes: Vec<u8>) {
        if self.0.get(&header.thread).is_none_or(|copy| copy.header.sequence < header.sequence) {
            self.0.insert(header.thread, Copy { range, header, bytes, is_last: false });
        }
    }

    /// Ends an attempt: what the threads record from now on is not wanted.
    pub fn settle(&mut self) {
        self.0.values_mut().for_each(|copy| copy.is_last = true);
    }

    /// The last copy of a thread, if it is that of the window at this place.
    pub fn last_at(&self, range: Range<usize>) -> Option<(ChunkHeader, Vec<u8>)> {
        let copy = self.0.values().find(|copy| copy.is_last && copy.range == range)?;
        Some((copy.header, copy.bytes.clone()))
    }

    /// Whether a window has events beyond those that are wanted.
    pub fn is_beyond(&self, header: &ChunkHeader) -> bool {
        let last = self.0.get(&header.thread).filter(|copy| copy.is_last);
        last.is_some_and(|copy| copy.header.sequence < header.sequence)
    }
}
