//! Collects the ends of messages, sorted by the call of each thread in which they lie.
//!
//! A communication record stands where its *physical* send is (Extrae sorts by it): behind the end of a
//! blocking send's call, and before or behind the receive. So the file is read twice: first for these
//! records, which are sorted by the begin of the call that they belong to, then for the calls.

use std::collections::VecDeque;
use std::io;
use std::iter::Peekable;
use std::path::Path;

use trace_format::plain::Plain;

use crate::spill::{Merge, Record, Sorted, Spill};

/// One end of a message.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Where the message is handed over, or the receive is posted: within the call, ticks.
    pub at: u64,
    /// Which record of the file it is.
    pub number: u64,
    /// Where the end is complete, ticks.
    pub complete: u64,
    /// Size.
    pub bytes: u64,
    /// Whose end it is: task and thread, from 0 on.
    pub task: u32,
    /// See `task`.
    pub thread: u32,
    /// Task of the other end.
    pub peer: u32,
    /// Tag.
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

/// The ends of all messages as they are found.
#[derive(Debug)]
pub struct FoundEnds {
    /// Sending ends.
    pub sends: Spill<End>,
    /// Receiving ends.
    pub receives: Spill<End>,
}

impl FoundEnds {
    /// None yet; what memory does not hold goes to a directory.
    pub fn new(scratch: &Path) -> Self {
        Self { sends: Spill::new(scratch), receives: Spill::new(scratch) }
    }

    /// All of them in order.
    ///
    /// # Errors
    /// The file for what memory does not hold cannot be written.
    pub fn sorted(self) -> io::Result<(Sorted<End>, Sorted<End>)> {
        Ok((self.sends.sorted()?, self.receives.sorted()?))
    }
}

/// Ends in order of time, as far as they have been asked for.
pub struct Ahead<'a>(Peekable<Merge<'a, End>>);

impl<'a> Ahead<'a> {
    /// All ends of a kind.
    pub fn new(ends: &'a Sorted<End>) -> Self {
        Self(ends.iter().peekable())
    }

    /// The next end that is not later than a time.
    ///
    /// # Errors
    /// What memory does not hold cannot be read.
    pub fn next_until(&mut self, at: u64) -> io::Result<Option<End>> {
        self.0.next_if(|end| end.as_ref().map_or(true, |end| end.at <= at)).transpose()
    }
}

/// Ends of one kind of one thread, in order of time, that no call has taken.
#[derive(Debug, Default)]
pub struct Queue {
    ends: VecDeque<End>,
    /// Ends that no call took.
    pub left: u64,
}

impl Queue {
    /// Adds an end; not earlier than those before it.
    pub fn add(&mut self, end: End) {
        self.ends.push_back(end);
    }

    /// Gives up ends that lie before a time: no call will take them any more.
    pub fn pass(&mut self, at: u64) {
        while self.ends.front().is_some_and(|end| end.at < at) {
            self.ends.pop_front();
            self.left += 1;
        }
    }

    /// The first end that lies in a call. One at the very end of the call belongs to it only where that may
    /// be: else it is the next call's, which begins there.
    pub fn take(&mut self, (begin, end): (u64, u64), at_end: bool) -> Option<End> {
        self.pass(begin);
        let inside =
            |first: &&End| first.at < end || first.at == begin || at_end && first.at == end;
        self.ends.front().filter(inside)?;
        self.ends.pop_front()
    }

    /// Ends that no call took, with those that are still there.
    pub fn leftover(&self) -> u64 {
        self.left + self.ends.len() as u64
    }
}
