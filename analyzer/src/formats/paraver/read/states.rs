//! Finds the time outside a thread's calls in which it does not compute, from its states.
//!
//! Most states repeat the calls. The others give time that the tool does not count as computing
//! (tracing switched off, I/O, fork and join), and the beginning and end of a process.

use std::collections::{BTreeMap, VecDeque};

use trace_format::markers::ToolReason;

use crate::formats::paraver::names::{NOT_CREATED, NOT_TRACING, RUNNING};

/// A stretch of a thread that is not computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    begin: u64,
    end: u64,
    state: u32,
}

/// States of one thread that may be outside its calls.
#[derive(Debug, Default)]
pub struct States {
    pending: VecDeque<Stretch>,
}

/// Ticks outside calls, by state.
pub type Outside = BTreeMap<u32, u64>;

impl States {
    /// Adds the next state of a thread, in order of time.
    pub fn add(&mut self, (begin, end): (u64, u64), state: u32) {
        if state != RUNNING && state != NOT_CREATED && begin < end {
            self.pending.push_back(Stretch { begin, end, state });
        }
    }

    /// Drops states that began inside a call that has ended: they belong to the call.
    pub fn call_ended(&mut self, end: u64) {
        while self.pending.front().is_some_and(|state| state.begin < end) {
            self.pending.pop_front();
        }
    }

    /// The next stretch that begins before the thread's next event, cut off at that event.
    pub fn before(&mut self, at: u64, outside: &mut Outside) -> Option<(ToolReason, (u64, u64))> {
        self.pending.front().filter(|state| state.begin < at)?;
        let Stretch { begin, end, state } = self.pending.pop_front()?;
        let end = end.min(at);
        *outside.entry(state).or_default() += end - begin;
        let reason = match state {
            NOT_TRACING => ToolReason::Paused,
            _ => ToolReason::NotComputing,
        };
        Some((reason, (begin, end)))
    }
}

/// Lifetime of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Life {
    begin: Option<u64>,
    end: u64,
}

impl Life {
    /// Adds a state of the process's first thread.
    pub fn state(&mut self, (begin, end): (u64, u64), state: u32) {
        if state != NOT_CREATED && begin < end {
            self.begin = Some(self.begin.map_or(begin, |first| first.min(begin)));
            self.end = self.end.max(end);
        }
    }

    /// Beginning and end, if the states contain them.
    pub fn known(self) -> Option<(u64, u64)> {
        Some((self.begin?, self.end))
    }
}
