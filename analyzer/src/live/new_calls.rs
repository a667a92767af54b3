//! The calls of a rank's first thread as they come, from its windows.

use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::Class;
use trace_format::reader::{LiveWindow, RankFile};

use super::seconds::is_mpi;
use crate::analysis::loop_calls::may_turn_a_loop;

/// A call, by its function and where the program makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol {
    pub function: u16,
    /// Return address; 0: unknown.
    pub address: u64,
    pub is_collective: bool,
}

/// A call that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewCall {
    /// `None` if loops are not recognised by it.
    pub symbol: Option<Symbol>,
    pub begin: u64,
    /// Ticks inside it.
    pub ticks: u64,
}

/// Reads each call of a thread once.
#[derive(Debug, Default)]
pub struct NewCalls {
    /// The window that was filled last time.
    newest: Option<u32>,
    /// Begin of the last call that was read.
    last_begin: u64,
    found: Vec<NewCall>,
    /// Whether calls came and went between two looks.
    missed: bool,
}

impl NewCalls {
    /// Reads what the windows of the thread, oldest first, have that was not read before. The last call may still
    /// change.
    pub fn read(&mut self, file: &RankFile, windows: &[&LiveWindow]) {
        let Some(newest) = windows.last().map(|window| window.sequence) else { return };
        if let Some(before) = self.newest.filter(|before| *before != newest) {
            self.missed |= windows.iter().all(|window| window.sequence != before);
        }
        self.newest = Some(newest);
        let mut events = windows.iter().flat_map(|window| window.changed_events()).peekable();
        while let Some(event) = events.next() {
            let (begin, function) = (event.head.begin(), event.head.function());
            if events.peek().is_none() {
                break;
            }
            if begin <= self.last_begin || event.head.is_open() || !is_mpi(file, function) {
                continue;
            }
            self.last_begin = begin;
            let meaning = file.meaning(function).filter(|of| may_turn_a_loop(of));
            let symbol = meaning.filter(|_| function >= FIRST_FUNCTION).map(|meaning| Symbol {
                function,
                address: event.head.site().map_or(0, |(address, _)| address),
                is_collective: meaning.class == Class::Collective,
            });
            let ticks = event.polls.map_or(event.end.saturating_sub(begin), |(_, ticks)| ticks);
            self.found.push(NewCall { symbol, begin, ticks });
        }
    }

    /// The calls since the last time; `None` if some were missed.
    pub fn take(&mut self) -> Option<Vec<NewCall>> {
        let found = std::mem::take(&mut self.found);
        (!std::mem::take(&mut self.missed)).then_some(found)
    }
}
