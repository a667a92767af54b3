//! Intervals of answers where the run does not tell the prices.

use super::*;

/// Two ranks send 8,000 bytes in turn, 20 times; each takes 18 µs. With `allreduces`, one of 8
/// bytes follows each message and takes 5 µs. At last both ranks compute.
fn messages_of_one_size(allreduces: bool, computing_ns: u64) -> Program {
    let each = if allreduces { 23_000 } else { 18_000 };
    let mut program = Program::with_end(2, BEGIN + 20 * each + computing_ns);
    for message in 0..20 {
        let (from, to) = (message % 2, 1 - message % 2);
        let begin = program.now[from];
        let (sent, received) = (begin + 100, begin + 18_000);
        program.ranks[from].call_with("MPI_Send", begin, sent, on_world(to as i32, 5, 8_000));
        let waits = program.now[to];
        program.ranks[to].call_with("MPI_Recv", waits, received, on_world(from as i32, 5, 8_000));
        program.now = vec![sent, received];
        program.now.swap(0, from);
        if allreduces {
            for rank in 0..2 {
                let (begin, end) = (program.now[rank], received + 5_000);
                program.ranks[rank].call_with("MPI_Allreduce", begin, end, on_world(0, 8, 8));
                program.now[rank] = end;
            }
        }
    }
    program
}

#[test]
fn one_size_of_messages_does_not_tell_latency_from_bandwidth() {
    for allreduces in [false, true] {
        messages_of_one_size(allreduces, 0).with_graph(|graph| {
            let what_if = WhatIf::new(graph.unwrap());
            assert!(what_if.is_accurate() && !what_if.is_told_apart());
            // The messages' part of the run, which may all be latency or all be bytes.
            let (recorded, messages) = (what_if.graph.elapsed_s, 20.0 * 18e-6);
            for changes in [vec![Change::Bandwidth(0.125)], vec![Change::Latency(8.0)]] {
                let answer = what_if.ask(&changes);
                let (lo, hi) = answer.interval_s;
                assert_eq!(answer.time_s(), None, "{answer:?}");
                assert!(lo < 1.3 * recorded, "{lo} of {recorded}: {changes:?}");
                assert!(hi > recorded + 0.9 * 7.0 * messages, "{hi} of {recorded}: {changes:?}");
            }
            let all = [Change::Bandwidth(0.5), Change::Latency(2.0), Change::Overhead(2.0)];
            let time = what_if.ask(&all).time_s().unwrap();
            assert!((time / recorded - 2.0).abs() < 0.1, "{time} of {recorded}");
        });
    }
}

#[test]
fn interval_is_never_below_what_a_rank_computes() {
    messages_of_one_size(false, 1_000_000).with_graph(|graph| {
        let what_if = WhatIf::new(graph.unwrap());
        for factor in [0.01, 100.0] {
            let (lo, hi) = what_if.ask(&[Change::Latency(factor)]).interval_s;
            assert!(lo > 0.98e-3 && lo <= hi, "{lo} to {hi}");
        }
    });
}
