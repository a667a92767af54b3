//! What a function's name says of waiting.

use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::Meaning;

use crate::trace::Run;

/// When a send needs its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    /// MPI_Ssend and kin: always.
    Synchronous,
    /// MPI_Bsend and kin, and MPI_Rsend, whose receive is posted already: never.
    Never,
    /// If the library takes the message only then.
    Standard,
}

/// How many of its conditions a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// All.
    All,
    /// One: MPI_Waitany, MPI_Waitsome.
    Any,
    /// One or all, at the end of polls.
    Poll,
}

/// What a function's name says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub sending: Sending,
    pub call: CallKind,
}

/// Of all functions of all ranks.
#[derive(Debug)]
pub(crate) struct Manners(Vec<Vec<Manner>>);

impl Manners {
    /// Of a run.
    pub fn new(run: &Run) -> Self {
        let of_names = |names: &[String]| names.iter().map(|name| manner(name)).collect();
        Self(run.ranks.iter().map(|trace| of_names(trace.file.function_names())).collect())
    }

    /// Of a function of the rank at a position.
    #[inline]
    pub fn of(&self, rank: usize, function: u16) -> Manner {
        let index = usize::from(function.wrapping_sub(FIRST_FUNCTION));
        let found = self.0[rank].get(index);
        let unknown = Manner { sending: Sending::Standard, call: CallKind::All };
        found.copied().unwrap_or(unknown)
    }
}

fn manner(name: &str) -> Manner {
    let meaning = Meaning::of(name);
    let mode = meaning.name.trim_start_matches("MPI_").trim_start_matches('I');
    let sending = match mode.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("ss") => Sending::Synchronous,
        Some("bs" | "rs") => Sending::Never,
        _ => Sending::Standard,
    };
    let call = match meaning.name.as_str() {
        "MPI_Waitany" | "MPI_Waitsome" => CallKind::Any,
        _ if meaning.polls => CallKind::Poll,
        _ => CallKind::All,
    };
    Manner { sending, call }
}
