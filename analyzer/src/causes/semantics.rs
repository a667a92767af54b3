//! When a call has to wait, according to the meaning of its function.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::{Meaning, SendMode};

use crate::trace::Run;

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
        Self(run.of_functions(|names| {
            names.iter().map(|name| semantics(Meaning::by_name(name))).collect()
        }))
    }

    /// The semantics of a function on the rank at a position.
    #[inline]
    pub fn get(&self, rank: usize, function: u16) -> Semantics {
        let index = usize::from(function.wrapping_sub(FIRST_FUNCTION));
        let found = self.0[rank].get(index);
        let unknown = Semantics { send_mode: SendMode::Standard, call: CallKind::All };
        found.copied().unwrap_or(unknown)
    }
}

fn semantics(meaning: &Meaning) -> Semantics {
    let call = match (meaning.polls, meaning.needs_all) {
        (false, true) => CallKind::All,
        (false, false) => CallKind::Any,
        (true, true) => CallKind::PollAll,
        (true, false) => CallKind::PollAny,
    };
    Semantics { send_mode: meaning.send_mode, call }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_any_or_all_conditions() {
        for (kind, names) in [
            (CallKind::All, "MPI_Wait MPI_Waitall MPI_Recv MPI_Win_wait MPI_Probe MPI_Startall"),
            (CallKind::Any, "MPI_Waitany MPI_Waitsome"),
            (CallKind::PollAll, "MPI_Test MPI_Testall MPI_Win_test"),
            (CallKind::PollAny, "MPI_Testany MPI_Testsome MPI_Iprobe MPI_Improbe MPI_Parrived"),
            (CallKind::PollAny, "MPI_Request_get_status"),
        ] {
            for name in names.split(' ') {
                assert_eq!(semantics(Meaning::by_name(name)).call, kind, "{name}");
            }
        }
    }
}
