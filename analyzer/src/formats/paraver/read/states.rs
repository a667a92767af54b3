//! Finds from a thread's states where it does not compute outside its calls.
//!
//! Most states say again what the calls say. What is left is time that the tool does not count as
//! computing (tracing switched off, I/O, fork and join), and when a process begins and ends.

use std::collections::{BTreeMap, VecDeque};

use trace_format::markers::ToolReason;

use crate::formats::paraver::names::{NOT_CREATED, NOT_TRACING, RUNNING};

/// A stretch of a thread that is no computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    begin: u64,
    end: u64,
    state: u32,
}

/// States of one thread that may lie outside its calls.
#[derive(Debug, Default)]
pub struct States {
    pending: VecDeque<Stretch>,
}

/// Ticks by state that lie outside calls.
pub type Outside = BTreeMap<u32, u64>;

impl States {
    /// Takes the next state of a thread, in order of time.
    pub fn add(&mut self, (begin, end): (u64, u64), state: u32) {
        if state != RUNNING && state != NOT_CREATED && begin < end {
            self.pending.push_back(Stretch { begin, end, state });
        }
    }

    /// States that began inside a call that has ended are the call's own.
    pub fn call_ended(&mut self, end: u64) {
        while self.pending.front().is_some_and(|state| state.begin < end) {
            self.pending.pop_front();
        }
    }

    /// The next stretch that begins before something else of the thread does, cut where that begins.
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

/// When a process lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Life {
    begin: Option<u64>,
    end: u64,
}

impl Life {
    /// A state of the process' first thread.
    pub fn state(&mut self, (begin, end): (u64, u64), state: u32) {
        if state != NOT_CREATED && begin < end {
            self.begin = Some(self.begin.map_or(begin, |first| first.min(begin)));
            self.end = self.end.max(end);
        }
    }

    /// Begin and end, where states say so.
    pub fn known(self) -> Option<(u64, u64)> {
        Some((self.begin?, self.end))
    }
}
