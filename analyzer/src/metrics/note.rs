//! What a reader should know about the figures of a selection, for whoever words it.

use trace_format::header::KeepingPolicy;

use super::FailedCalls;

/// Compute calls of a rank with numbers of operations that cannot be; they are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{calls} compute calls have impossible numbers of operations; they are not counted")]
pub struct ImpossibleWork {
    /// How many.
    pub calls: u64,
}

/// A remark on the figures.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// Ranks were recorded with different meanings of computation.
    ComputeModesDiffer {
        /// The one that is used.
        used: String,
        /// One of the others.
        other: String,
    },
    /// The ranks' meaning of computation is not known here; all time outside MPI is used.
    ComputeModeUnknown(String),
    /// Ranks that take no part in the selection.
    TakeNoPart {
        /// How many.
        ranks: usize,
        /// Of so many.
        of: usize,
        /// The first of them.
        first: u32,
    },
    /// Ranks have different numbers of occurrences of the selection.
    OccurrencesDiffer,
    /// Messages and communicators were not asked for.
    MessagesLeftOut,
    /// Some rank has several threads.
    SeveralThreads,
    /// Calls returned errors: these, most frequent first.
    CallsFailed(Vec<FailedCalls>),
    /// Something about messages, and how many of them.
    Messages(MessageNote, u64),
    /// Call sites in a module have no names.
    SitesWithoutNames {
        /// The module's path.
        module: String,
        /// Why.
        why: &'static str,
    },
    /// Calls are kept as totals, not one by one.
    KeptAsTotals {
        /// How many.
        calls: u64,
        /// Of so many.
        of: u64,
        /// What was to be kept.
        policy: KeepingPolicy,
        /// From when to when, global seconds.
        stretch_s: (f64, f64),
    },
    /// How the threads of ranks overlapped while only totals were kept is not known; the first such rank.
    ThreadsInTotals(u32),
    /// Computation is BLAS, and no BLAS call was seen.
    NoBlasSeen,
}

/// What there is to know about messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageNote {
    /// Messages of another size than their receive says.
    OfOtherSize,
    /// Messages that were longer than their receive's buffer.
    Truncated,
    /// Completed requests whose making is not recorded.
    RequestsUnknown,
    /// Collective calls on unknown communicators.
    CommunicatorsUnknown,
    /// Collective operations whose ranks called different functions.
    Mismatched,
    /// Collective operations that lack ranks.
    Incomplete,
    /// Messages that arrive before they are sent.
    Early,
    /// The same where several threads use one channel.
    EarlyAmbiguous,
}
