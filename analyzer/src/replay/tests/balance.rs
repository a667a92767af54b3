//! Computation divided over all ranks.

use super::*;

/// A program of four ranks whose rank 0 works for 400 µs between a barrier and a send, places that
/// the others do not have, while they wait; and then all work for 100 µs.
fn with_serial_part() -> Program {
    let mut program = Program::with_end(4, BEGIN + 500_030);
    let barrier = |program: &mut Program| {
        let last = *program.now.iter().max().unwrap() + 10;
        for rank in 0..4 {
            let begin = program.now[rank];
            program.ranks[rank].call_with("MPI_Barrier", begin, last, on_world(0, 0, 0));
            program.now[rank] = last;
        }
    };
    barrier(&mut program);
    program.works(0, 400_000);
    program.sends(0, 1, 8);
    let (begin, end) = (program.now[1], program.now[0]);
    program.ranks[1].call_with("MPI_Recv", begin, end, on_world(0, 5, 8));
    program.now[1] = end;
    barrier(&mut program);
    program
}

fn seconds_with(change: Change) -> (f64, f64) {
    with_serial_part().with_graph(|graph| {
        let what_if = WhatIf::new(graph.unwrap());
        (what_if.graph.elapsed_s * 1e6, what_if.ask(&[change]).elapsed_s * 1e6)
    })
}

#[test]
fn place_of_one_rank_is_divided_over_all() {
    let (recorded, balanced) = seconds_with(Change::Balance(None));
    assert!((recorded - 500.0).abs() < 1.0, "{recorded}");
    assert!((balanced - 200.0).abs() < 2.0, "{balanced}");
}

#[test]
fn computation_stays_the_same_in_all() {
    with_serial_part().with_graph(|graph| {
        let what_if = WhatIf::new(graph.unwrap());
        let mut own = what_if.graph.own.clone();
        let before: f64 = own.iter().sum();
        what_if.balance(&mut own, None);
        let after: f64 = own.iter().sum();
        assert!((after / before - 1.0).abs() < 1e-9, "{before} {after}");
    });
}

#[test]
fn median_of_two_ranks_is_their_mean() {
    let mut program = Program::with_end(2, BEGIN + 400_000);
    program.works(0, 300_000);
    program.works(1, 100_000);
    for rank in 0..2 {
        let begin = program.now[rank];
        let end = BEGIN + 300_010;
        program.ranks[rank].call_with("MPI_Barrier", begin, end, on_world(0, 0, 0));
    }
    program.with_graph(|graph| {
        let what_if = WhatIf::new(graph.unwrap());
        let saved = what_if.graph.elapsed_s - what_if.ask(&[Change::MedianRank]).elapsed_s;
        // Ranks 0 and 1 compute 400 and 200 µs, 300 and 100 of them before the barrier: rank 0 takes
        // three quarters there, and rank 1 the last 100.
        assert!((saved * 1e6 - 75.0).abs() < 1.0, "{saved}");
    });
}

#[test]
fn what_threads_compute_at_once_counts_once() {
    let mut program = Program::with_end(2, BEGIN + 600_000);
    for turn in 1..=5 {
        let begin = BEGIN + 100_000 * turn;
        for rank in &mut program.ranks {
            rank.call_with("MPI_Barrier", begin, begin + CALL, on_world(0, 0, 0));
        }
        // Rank 1 has a second thread, which computes as long.
        let alone = on_world(0, 0, 0).communicator(COMMUNICATOR_SELF);
        program.ranks[1].thread_call_with(1, "MPI_Barrier", begin, begin + CALL, alone);
    }
    program.with_graph(|graph| {
        let what_if = WhatIf::new(graph.unwrap());
        let saved = what_if.graph.elapsed_s - what_if.ask(&[Change::Balance(None)]).elapsed_s;
        assert!((saved * 1e6).abs() < 20.0, "{saved}");
    });
}
