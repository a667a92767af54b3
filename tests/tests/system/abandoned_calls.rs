//! Calls that never return to their wrapper: abandoned by longjmp or by a C++ exception.

use system_tests::trace::{RankTrace, Trace};
use system_tests::victim::{Build, built};
use system_tests::{Job, sequence, under_both, victim};

/// Checks that only this call of the first thread is marked as abandoned.
fn check_abandoned(rank: &RankTrace, name: &str) {
    let abandoned: Vec<&str> = rank.threads[0]
        .events
        .iter()
        .filter(|named| named.event.abandoned)
        .map(|named| named.name.as_str())
        .collect();
    assert_eq!(abandoned, [name], "abandoned calls");
    assert!(rank.open_calls().is_empty(), "open calls {:?}", rank.open_calls());
}

fn last_calls(trace: &Trace, count: usize) -> Vec<&str> {
    let calls = trace.rank(0).calls();
    calls[calls.len().saturating_sub(count)..].to_vec()
}

under_both! {
    fn by_longjmp(mpi) {
        let job = Job::new(mpi, &victim(mpi, "longjmp_from_handler"));
        let recorded = job.record();
        recorded.expect_code(0).output.expect_same(&job.bare());
        let trace = recorded.trace();
        check_abandoned(trace.rank(0), "MPI_Send");
        let expected = [
            ("MPI_Init", 1),
            ("MPI_Comm_create_errhandler", 1),
            ("MPI_Comm_set_errhandler", 1),
            ("MPI_Comm_rank", 5),
            ("MPI_Send", 1),
            ("MPI_Comm_rank", 7),
            ("MPI_Barrier", 1),
            ("MPI_Finalize", 1),
        ];
        assert_eq!(trace.rank(0).calls(), sequence(&expected));
    }

    // The wrapper of a call with more arguments has a larger frame: its stack pointer is below that
    // of the abandoned call, although the same function made both.
    fn by_longjmp_then_calls_with_more_arguments(mpi) {
        let job = Job::new(mpi, &victim(mpi, "longjmp_then_more_arguments"));
        job.bare().expect_code(0);
        let recorded = job.record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        check_abandoned(trace.rank(0), "MPI_Probe");
        assert_eq!(
            last_calls(&trace, 4),
            ["MPI_Probe", "MPI_Alltoallw", "MPI_Sendrecv", "MPI_Finalize"]
        );
    }

    fn by_longjmp_then_calls_deeper_in_the_stack(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "longjmp_then_deeper")).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        check_abandoned(trace.rank(0), "MPI_Send");
        assert_eq!(
            last_calls(&trace, 52),
            sequence(&[("MPI_Send", 1), ("MPI_Comm_rank", 50), ("MPI_Finalize", 1)])
        );
    }

    fn by_longjmp_on_a_stack_that_is_then_unmapped(mpi) {
        let job = Job::new(mpi, &victim(mpi, "longjmp_from_fibre"));
        let recorded = job.record();
        recorded.expect_code(0).output.expect_same(&job.bare());
        let trace = recorded.trace();
        let abandoned = trace.rank(0).threads[0].events.iter().filter(|named| named.event.abandoned);
        assert_eq!(abandoned.map(|named| named.name.as_str()).collect::<Vec<_>>(), ["MPI_Send"; 2]);
        assert_eq!(
            last_calls(&trace, 9),
            sequence(&[
                ("MPI_Send", 1),
                ("MPI_Comm_rank", 3),
                ("MPI_Send", 1),
                ("MPI_Comm_rank", 3),
                ("MPI_Finalize", 1),
            ])
        );
    }

    fn by_longjmp_from_blas(mpi) {
        let job = Job::new(mpi, &built(mpi, "longjmp_from_blas", Build::Blas));
        let recorded = job.environment("GAMMACHI_COMPUTE", "blas").record();
        recorded.expect_code(0);
        assert_eq!(recorded.output.stdout, "left\n");
        let trace = recorded.trace();
        check_abandoned(trace.rank(0), "dgemm_");
        assert_eq!(
            last_calls(&trace, 10),
            sequence(&[("dgemm_", 7), ("MPI_Comm_rank", 2), ("MPI_Finalize", 1)])
        );
    }

    fn by_longjmp_then_finalize(mpi) {
        // Without rank 0's half of the clock exchange, rank 1 would wait until the deadline.
        let recorded = Job::new(mpi, &victim(mpi, "longjmp_then_finalize"))
            .ranks(2)
            .environment("GAMMACHI_CLOCK_DEADLINE", "1000")
            .record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        check_abandoned(trace.rank(0), "MPI_Send");
        assert_eq!(last_calls(&trace, 2), ["MPI_Send", "MPI_Finalize"]);
        assert!(trace.rank(0).is_finalized() && trace.rank(1).is_finalized());
    }

    // A handler of a timer may leave a call while the recorder changes a window or writes a definition. Neither may stay
    // locked or half done: the program ends, and every call that returned is there once.
    fn by_longjmp_while_the_recorder_writes(mpi) {
        let job = Job::new(mpi, &victim(mpi, "longjmp_from_recorder"));
        job.bare().expect_code(0);
        let recorded = job.record();
        recorded.expect_code(0);
        let words = recorded.output.stdout.split_whitespace();
        let numbers: Vec<usize> = words.map(|word| word.parse().expect("a number")).collect();
        let [left, returned] = numbers[..] else { panic!("{}", recorded.output) };
        assert_eq!(left, 15, "the signal arrived in every round");
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).count("MPI_Comm_rank"), returned);
        assert!(trace.rank(0).is_finalized());
    }

    fn by_longjmp_then_a_region(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "longjmp_then_region")).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        check_abandoned(trace.rank(0), "MPI_Send");
        let marked = trace.rank(0).threads[0].marked();
        assert_eq!(
            marked[marked.len() - 7..],
            [
                "MPI_Send",
                "BEGIN after",
                "MPI_Comm_rank",
                "MPI_Comm_rank",
                "MPI_Comm_rank",
                "END after",
                "MPI_Finalize",
            ]
        );
    }

    fn by_exception(mpi) {
        check_exception(&Job::new(mpi, &built(mpi, "throws_from_handler", Build::Cpp)));
    }

    fn by_exception_then_calls_deeper_in_the_stack(mpi) {
        let program = built(mpi, "throws_from_handler", Build::Cpp);
        check_exception(&Job::new(mpi, &program).argument("deeper"));
    }

    fn not_by_signal_handler_on_a_lower_stack(mpi) {
        check_signal_handler(&Job::new(mpi, &victim(mpi, "calls_from_signal_handler")));
    }

    fn not_by_signal_handler_on_a_higher_stack(mpi) {
        let program = victim(mpi, "calls_from_signal_handler");
        check_signal_handler(&Job::new(mpi, &program).argument("high"));
    }
}

/// Runs a victim whose error handler throws through MPI_Send and which then makes 7 calls.
fn check_exception(job: &Job) {
    let bare = job.bare();
    let recorded = job.record();
    recorded.output.expect_same(bare.expect_code(0));
    let trace = recorded.trace();
    check_abandoned(trace.rank(0), "MPI_Send");
    assert_eq!(
        last_calls(&trace, 10),
        sequence(&[("MPI_Send", 1), ("MPI_Comm_rank", 7), ("MPI_Barrier", 1), ("MPI_Finalize", 1)])
    );
}

/// Runs a victim whose signal handler, on its own stack, calls MPI once outside MPI and once inside
/// MPI_Reduce_local, where the call is not recorded.
fn check_signal_handler(job: &Job) {
    let recorded = job.record();
    recorded.expect_code(0).output.expect_same(&job.bare());
    let trace = recorded.trace();
    assert_eq!(
        trace.rank(0).calls(),
        [
            "MPI_Init",
            "MPI_Comm_rank",
            "MPI_Op_create",
            "MPI_Reduce_local",
            "MPI_Op_free",
            "MPI_Comm_rank",
            "MPI_Comm_rank",
            "MPI_Comm_rank",
            "MPI_Finalize",
        ]
    );
    assert!(!trace.rank(0).threads[0].events.iter().any(|named| named.event.abandoned));
}
