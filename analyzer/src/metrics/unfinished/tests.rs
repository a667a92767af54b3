use crate::metrics::Selection;
use crate::metrics::divided_tests::assert_same_in_processes;
use crate::metrics::figures::Metrics;
use crate::synthetic_messages::{Attributes, on_world};
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;

use super::*;

/// First tick of the synthetic ranks' calls.
const T: u64 = 2_000_000;
const END: u64 = 100_000_000;

fn at(ticks: u64) -> u64 {
    T + ticks
}

fn world<const P: usize>() -> [SyntheticRank; P] {
    std::array::from_fn(|rank| SyntheticRank::level_1(rank as u32, P as u32, END))
}

fn unfinished_of(ranks: &[SyntheticRank]) -> Unfinished {
    let directory = RunDirectory::with_ranks(ranks);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.diagnoses, []);
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    assert_same_in_processes(directory.path(), &Selection::Whole, &metrics);
    metrics.unfinished.expect("some rank did not finish")
}

fn cycles(unfinished: &Unfinished) -> Vec<&[u32]> {
    unfinished.deadlocks.iter().map(|deadlock| &deadlock.ranks[..]).collect()
}

fn causes(unfinished: &Unfinished) -> Vec<(u32, CauseKind, &[u32])> {
    unfinished.causes.iter().map(|c| (c.rank, c.kind, &c.waiting.0[..])).collect()
}

fn handle(request: u32) -> Attributes {
    Attributes { request, ..Attributes::default() }
}

#[test]
fn two_ranks_that_receive_from_each_other_are_deadlocked() {
    let [mut a, mut b, mut c] = world();
    a.open_call_with("MPI_Recv", at(10), on_world(1, 7, 8)).killed();
    b.open_call_with("MPI_Recv", at(20), on_world(0, 7, 8)).killed();
    c.open_call_with("MPI_Recv", at(30), on_world(0, 1, 8)).killed();
    let found = unfinished_of(&[a, b, c]);
    assert_eq!(cycles(&found), [[0, 1]]);
    assert!(found.deadlocks[0].certain && found.ranks.iter().all(|rank| rank.stuck));
    assert_eq!(causes(&found), []);
    let call = found.ranks[0].position().unwrap().inside().unwrap();
    assert_eq!((call.function.as_str(), call.arguments.peer), ("MPI_Recv", Some(Partner::Rank(1))));
    assert_eq!(call.arguments.tag, Some(7));
}

#[test]
fn a_message_on_its_way_is_not_a_deadlock() {
    // A large message: both sides are inside their calls, and the tags match.
    let [mut a, mut b] = world();
    a.open_call_with("MPI_Send", at(10), on_world(1, 7, 8)).killed();
    b.open_call_with("MPI_Recv", at(20), on_world(0, 7, 8)).killed();
    let found = unfinished_of(&[a.clone(), b]);
    assert_eq!(cycles(&found), Vec::<&[u32]>::new());
    assert!(found.ranks.iter().all(|rank| !rank.stuck));
    let waits = found.ranks.iter().map(|rank| rank.position().unwrap().waits_for.clone().unwrap());
    assert_eq!(waits.collect::<Vec<_>>(), [WaitsFor::Nobody, WaitsFor::Nobody]);
    // With different tags they never match.
    let [_, mut b] = world();
    b.open_call_with("MPI_Recv", at(20), on_world(0, 8, 8)).killed();
    assert_eq!(cycles(&unfinished_of(&[a, b])), [[0, 1]]);
}

#[test]
fn message_that_was_received_needs_no_more_of_its_receiver() {
    // As when a rank dies between two exchanges with its neighbours: rank 1 has what rank 0 sent.
    let [mut a, mut b, mut c] = world();
    a.open_call_with("MPI_Sendrecv", at(10), on_world(1, 7, 8)).receiving(2, 7, 8).killed();
    b.call_with("MPI_Recv", at(20), at(30), on_world(0, 7, 8));
    b.open_call_with("MPI_Allreduce", at(40), on_world(0, 0, 8)).killed();
    c.call_with("MPI_Comm_rank", at(10), at(11), on_world(0, 0, 0)).killed();
    let found = unfinished_of(&[a, b, c]);
    assert_eq!(cycles(&found), Vec::<&[u32]>::new());
    assert_eq!(causes(&found), [(2, CauseKind::OutsideMpi, &[0, 1][..])]);
}

#[test]
fn members_that_have_not_arrived_are_missing_and_the_computing_one_is_the_cause() {
    let [mut a, mut b, mut c, mut d] = world();
    for rank in [&mut a, &mut b, &mut c, &mut d] {
        rank.call_with("MPI_Barrier", at(10), at(20), on_world(0, 0, 0));
    }
    a.open_call_with("MPI_Barrier", at(30), on_world(0, 0, 0)).killed();
    b.open_call_with("MPI_Barrier", at(40), on_world(0, 0, 0)).killed();
    c.killed();
    d.open_call_with("MPI_Recv", at(50), on_world(2, 1, 8)).killed();
    let found = unfinished_of(&[a, b, c, d]);
    let [open] = &found.collectives[..] else { panic!("one collective: {found:?}") };
    assert_eq!((open.function.as_str(), open.number), ("MPI_Barrier", Some(1)));
    assert_eq!((&open.inside.0[..], &open.missing.0[..]), (&[0, 1][..], &[2, 3][..]));
    assert_eq!(causes(&found), [(2, CauseKind::OutsideMpi, &[0, 1, 3][..])]);
    assert_eq!(found.deadlocks, []);
}

#[test]
fn a_collective_that_no_rank_waits_for_is_not_a_cause() {
    // Rank 1 has started a barrier and computes; rank 0 has not called it.
    let [mut a, mut b] = world();
    a.killed();
    b.call_with("MPI_Ibarrier", at(5), at(6), on_world(0, 0, 0).request(48)).killed();
    let found = unfinished_of(&[a, b]);
    assert_eq!(causes(&found), []);
    assert_eq!(found.awaited_collectives().count(), 0, "{found:?}");
}

#[test]
fn a_wait_waits_for_the_operation_of_its_request() {
    let [mut a, mut b, mut c] = world();
    a.call_with("MPI_Irecv", at(1), at(2), on_world(1, 5, 8).request(40));
    a.call_with("MPI_Irecv", at(3), at(4), on_world(2, 5, 8).request(44));
    a.call_with("MPI_Ibarrier", at(5), at(6), on_world(0, 0, 0).request(48));
    // A call that has not returned, on the second request.
    a.open_call_with("MPI_Wait", at(10), handle(44)).killed();
    b.open_call_with("MPI_Recv", at(10), on_world(2, 5, 8)).killed();
    c.call_with("MPI_Ibarrier", at(5), at(6), on_world(0, 0, 0).request(48));
    c.open_call_with("MPI_Wait", at(10), handle(48)).killed();
    let found = unfinished_of(&[a, b, c]);
    let needs = |rank: usize| match &found.ranks[rank].position().unwrap().waits_for {
        Some(WaitsFor::Needs { needs, any: false }) => needs.clone(),
        other => panic!("rank {rank}: {other:?}"),
    };
    assert_eq!(needs(0)[0].awaited, Awaited::Rank(2));
    assert_eq!((needs(0)[0].operation, needs(0)[0].tag), ("receive", Some(5)));
    let Awaited::Missing(number) = needs(2)[0].awaited else { panic!("{found:?}") };
    assert_eq!(found.collectives[number].missing.0, [1]);
    // 2 waits for 1 to enter the barrier, and 1 for a message from 2.
    assert_eq!(cycles(&found), [[1, 2]]);
}

#[test]
fn any_source_is_stuck_only_if_no_rank_is_left_to_send() {
    let any = on_world(-1, 5, 8);
    let [mut a, mut b, mut c] = world();
    a.open_call_with("MPI_Recv", at(10), any).killed();
    b.open_call_with("MPI_Recv", at(10), on_world(0, 5, 8)).killed();
    c.killed();
    let found = unfinished_of(&[a.clone(), b.clone(), c]);
    assert_eq!(found.deadlocks, []);
    assert_eq!(causes(&found), [(2, CauseKind::OutsideMpi, &[0, 1][..])]);
    let [_, _, mut c] = world();
    c.finalize(END, END + 10);
    let found = unfinished_of(&[a, b, c]);
    assert_eq!(cycles(&found), [[0, 1]]);
}

#[test]
fn finalize_waits_for_ranks_that_have_not_entered_it_and_abort_for_none() {
    let [mut a, mut b, mut c] = world();
    a.open_call(0, "MPI_Finalize", at(100)).killed();
    b.open_call_with("MPI_Recv", at(10), on_world(2, 1, 8)).killed();
    c.open_call(0, "MPI_Abort", at(10)).killed();
    let found = unfinished_of(&[a, b, c]);
    assert_eq!(found.collectives[0].function, "MPI_Finalize");
    assert_eq!(found.collectives[0].missing.0, [1, 2]);
    assert_eq!(causes(&found), [(2, CauseKind::Aborts, &[0, 1][..])]);
}

#[test]
fn creating_a_communicator_waits_for_all_members() {
    let [mut a, mut b, mut c] = world();
    for rank in [&mut a, &mut b, &mut c] {
        rank.call_with("MPI_Comm_split", at(1), at(2), on_world(0, 0, 0));
    }
    a.open_call_with("MPI_Comm_split", at(10), on_world(0, 0, 0)).killed();
    b.open_call_with("MPI_Comm_split", at(10), on_world(0, 0, 0)).killed();
    c.killed();
    let found = unfinished_of(&[a, b, c]);
    assert_eq!(found.collectives.len(), 1);
    assert_eq!(
        (&found.collectives[0].missing.0[..], found.collectives[0].number),
        (&[2][..], None)
    );
}

#[test]
fn operations_on_windows_and_files_wait_for_all_members() {
    for function in ["MPI_Win_fence", "MPI_Win_free", "MPI_File_close", "MPI_File_write_all"] {
        let [mut a, mut b, mut c] = world();
        for rank in [&mut a, &mut b, &mut c] {
            rank.call_with(function, at(1), at(2), on_world(0, 1, 0));
        }
        // The third rank computes and has not made its second call.
        a.open_call_with(function, at(10), on_world(0, 1, 0)).killed();
        b.open_call_with(function, at(10), on_world(0, 1, 0)).killed();
        c.call_with("MPI_Comm_rank", at(11), at(12), on_world(0, 0, 0)).killed();
        let unfinished = unfinished_of(&[a, b, c]);
        let open = &unfinished.collectives[0];
        assert_eq!((open.function.as_str(), &open.missing.0[..]), (function, &[2][..]));
        assert_eq!(open.inside.0, [0, 1], "{function}");
    }
}

#[test]
fn level_0_has_calls_but_not_what_they_wait_for() {
    let mut a = SyntheticRank::complete(0, 2, 1_000_000, END);
    let mut b = SyntheticRank::complete(1, 2, 1_000_000, END);
    a.open_call(0, "MPI_Recv", at(10)).killed();
    b.call(0, "MPI_Send", at(5), at(6)).killed();
    let found = unfinished_of(&[a, b]);
    let position = found.ranks[0].position().unwrap();
    assert_eq!(position.waits_for, Some(WaitsFor::Unknown));
    assert_eq!(position.inside().unwrap().arguments, Arguments::default());
    assert_eq!((&found.deadlocks[..], &found.causes[..]), (&[][..], &[][..]));
    assert!(found.at_least && !found.running);
}
