//! Calls whose partner is MPI_PROC_NULL.

use super::*;

/// MPI_PROC_NULL of Open MPI.
const PROC_NULL: i32 = -2;

/// Microseconds that an ideal network saves a program whose rank 0 makes a call of 20 µs that sends
/// and receives.
fn saved_us(to: i32, from: i32) -> f64 {
    let mut program = Program::new(2);
    program.works(0, 30_000);
    let begin = program.now[0];
    program.ranks[0].call_with("MPI_Sendrecv", begin, begin + 20_000, on_world(to, 5, 800));
    program.ranks[0].receiving(from, 5, 0);
    program.with_graph(|graph| {
        let graph = graph.unwrap();
        let recorded_s = graph.lines[0].begin_s + graph.elapsed_s;
        let (replayed, _) = WhatIf::new(graph).replayed_with(&[Change::IdealNetwork]);
        (recorded_s - replayed.ends[0]) * 1e6
    })
}

#[test]
fn call_without_partner_takes_no_time_on_ideal_network() {
    let saved = saved_us(PROC_NULL, PROC_NULL);
    assert!((saved - 20.0).abs() < 0.1, "{saved}");
}

#[test]
fn call_with_unknown_partner_keeps_its_time() {
    // Rank 1 makes no call.
    for (to, from) in [(1, PROC_NULL), (PROC_NULL, 1)] {
        let saved = saved_us(to, from);
        assert!(saved.abs() < 0.1, "{to} {from}: {saved}");
    }
}
