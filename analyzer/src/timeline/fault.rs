//! Faults in a rank's stretch and clock, and notes on the times of a run.

use super::exchange::ExchangeFault;

/// A fault in a rank's stretch or clock exchanges.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum TimeFault {
    /// The rank's begin is not recorded.
    #[error("it does not record when MPI_Init returned; the first event is taken instead")]
    NoBegin,
    /// Events before MPI_Finalize are damaged.
    #[error(
        "events are missing before MPI_Finalize; the rank's figures end at the last event that is valid"
    )]
    EventsMissing,
    /// The clock exchanges cannot be used.
    #[error(transparent)]
    Exchange(#[from] ExchangeFault),
}

/// Ranks that a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotedRanks {
    /// Lowest of them.
    pub first: u32,
    /// Number of ranks.
    pub count: usize,
}

impl NotedRanks {
    pub(super) fn from_ranks(ranks: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut ranks = ranks.into_iter();
        let first = ranks.next()?;
        Some(Self { first, count: 1 + ranks.count() })
    }
}

/// What a reader should know about the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeNote {
    /// Clocks that were never measured are assumed to be those of other ranks of the host.
    AssumedShared(NotedRanks),
    /// Clocks that were never compared; their offsets are estimated from messages
    /// ([`super::GlobalTimeline::estimate`]).
    Estimated(NotedRanks),
    /// No messages went both ways between the hosts of these ranks and those whose clocks are known,
    /// so that their offsets cannot be estimated.
    Unconnected(NotedRanks),
    /// What messages say about the offsets of these ranks contradicts itself.
    Contradictory(NotedRanks),
    /// Clocks that are not aligned; these ranks are placed by the system's wall clock.
    Unaligned(NotedRanks),
    /// Frequencies of counters are estimated.
    GuessedFrequency(NotedRanks),
    /// The ranks' stretches are the lives of their processes
    /// ([`ElapsedScope::Process`](super::global::ElapsedScope::Process)).
    WholeProcess,
    /// The trace does not record when these processes began; the begin of MPI_Init is taken
    /// instead.
    ProcessBeginUnknown(NotedRanks),
}
