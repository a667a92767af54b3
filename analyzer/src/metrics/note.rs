//! Remarks on the figures of a selection, without their wording; `present` words them.

use serde::Serialize;

use trace_format::header::KeepingPolicy;

use super::memory::Grown;

/// Compute calls of a rank with impossible numbers of operations; they are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{calls} compute calls have impossible numbers of operations; they are not counted")]
pub struct ImpossibleWork {
    /// Number of calls.
    pub calls: u64,
}

/// A remark on the figures.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// Ranks were recorded with different compute modes.
    ComputeModesDiffer {
        /// The mode in use.
        used: String,
        other: String,
    },
    /// The ranks' compute mode is unknown; all time outside MPI counts as computation.
    ComputeModeUnknown(String),
    /// Ranks that do not take part in the selection.
    NotParticipating {
        ranks: usize,
        /// Number of all ranks.
        of: usize,
        first: u32,
    },
    /// Ranks have different numbers of occurrences of the selection.
    OccurrencesDiffer,
    MessagesNotRequested,
    /// Some rank has several threads.
    SeveralThreads,
    /// Calls that returned errors, most frequent first.
    CallsFailed(Vec<FailedCalls>),
    /// A remark on messages, and how many it concerns.
    Messages(MessageNote, u64),
    /// Call sites in a module have no names.
    SitesWithoutNames {
        /// The module's path.
        module: String,
        /// The reason.
        why: &'static str,
    },
    /// Why the code of ranks was not sampled although that was asked for, and of how many.
    CodeNotSampled {
        why: String,
        ranks: usize,
    },
    /// Code was sampled at the kernel's ticks.
    CodeSampledAtTicks,
    /// Some calls were kept only as totals.
    KeptAsTotals {
        /// Number of these calls.
        calls: u64,
        /// Number of all calls.
        of: u64,
        /// Which events were to be kept.
        policy: KeepingPolicy,
        /// Start and end of the stretch that the totals cover, global seconds.
        stretch_s: (f64, f64),
    },
    /// While only totals were kept, the overlap of a rank's threads is unknown; holds the first
    /// such rank.
    ThreadsInTotals(u32),
    /// Computation means BLAS calls, but none was seen.
    NoBlasSeen,
    /// One rank's memory grew far more than that of the others.
    MemoryGrew(Grown),
}

/// The kinds of remarks on messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageNote {
    /// Messages whose size differs from what their receive recorded.
    SizeMismatch,
    /// Messages that were longer than their receive's buffer.
    Truncated,
    /// Completed requests whose creation was not recorded.
    RequestsUnknown,
    /// Collective calls on unknown communicators.
    CommunicatorsUnknown,
    /// Collective operations whose ranks called different functions.
    Mismatched,
    /// Collective operations that lack ranks.
    Incomplete,
    /// Messages that arrive before they are sent.
    Early,
    /// Early messages where several threads share a channel.
    EarlyAmbiguous,
}

/// Calls of one function that returned one class of error, over all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailedCalls {
    /// Name of the function.
    pub function: String,
    /// Name of the error class, or its number where it has no known name.
    pub error: String,
    /// Calls that began in the selection.
    pub count: u64,
}
