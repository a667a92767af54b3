//! What each function means for matching: a file's function names come in, one [`Operation`] a
//! function goes out.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use trace_format::errors::ErrorClasses;
use trace_format::functions::{Class, class_of};
use trace_format::layout::{DURATION_ESCAPE, FIRST_FUNCTION, Slot};
use trace_format::procedures::{self, Direction};
use trace_format::reader::RankFile;

/// What a call does, as far as messages and collective operations are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Nothing of interest.
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
    /// Takes a message out of the queue, to be received by its handle.
    MatchedProbe,
    /// Receives by a message handle.
    MatchedReceive,
    /// As `MatchedReceive`, with a request.
    MatchedIreceive,
    /// Starts a persistent request.
    Start,
    /// Starts several.
    Startall,
    /// Waits or tests for one request, or finds one of several.
    CompleteOne,
    /// Waits or tests for several requests.
    CompleteSeveral,
    /// Asks for a request to be cancelled.
    Cancel,
    /// Frees a request.
    FreeRequest,
    /// A blocking collective operation.
    Collective,
    /// A non-blocking collective operation.
    Icollective,
    /// Makes a persistent collective request.
    CollectiveInit,
    /// Makes a request of another kind (a file, a window, a duplicate of a communicator).
    OtherRequest,
}

impl Operation {
    /// Whether a call that returned an error of that class, 0 none, did what it is for: its message was
    /// received and cut, or the collective operation ran. A refused call did nothing.
    pub(crate) fn took_place(self, error: u32, errors: Option<ErrorClasses>) -> bool {
        let collective = self == Self::Collective;
        let receives = matches!(self, Self::Receive | Self::SendReceive | Self::MatchedReceive);
        error == 0
            // What it completed it says itself.
            || matches!(self, Self::CompleteOne | Self::CompleteSeveral)
            || (collective || receives)
                && errors.is_some_and(|errors| errors.took_place(error, collective))
    }
}

/// Name of the blocking form of a collective operation: `MPI_Ibcast` and `MPI_Bcast_init` give
/// `MPI_Bcast`.
pub(crate) fn collective_base(name: &str) -> String {
    let stem = name.strip_prefix("MPI_").unwrap_or(name);
    let stem = stem.strip_suffix("_init").unwrap_or(stem);
    if let Some(rest) = stem.strip_prefix('I') {
        let mut letters = rest.chars();
        let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
        let blocking = format!("MPI_{first}{}", letters.as_str());
        if class_of(&blocking) == Class::Collective {
            return blocking;
        }
    }
    format!("MPI_{stem}")
}

fn makes_request(name: &str) -> bool {
    static MAKERS: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let makes = |p: &procedures::Procedure| {
            let mut parameters = p.parameters.iter();
            parameters.any(|p| p.kind == "REQUEST" && p.direction == Direction::Out)
        };
        procedures::all().into_iter().filter(makes).map(|procedure| procedure.name).collect()
    });
    MAKERS.contains(name)
}

/// What a function does, by its name.
pub(crate) fn operation(name: &str) -> Operation {
    match name {
        "MPI_Send" | "MPI_Bsend" | "MPI_Ssend" | "MPI_Rsend" => Operation::Send,
        "MPI_Isend" | "MPI_Ibsend" | "MPI_Issend" | "MPI_Irsend" => Operation::Isend,
        "MPI_Send_init" | "MPI_Bsend_init" | "MPI_Ssend_init" | "MPI_Rsend_init" => {
            Operation::SendInit
        }
        "MPI_Psend_init" => Operation::PartitionedSendInit,
        "MPI_Recv" => Operation::Receive,
        "MPI_Irecv" => Operation::Ireceive,
        "MPI_Recv_init" => Operation::ReceiveInit,
        "MPI_Precv_init" => Operation::PartitionedReceiveInit,
        "MPI_Sendrecv" | "MPI_Sendrecv_replace" => Operation::SendReceive,
        "MPI_Isendrecv" | "MPI_Isendrecv_replace" => Operation::IsendReceive,
        "MPI_Mprobe" | "MPI_Improbe" => Operation::MatchedProbe,
        "MPI_Mrecv" => Operation::MatchedReceive,
        "MPI_Imrecv" => Operation::MatchedIreceive,
        "MPI_Start" => Operation::Start,
        "MPI_Startall" => Operation::Startall,
        "MPI_Wait" | "MPI_Test" | "MPI_Waitany" | "MPI_Testany" => Operation::CompleteOne,
        "MPI_Waitall" | "MPI_Testall" | "MPI_Waitsome" | "MPI_Testsome" => {
            Operation::CompleteSeveral
        }
        "MPI_Cancel" => Operation::Cancel,
        "MPI_Request_free" => Operation::FreeRequest,
        _ if class_of(name) == Class::Collective => {
            if name.ends_with("_init") {
                Operation::CollectiveInit
            } else if makes_request(name) {
                Operation::Icollective
            } else {
                Operation::Collective
            }
        }
        _ if makes_request(name) => Operation::OtherRequest,
        _ => Operation::Nothing,
    }
}

/// Names of collective operations, numbered alike for all files of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct CollectiveNames {
    numbers: HashMap<String, u16>,
    names: Vec<String>,
}

impl CollectiveNames {
    fn number(&mut self, name: &str) -> u16 {
        let base = collective_base(name);
        let next = self.names.len() as u16;
        *self.numbers.entry(base).or_insert_with_key(|base| {
            self.names.push(base.clone());
            next
        })
    }

    /// The blocking form's name.
    pub fn name(&self, number: u16) -> &str {
        self.names.get(usize::from(number)).map_or("?", String::as_str)
    }
}

/// The operations of a file's functions.
#[derive(Debug, Clone)]
pub(super) struct Operations {
    /// By function number; with the number of a collective operation's name.
    table: Vec<(Operation, u16)>,
}

impl Operations {
    /// Of a file's table of names.
    pub fn new(file: &RankFile, names: &mut CollectiveNames) -> Self {
        let table = file.function_names().iter().map(|name| {
            let operation = operation(name);
            let number = match operation {
                Operation::Collective | Operation::Icollective | Operation::CollectiveInit => {
                    names.number(name)
                }
                _ => 0,
            };
            (operation, number)
        });
        Self { table: table.collect() }
    }

    /// Whether an event with that slot says anything to matching; runs of polls where they are asked for.
    #[inline]
    pub fn of_interest(&self, slot: &Slot, polls: bool) -> bool {
        let function = slot.function();
        function >= FIRST_FUNCTION
            && (self.of(function).0 != Operation::Nothing
                || polls && slot.duration() == DURATION_ESCAPE)
    }

    /// What a function does, and the number of a collective operation's name.
    #[inline]
    pub fn of(&self, function: u16) -> (Operation, u16) {
        let index = usize::from(function.wrapping_sub(FIRST_FUNCTION));
        self.table.get(index).copied().unwrap_or((Operation::Nothing, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_some_names() {
        for (name, expected) in [
            ("MPI_Ibarrier", Operation::Icollective),
            ("MPI_Barrier", Operation::Collective),
            ("MPI_Barrier_init", Operation::CollectiveInit),
            ("MPI_Comm_idup", Operation::OtherRequest),
            ("MPI_File_iwrite_all", Operation::OtherRequest),
            ("MPI_Rget", Operation::OtherRequest),
            ("MPI_Grequest_start", Operation::OtherRequest),
            ("MPI_Request_get_status", Operation::Nothing),
            ("MPI_Comm_rank", Operation::Nothing),
            ("MPI_Iprobe", Operation::Nothing),
        ] {
            assert_eq!(operation(name), expected, "{name}");
        }
    }

    #[test]
    fn every_form_of_a_collective_has_one_base() {
        for (name, base) in [
            ("MPI_Ialltoallw", "MPI_Alltoallw"),
            ("MPI_Allreduce_init", "MPI_Allreduce"),
            ("MPI_Ineighbor_allgather", "MPI_Neighbor_allgather"),
            ("MPI_Bcast", "MPI_Bcast"),
        ] {
            assert_eq!(collective_base(name), base);
        }
    }
}
