//! Calls that return errors.

use super::*;
use crate::synthetic_messages::Attributes;
use trace_format::errors::ErrorClasses;

const TYPE: u32 = 3;
const CLASSES: ErrorClasses = ErrorClasses::OPEN_MPI;

#[test]
fn refused_calls_take_no_part() {
    let [mut a, mut b] = world();
    a.failed_call_with("MPI_Send", (at(10), at(11)), on_world(1, 5, 100), TYPE);
    a.call_with("MPI_Send", at(20), at(21), on_world(1, 5, 64));
    b.failed_call_with("MPI_Recv", (at(10), at(11)), on_world(0, 5, 64), TYPE);
    b.call_with("MPI_Recv", at(20), at(25), on_world(0, 5, 64));
    let sum = Attributes { communicator: 1, ..Attributes::default() };
    b.failed_call_with("MPI_Reduce", (at(30), at(31)), sum, TYPE);
    a.call_with("MPI_Allreduce", at(40), at(45), sum);
    b.call_with("MPI_Allreduce", at(40), at(45), sum);
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 20, 1, 20)]);
    assert_eq!(found.alone(), []);
    assert_eq!((summary.complete_instances, summary.incomplete_instances), (1, 0));
    assert_eq!(summary.mismatched_instances, 0);
}

#[test]
fn truncated_messages_are_matched() {
    let [mut a, mut b] = world();
    for (tag, begin) in [(1, 10), (2, 20), (3, 30)] {
        a.call_with("MPI_Send", at(begin), at(begin + 1), on_world(1, tag, 64));
    }
    b.failed_call_with("MPI_Recv", (at(10), at(12)), on_world(0, 1, 64), CLASSES.truncate);
    b.call_with("MPI_Irecv", at(13), at(14), on_world(0, 2, 8).request(7));
    b.failed_call_with("MPI_Wait", (at(20), at(25)), completed(7, 0, 2, 64), CLASSES.truncate);
    // For a wildcard receive, the status tells the channel.
    b.irecv_any(at(26), 8);
    b.failed_call_with("MPI_Waitall", (at(30), at(35)), Attributes::default(), CLASSES.in_status);
    b.request_failed(completed(8, 0, 3, 8), CLASSES.truncate);
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 10, 1, 10), (0, 20, 1, 13), (0, 30, 1, 26)]);
    assert!(found.messages.iter().all(|message| message.truncated && message.bytes == 64));
    assert_eq!((summary.truncated, summary.size_mismatches), (3, 0));
    assert_eq!(found.alone(), []);
}

#[test]
fn failed_operation_transfers_nothing() {
    let [mut a, mut b] = world();
    a.call_with("MPI_Send", at(10), at(11), on_world(1, 1, 64));
    b.call_with("MPI_Irecv", at(5), at(6), on_world(0, 1, 64).request(7));
    b.failed_call_with("MPI_Wait", (at(7), at(9)), completed(7, 0, 1, 0), CLASSES.other);
    b.call_with("MPI_Recv", at(10), at(15), on_world(0, 1, 64));
    let (found, _) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 10, 1, 10)]);
    assert_eq!(found.alone(), [(Side::Receive, Failed, 1, 5)]);
}
