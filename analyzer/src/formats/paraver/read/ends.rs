//! Collects the ends of messages, sorted by the calls that they belong to.
//!
//! Extrae sorts a communication record by its *physical* send: it comes after the end of a blocking
//! send's call, and before or after the receive. Therefore the file is read twice: first these
//! records, which are sorted by the beginning of the call that they belong to, then the calls.

use std::collections::VecDeque;
use std::io;
use std::iter::Peekable;
use std::path::Path;

use trace_format::plain::Plain;

use crate::spill::{Merge, Record, Sorted, Spill};

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Time within the call at which the message is sent or the receive is posted, ticks.
    pub at: u64,
    /// Number of the record in the file.
    pub number: u64,
    /// Time of completion, ticks.
    pub complete: u64,
    /// Size.
    pub bytes: u64,
    /// Task and thread of this end, from 0 on.
    pub task: u32,
    /// See `task`.
    pub thread: u32,
    /// Task of the other end.
    pub peer: u32,
    pub tag: i32,
}
// SAFETY: repr(C), integers only, four of 8 bytes and then four of 4: no padding.
unsafe impl Plain for End {}

impl Record for End {
    type Key = (u64, u64);
    fn key(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

/// The ends of all messages found so far.
#[derive(Debug)]
pub struct FoundEnds {
    pub sends: Spill<End>,
    pub receives: Spill<End>,
}

impl FoundEnds {
    /// Empty; what does not fit into memory goes to files in `scratch`.
    pub fn new(scratch: &Path) -> Self {
        Self { sends: Spill::new(scratch), receives: Spill::new(scratch) }
    }

    /// All ends in order.
    pub fn sorted(self) -> io::Result<(Sorted<End>, Sorted<End>)> {
        Ok((self.sends.sorted()?, self.receives.sorted()?))
    }
}

/// Iterates over ends in order of time.
pub struct Ahead<'a>(Peekable<Merge<'a, End>>);

impl<'a> Ahead<'a> {
    /// All ends of a kind.
    pub fn new(ends: &'a Sorted<End>) -> Self {
        Self(ends.iter().peekable())
    }

    /// The next end that is not later than a time.
    pub fn next_until(&mut self, at: u64) -> io::Result<Option<End>> {
        self.0.next_if(|end| end.as_ref().map_or(true, |end| end.at <= at)).transpose()
    }
}

/// Ends of one kind and thread in order of time that no call has taken yet.
#[derive(Debug, Default)]
pub struct Queue {
    ends: VecDeque<End>,
    /// Number of ends that no call took.
    pub left: u64,
}

impl Queue {
    /// Adds an end, not earlier than those before it.
    pub fn add(&mut self, end: End) {
        self.ends.push_back(end);
    }

    /// Discards ends before a time: no later call can take them.
    pub fn discard_before(&mut self, at: u64) {
        while self.ends.front().is_some_and(|end| end.at < at) {
            self.ends.pop_front();
            self.left += 1;
        }
    }

    /// Takes the first end within a call. An end exactly at the call's end belongs to the call only
    /// if `at_end`; otherwise it belongs to the next call, which begins there.
    pub fn take(&mut self, (begin, end): (u64, u64), at_end: bool) -> Option<End> {
        self.discard_before(begin);
        let inside =
            |first: &&End| first.at < end || first.at == begin || at_end && first.at == end;
        self.ends.front().filter(inside)?;
        self.ends.pop_front()
    }

    /// Number of ends that no call took, including those still in the queue.
    pub fn leftover(&self) -> u64 {
        self.left + self.ends.len() as u64
    }
}
