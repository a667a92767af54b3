//! Clock exchanges compared with a known offset: a test hook skews rank 1's counter.

use std::process::Command;

use system_tests::directories::{TempDir, repository};
use system_tests::kernels::command;
use system_tests::trace::{RankTrace, Trace};
use system_tests::{Job, Mpi, skip, under_both, victim};
use trace_format::header::{ClockAnchor, ClockBound, ClockExchange, Definition, Phase};
use trace_format::markers::ToolReason;

fn exchanges(rank: &RankTrace) -> Vec<ClockExchange> {
    let definitions = rank.file.definitions.iter();
    let found = definitions.filter_map(|definition| match definition {
        Definition::ClockExchange(exchange) => Some(*exchange),
        _ => None,
    });
    found.collect()
}

fn bounds(rank: &RankTrace) -> Vec<ClockBound> {
    let definitions = rank.file.definitions.iter();
    let found = definitions.filter_map(|definition| match definition {
        Definition::ClockBound(bound) => Some(*bound),
        _ => None,
    });
    found.collect()
}

/// The counter's ticks per nanosecond over the whole run, from the first and last anchor.
fn ticks_per_ns(rank: &RankTrace) -> f64 {
    let definitions = rank.file.definitions.iter();
    let anchors: Vec<ClockAnchor> = definitions
        .filter_map(|definition| match definition {
            Definition::ClockAnchor(anchor) => Some(*anchor),
            _ => None,
        })
        .collect();
    let (first, last) = (anchors[0], anchors[anchors.len() - 1]);
    (last.ticks - first.ticks) as f64 / (last.monotonic_raw_ns - first.monotonic_raw_ns) as f64
}

under_both! {
    fn measures_offset_with_its_sign(mpi) {
        for offset_ns in [5.0e9, -5.0e9] {
            let recorded = Job::new(mpi, &victim(mpi, "many_calls"))
                .argument("1000")
                .and_ranks(1)
                .rank_environment("GAMMACHI_TEST_CLOCK", &format!("{offset_ns},0"))
                .record();
            recorded.expect_code(0);
            let trace = recorded.trace();
            assert!(exchanges(trace.rank(0)).is_empty(), "rank 0 has no parent");
            let found = exchanges(trace.rank(1));
            let phases: Vec<Phase> = found.iter().map(|exchange| exchange.phase).collect();
            assert_eq!(phases, [Phase::Init, Phase::Finalize]);
            // The hook converts nanoseconds with a rate that it measures for 2 ms: the shift must
            // agree with the truth within 1 %, and the two exchanges with each other within their
            // bounds.
            let rate = ticks_per_ns(trace.rank(0));
            for exchange in &found {
                assert_eq!(exchange.parent, 0);
                assert!(exchange.same_host && exchange.kept >= 1 && exchange.kept <= exchange.rounds);
                let shift = exchange.parent_ticks.wrapping_sub(exchange.child_ticks) as i64 as f64;
                let truth = -offset_ns * rate;
                assert!(
                    (shift - truth).abs() < 0.01 * truth.abs(),
                    "offset {offset_ns} ns: {shift} ticks instead of {truth}"
                );
            }
            let [init, finalize] = found[..] else { unreachable!("two phases were found") };
            let theta = |e: ClockExchange| e.parent_ticks.wrapping_sub(e.child_ticks) as i64;
            let apart = theta(init).abs_diff(theta(finalize));
            assert!(
                apart <= init.bound_ticks + finalize.bound_ticks,
                "without drift the two exchanges differ by {apart} ticks, more than their bounds \
                 {} and {}",
                init.bound_ticks,
                finalize.bound_ticks
            );
        }
    }

    // Ranks of one host share the counter: the true offset is exactly 0.
    fn bound_covers_the_truth_without_skew(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "returns_3")).ranks(4).record();
        recorded.expect_code(3);
        let trace = recorded.trace();
        if !trace.rank(0).file.header.counter_invariant {
            return skip("invariant-counter", "this machine's counter is not invariant");
        }
        for rank in &trace.ranks[1..] {
            let found = exchanges(rank);
            assert_eq!(found.len(), 2);
            for exchange in found {
                let apart = exchange.parent_ticks.abs_diff(exchange.child_ticks);
                assert!(apart <= exchange.bound_ticks, "{exchange:?}");
            }
        }
    }

    fn does_not_wait_forever_for_a_late_partner(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "finalizes_late"))
            .ranks(2)
            .environment("GAMMACHI_CLOCK_DEADLINE", "0.2")
            .record();
        recorded.expect_code(0);
        // MPICH's network layer may print warnings about the abandoned barrier.
        assert!(recorded.output.stdout.ends_with("finalized\n"));
        for rank in recorded.trace().ranks {
            assert!(rank.is_finalized());
        }
    }

    fn rank_begins_after_init_and_ends_at_finalize(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "counts")).ranks(2).record();
        recorded.expect_code(0);
        for rank in recorded.trace().ranks {
            let ticks = |wanted: fn(&Definition) -> Option<u64>| {
                rank.file.definitions.iter().find_map(wanted).expect("it is defined")
            };
            let begin = ticks(|definition| match definition {
                Definition::RankBegin { ticks } => Some(*ticks),
                _ => None,
            });
            let end = ticks(|definition| match definition {
                Definition::RankEnd { ticks } => Some(*ticks),
                _ => None,
            });
            let calls: Vec<_> = rank.threads[0].events.iter().filter(|e| e.is_call()).collect();
            assert!(calls[0].event.end.expect("MPI_Init has returned") <= begin);
            assert!(begin <= calls[1].event.begin);
            let last = calls[calls.len() - 1];
            assert_eq!(last.name, "MPI_Finalize");
            assert_eq!(last.event.begin, end);
        }
    }

    fn compares_clocks_again_during_the_run(mpi) {
        let job = Job::new(mpi, &victim(mpi, "meets_for_a_while"))
            .argument("6")
            .ranks(3)
            .environment("GAMMACHI_CLOCK_EVERY", "0.15");
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        let trace = recorded.trace();
        let phases = |rank: usize| -> Vec<Phase> {
            exchanges(trace.rank(rank)).iter().map(|exchange| exchange.phase).collect()
        };
        assert_eq!(phases(1), phases(2));
        let [Phase::Init, during @ .., Phase::Finalize] = &phases(1)[..] else {
            panic!("{:?}", phases(1));
        };
        assert!(!during.is_empty() && during.iter().all(|phase| *phase == Phase::During));
        for rank in &trace.ranks {
            let spent = rank.tool_events(ToolReason::Clock);
            assert!(spent >= during.len(), "comparing is tool time");
            // The recorder's own communication does not appear as calls of the program.
            assert_eq!((rank.count("MPI_Bcast"), rank.count("MPI_Barrier")), (0, 600));
        }
    }

    // Five ranks on three hosts: the leaders 0, 1 and 4 form a tree, with each host's ranks below.
    fn bounds_add_up_over_hops_between_hosts(mpi) {
        let mut job = Job::new(mpi, &victim(mpi, "returns_3"));
        let hosts = ["a", "b", "a", "b", "c"];
        for (rank, host) in hosts.iter().enumerate() {
            job = if rank == 0 { job } else { job.and_ranks(1) };
            job = job.rank_environment("GAMMACHI_TEST_HOST", host);
        }
        let recorded = job.record();
        recorded.expect_code(3);
        let trace = recorded.trace();
        let parents = [None, Some(0), Some(0), Some(1), Some(0)];
        let hops = [0, 1, 1, 2, 1];
        for (rank, file) in trace.ranks.iter().enumerate() {
            let (found, bounds) = (exchanges(file), bounds(file));
            assert_eq!(found.len(), if rank == 0 { 0 } else { 2 });
            assert_eq!(bounds.len(), found.len());
            for (exchange, bound) in found.iter().zip(&bounds) {
                assert_eq!(Some(exchange.parent), parents[rank]);
                let same_host = hosts[rank] == hosts[exchange.parent as usize];
                assert_eq!(exchange.same_host, same_host);
                assert_eq!((bound.hops, bound.phase), (hops[rank], exchange.phase));
                let own_ns = exchange.bound_ticks as f64 / ticks_per_ns(file);
                let of_parent = self::bounds(trace.rank(exchange.parent as usize));
                let above = of_parent.iter().find(|b| b.phase == exchange.phase);
                let sum_ns = own_ns + above.map_or(0.0, |bound| bound.bound_ns as f64);
                let apart = (bound.bound_ns as f64 - sum_ns).abs();
                assert!(apart <= 2.0 + 0.001 * sum_ns, "rank {rank}: {bound:?} instead of {sum_ns}");
            }
        }
    }
}

/// 100 µs one way and 20 µs back: no two-way exchange can distinguish that from an offset of 40 µs,
/// so the bound has to cover it.
#[test]
fn bound_covers_an_asymmetric_path() {
    let rig = repository().join("tests/rigs/two-hosts");
    let run =
        |words: &[&str]| Command::new(&rig).args(words).output().expect("the rig can be started");
    let possible = run(&["check"]);
    if !possible.status.success() {
        return skip("two-hosts", String::from_utf8_lossy(&possible.stderr).trim());
    }
    let up = run(&["up", "--delay", "100,0,20,0"]);
    if !up.status.success() {
        run(&["down"]);
        panic!("{}", String::from_utf8_lossy(&up.stderr));
    }
    let temp = TempDir::new();
    let directory = temp.join("run");
    let output = Command::new(&rig)
        .args(["run", "openmpi", "1", "1", "timeout", "120"])
        .arg(command())
        .args(["run", "--out"])
        .arg(&directory)
        .args(["--", "LAUNCH"])
        .arg(victim(Mpi::OpenMpi, "returns_3"))
        .output()
        .expect("the rig starts");
    run(&["down"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = Trace::open(&directory, 2).expect("the ranks' files are whole");
    if !trace.rank(0).file.header.counter_invariant {
        return skip("invariant-counter", "this machine's counter is not invariant");
    }
    let rank = trace.rank(1);
    for exchange in exchanges(rank) {
        // Both ranks read one counter: the true offset is 0. On a quiet machine the error is 40 µs.
        let per_us = 1e3 * ticks_per_ns(rank);
        let us = |ticks: u64| ticks as f64 / per_us;
        let error_us = us(exchange.parent_ticks.abs_diff(exchange.child_ticks));
        let bound_us = us(exchange.bound_ticks);
        assert!(us(exchange.min_round_trip_ticks) >= 120.0, "the delay is missing: {exchange:?}");
        assert!(bound_us >= error_us && bound_us >= 60.0, "{error_us} µs, bound {bound_us} µs");
    }
}
