//! When a call has to wait, as the name of its function determines.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::Meaning;

use crate::trace::Run;

/// Whether a send has to wait for its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// Always: MPI_Ssend and its variants.
    Synchronous,
    /// Never: MPI_Bsend and its variants, and those of MPI_Rsend, whose receive is already posted.
    Local,
    /// Only if the library does not send the message eagerly.
    Standard,
}

/// How many of its conditions a call needs to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CallKind {
    /// All.
    All,
    /// One: MPI_Waitany, MPI_Waitsome.
    Any,
    /// All; the call may end a run of polls.
    PollAll,
    /// One; the call may end a run of polls.
    PollAny,
}

impl CallKind {
    /// Whether it needs all of its conditions.
    pub fn needs_all(self) -> bool {
        matches!(self, Self::All | Self::PollAll)
    }

    /// Whether the call may end a run of polls.
    pub fn may_end_polls(self) -> bool {
        matches!(self, Self::PollAll | Self::PollAny)
    }
}

/// When calls of a function have to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Semantics {
    pub send_mode: SendMode,
    pub call: CallKind,
}

/// The semantics of all functions of all ranks.
#[derive(Debug)]
pub(crate) struct CallSemantics(Vec<Arc<Vec<Semantics>>>);

impl CallSemantics {
    /// The functions of a run.
    pub fn new(run: &Run) -> Self {
        Self(run.of_functions(|names| names.iter().map(|name| semantics(name)).collect()))
    }

    /// The semantics of a function on the rank at a position.
    #[inline]
    pub fn of(&self, rank: usize, function: u16) -> Semantics {
        let index = usize::from(function.wrapping_sub(FIRST_FUNCTION));
        let found = self.0[rank].get(index);
        let unknown = Semantics { send_mode: SendMode::Standard, call: CallKind::All };
        found.copied().unwrap_or(unknown)
    }
}

fn semantics(name: &str) -> Semantics {
    let meaning = Meaning::of(name);
    let mode = meaning.name.trim_start_matches("MPI_").trim_start_matches('I');
    let send_mode = match mode.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("ss") => SendMode::Synchronous,
        Some("bs" | "rs") => SendMode::Local,
        _ => SendMode::Standard,
    };
    let call = match meaning.name.as_str() {
        "MPI_Waitany" | "MPI_Waitsome" => CallKind::Any,
        "MPI_Test" | "MPI_Testall" | "MPI_Win_test" => CallKind::PollAll,
        _ if meaning.polls => CallKind::PollAny,
        _ => CallKind::All,
    };
    Semantics { send_mode, call }
}
