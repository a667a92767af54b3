//! Short runs whose replay is off.

use super::*;

/// Rank 1 has a message of rank 0 some time before that sends it, because clocks differ; with this
/// error the replay is longer than the run.
fn wrong_by(ns: u64, computing: u64) -> Program {
    let mut program = Program::with_end(2, BEGIN + 100_000 + computing);
    program.works(0, 90_000 + ns);
    program.sends(0, 1, 8);
    program.works(1, 90_000);
    program.receives(0, 1, 8);
    program
}

#[test]
fn short_run_may_be_off_by_more_than_three_per_cent() {
    let is_accurate = |program: Program| {
        program.with_graph(|graph| {
            let what_if = WhatIf::new(graph.unwrap());
            let (lo, hi) = what_if.ask(&[]).interval_s;
            assert!(lo <= what_if.graph.elapsed_s && what_if.graph.elapsed_s <= hi);
            (what_if.is_accurate(), what_if.is_exact())
        })
    };
    assert_eq!(is_accurate(wrong_by(9_000, 30_000)), (true, false));
    assert_eq!(is_accurate(wrong_by(100_000, 150_000)), (false, false));
}
