//! Kinds of waiting, and kinds of what cannot be explained.

use serde::{Deserialize, Serialize};

/// A kind of waiting, named as in Scalasca.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum State {
    /// A receive waits for the sender to enter its send.
    LateSender,
    /// The same, although a message that was sent earlier had arrived.
    LateSenderWrongOrder,
    /// A send waits for the receive to be posted.
    LateReceiver,
    /// A rank in a barrier waits for the last one to enter.
    WaitAtBarrier,
    /// A rank in an N-to-N operation such as MPI_Allreduce waits for the last one to enter.
    WaitAtNxn,
    /// A rank in a broadcast or scatter waits for the root.
    LateBroadcast,
    /// The root of a reduce or gather waits for the last sender.
    EarlyReduce,
    /// A rank in a scan waits for lower ranks.
    EarlyScan,
    /// A rank in a fence waits for the last one to enter.
    OneSided,
    /// MPI_Win_start or MPI_Win_complete waits for a target to call MPI_Win_post.
    LatePost,
    /// An access such as MPI_Put waits for its target to call MPI_Win_post.
    EarlyTransfer,
    /// MPI_Win_wait waits for the last origin to call MPI_Win_complete.
    EarlyWait,
    /// A call waits for another rank to unlock a window's memory.
    Lock,
    /// A message moved only when the partner's rank entered MPI again.
    LateProgress,
    /// From a rank's end to the end of the last rank.
    WaitAtFinalize,
    /// From the earliest begin of any rank to the rank's own.
    StartSkew,
    /// Polls, where it is not known what ended them.
    Polling,
    /// A call that had not returned when recording ended.
    OpenAtEnd,
}

impl State {
    /// Whether it lies before a rank's begin or after its end.
    pub fn is_at_the_ends(self) -> bool {
        matches!(self, Self::StartSkew | Self::WaitAtFinalize)
    }

    /// Its name in JSON and CSV; waits for posts, completes and fences share one.
    pub fn key(self) -> &'static str {
        match self {
            Self::LateSender => "late_sender",
            Self::LateSenderWrongOrder => "late_sender_wrong_order",
            Self::LateReceiver => "late_receiver",
            Self::WaitAtBarrier => "wait_at_barrier",
            Self::WaitAtNxn => "wait_at_nxn",
            Self::LateBroadcast => "late_broadcast",
            Self::EarlyReduce => "early_reduce",
            Self::EarlyScan => "early_scan",
            Self::OneSided | Self::LatePost | Self::EarlyTransfer | Self::EarlyWait => "one_sided",
            Self::Lock => "lock",
            Self::LateProgress => "late_progress",
            Self::WaitAtFinalize => "wait_at_finalize",
            Self::StartSkew => "start_skew",
            Self::Polling => "polling",
            Self::OpenAtEnd => "open_at_end",
        }
    }

    /// Its name on screens.
    pub fn name(self) -> &'static str {
        match self {
            Self::LateSender => "late sender",
            Self::LateSenderWrongOrder => "late sender, wrong order",
            Self::LateReceiver => "late receiver",
            Self::WaitAtBarrier => "wait at barrier",
            Self::WaitAtNxn => "wait at N x N",
            Self::LateBroadcast => "late broadcast",
            Self::EarlyReduce => "early reduce",
            Self::EarlyScan => "early scan",
            Self::OneSided => "wait at fence",
            Self::LatePost => "late post",
            Self::EarlyTransfer => "early transfer",
            Self::EarlyWait => "early wait",
            Self::Lock => "wait for lock",
            Self::LateProgress => "late progress",
            Self::WaitAtFinalize => "wait at finalize",
            Self::StartSkew => "start skew",
            Self::Polling => "polling",
            Self::OpenAtEnd => "open at the end",
        }
    }
}

/// What the analysis cannot explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// No rank recorded the arguments of its calls.
    NoAttributes,
    /// Some ranks have no file.
    MissingRanks,
    /// Clocks are not aligned: waits between hosts are uncertain.
    Unaligned,
    /// Collective operations with missing members.
    IncompleteCollectives(u64),
    /// Neighbourhood collectives of ranks whose neighbours are not known.
    Neighbourhoods(u64),
    /// Conditions fulfilled after the call had returned.
    Violations(u64),
    /// Waits that are only counted, because the run has too many: their sum, and a length that none of them reaches.
    Short {
        /// Number of waits.
        count: u64,
        /// At most their sum, ns.
        sum_ns: u64,
        below_ns: u64,
    },
    /// Whether messages were received in the wrong order, because there are too many.
    WrongOrder,
    /// Waits whose delays were not searched because the interval is too long.
    TooLong(u64),
    /// Waits whose order contradicts the clocks.
    Cut(u64),
    /// Calls for which only totals were kept.
    Totals,
    /// Calls of one-sided communication whose partners are not known.
    OneSided(u64),
    /// Objects made by a subset of a communicator's ranks.
    MadeByGroup,
}
