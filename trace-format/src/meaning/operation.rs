//! The effect of a call on messages, requests and collective operations.

use serde::{Deserialize, Serialize};

use super::class::{Class, collective_stem, is_access};
use super::synchronisation::{Synchronises, synchronises};
use crate::errors::ErrorClasses;
use crate::procedures::{Direction, Procedure};

/// What a call does to messages and collective operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Nothing relevant.
    Nothing,
    /// Sends and returns when the buffer may be used again.
    Send,
    /// Sends and makes a request.
    Isend,
    /// Makes a persistent request that sends.
    SendInit,
    /// Makes a partitioned request that sends.
    PartitionedSendInit,
    /// Receives.
    Receive,
    /// Posts a receive and makes a request.
    Ireceive,
    /// Makes a persistent request that receives.
    ReceiveInit,
    /// Makes a partitioned request that receives.
    PartitionedReceiveInit,
    /// Sends and receives.
    SendReceive,
    /// Sends and posts a receive, one request for both.
    IsendReceive,
    /// Finds a message that another call receives.
    Probe,
    /// Takes a message out of the queue, to be received by handle.
    MatchedProbe,
    /// Receives by a message handle.
    MatchedReceive,
    /// Like `MatchedReceive`, with a request.
    MatchedIreceive,
    /// Starts a persistent request.
    Start,
    /// Starts several persistent requests.
    Startall,
    /// Waits or tests for one request, or for any one of several.
    CompleteOne,
    /// Waits or tests for several requests.
    CompleteSeveral,
    /// Asks whether a request is complete, and leaves it as it is.
    RequestStatus,
    /// Requests the cancellation of a request.
    Cancel,
    /// Frees a request.
    FreeRequest,
    /// A blocking collective operation.
    Collective,
    /// A non-blocking collective operation.
    Icollective,
    /// Makes a persistent collective request.
    CollectiveInit,
    /// Not a collective operation according to MPI's chapters, but called by all members: making
    /// and freeing communicators, windows and files, fences, collective file access.
    Together,
    /// Reads or writes another rank's memory.
    Access,
    /// Reads or writes another rank's memory, with a request.
    AccessRequest,
    /// Begins, ends or waits for an epoch of one-sided communication among some ranks of a window.
    Epoch(EpochCall),
    /// Makes a request of another kind (for a file, a window, a duplicate of a communicator).
    OtherRequest,
}

/// Whether a send has to wait for its receiver (MPI 5.0, section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// Always: MPI_Ssend and its variants.
    Synchronous,
    /// Never: MPI_Bsend and its variants, and those of MPI_Rsend, whose receive is already posted.
    Local,
    /// Only if the library does not send the message eagerly.
    Standard,
}

impl SendMode {
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "MPI_Ssend" | "MPI_Issend" | "MPI_Ssend_init" => Self::Synchronous,
            "MPI_Bsend" | "MPI_Ibsend" | "MPI_Bsend_init" => Self::Local,
            "MPI_Rsend" | "MPI_Irsend" | "MPI_Rsend_init" => Self::Local,
            _ => Self::Standard,
        }
    }
}

/// What a call does to an epoch (MPI 5.0, section 12.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EpochCall {
    /// Begins an access epoch for a group (MPI_Win_start).
    Start,
    /// Ends it (MPI_Win_complete).
    Complete,
    /// Begins an exposure epoch for a group (MPI_Win_post).
    Post,
    /// Ends it (MPI_Win_wait, or MPI_Win_test if it succeeds).
    Wait,
    /// Locks one rank's memory.
    Lock,
    /// Locks all ranks' memory, shared.
    LockAll,
    /// Unlocks one rank's memory.
    Unlock,
    /// Unlocks all ranks' memory.
    UnlockAll,
    /// Completes accesses to one rank whose memory is locked.
    Flush,
    /// Completes accesses to all ranks whose memory is locked.
    FlushAll,
}

impl EpochCall {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "MPI_Win_start" => Self::Start,
            "MPI_Win_complete" => Self::Complete,
            "MPI_Win_post" => Self::Post,
            "MPI_Win_wait" | "MPI_Win_test" => Self::Wait,
            "MPI_Win_lock" => Self::Lock,
            "MPI_Win_lock_all" => Self::LockAll,
            "MPI_Win_unlock" => Self::Unlock,
            "MPI_Win_unlock_all" => Self::UnlockAll,
            "MPI_Win_flush" | "MPI_Win_flush_local" => Self::Flush,
            "MPI_Win_flush_all" | "MPI_Win_flush_local_all" => Self::FlushAll,
            _ => return None,
        })
    }
}

impl Operation {
    /// Whether a call that returned an error of that class, 0 none, did what it is for: its message was
    /// received and cut, or the collective operation ran. A refused call did nothing.
    pub fn took_place(self, error: u32, errors: Option<ErrorClasses>) -> bool {
        let collective = self == Self::Collective;
        let receives = matches!(self, Self::Receive | Self::SendReceive | Self::MatchedReceive);
        error == 0
            // What it completed it says itself.
            || matches!(self, Self::CompleteOne | Self::CompleteSeveral)
            || (collective || receives)
                && errors.is_some_and(|errors| errors.took_place(error, collective))
    }

    /// What a procedure does.
    pub(super) fn from_procedure(procedure: &Procedure, class: Class) -> Self {
        let name = procedure.name.as_str();
        let makes_request = || {
            let mut parameters = procedure.parameters.iter();
            parameters.any(|p| p.kind == "REQUEST" && p.direction == Direction::Out)
        };
        if let Some(epoch) = EpochCall::from_name(name) {
            return Self::Epoch(epoch);
        }
        match name {
            "MPI_Send" | "MPI_Bsend" | "MPI_Ssend" | "MPI_Rsend" => Self::Send,
            "MPI_Isend" | "MPI_Ibsend" | "MPI_Issend" | "MPI_Irsend" => Self::Isend,
            "MPI_Send_init" | "MPI_Bsend_init" | "MPI_Ssend_init" | "MPI_Rsend_init" => {
                Self::SendInit
            }
            "MPI_Psend_init" => Self::PartitionedSendInit,
            "MPI_Recv" => Self::Receive,
            "MPI_Irecv" => Self::Ireceive,
            "MPI_Recv_init" => Self::ReceiveInit,
            "MPI_Precv_init" => Self::PartitionedReceiveInit,
            "MPI_Sendrecv" | "MPI_Sendrecv_replace" => Self::SendReceive,
            "MPI_Isendrecv" | "MPI_Isendrecv_replace" => Self::IsendReceive,
            "MPI_Probe" | "MPI_Iprobe" => Self::Probe,
            "MPI_Mprobe" | "MPI_Improbe" => Self::MatchedProbe,
            "MPI_Mrecv" => Self::MatchedReceive,
            "MPI_Imrecv" => Self::MatchedIreceive,
            "MPI_Start" => Self::Start,
            "MPI_Startall" => Self::Startall,
            "MPI_Wait" | "MPI_Test" | "MPI_Waitany" | "MPI_Testany" => Self::CompleteOne,
            "MPI_Waitall" | "MPI_Testall" | "MPI_Waitsome" | "MPI_Testsome" => {
                Self::CompleteSeveral
            }
            "MPI_Request_get_status" => Self::RequestStatus,
            "MPI_Cancel" => Self::Cancel,
            "MPI_Request_free" => Self::FreeRequest,
            _ if class == Class::Collective => {
                if name.ends_with("_init") {
                    Self::CollectiveInit
                } else if makes_request() {
                    Self::Icollective
                } else {
                    Self::Collective
                }
            }
            _ if is_access(name) && makes_request() => Self::AccessRequest,
            _ if is_access(name) => Self::Access,
            _ if makes_request() => Self::OtherRequest,
            _ if synchronises(name, class) == Synchronises::All => Self::Together,
            _ => Self::Nothing,
        }
    }
}

/// Name of the blocking form: `MPI_Ibcast` and `MPI_Bcast_init` give `MPI_Bcast`. A name that is
/// not a collective operation is returned unchanged.
pub(super) fn blocking_form(name: &str) -> String {
    let Some(stem) = collective_stem(name) else { return name.to_owned() };
    let mut letters = stem.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("MPI_{first}{}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meaning::Meaning;

    #[test]
    fn operations_of_some_names() {
        for (name, expected) in [
            ("MPI_Ibarrier", Operation::Icollective),
            ("MPI_Barrier", Operation::Collective),
            ("MPI_Barrier_init", Operation::CollectiveInit),
            ("MPI_Comm_idup", Operation::OtherRequest),
            ("MPI_File_iwrite_all", Operation::OtherRequest),
            ("MPI_Rget", Operation::AccessRequest),
            ("MPI_Compare_and_swap", Operation::Access),
            ("MPI_Win_lock", Operation::Epoch(EpochCall::Lock)),
            ("MPI_Win_sync", Operation::Nothing),
            ("MPI_Grequest_start", Operation::OtherRequest),
            ("MPI_Request_get_status", Operation::RequestStatus),
            ("MPI_Comm_rank", Operation::Nothing),
            ("MPI_Iprobe", Operation::Probe),
            ("MPI_Win_fence", Operation::Together),
            ("MPI_Comm_dup", Operation::Together),
            ("MPI_File_write_all", Operation::Together),
            ("MPI_Comm_create_group", Operation::Nothing),
        ] {
            assert_eq!(Meaning::by_name(name).operation, expected, "{name}");
        }
    }

    #[test]
    fn every_form_of_a_collective_has_one_blocking_form() {
        for (name, form) in [
            ("MPI_Ialltoallw", "MPI_Alltoallw"),
            ("MPI_Allreduce_init", "MPI_Allreduce"),
            ("MPI_Ineighbor_allgather", "MPI_Neighbor_allgather"),
            ("MPI_Bcast", "MPI_Bcast"),
            ("MPI_Isend", "MPI_Isend"),
        ] {
            assert_eq!(blocking_form(name), form);
        }
    }
}
