//! MPI_Pcontrol: level 0 pauses recording of the calling thread, other levels resume it.

use system_tests::{Job, under_both, victim};
use trace_format::layout::TOOL;
use trace_format::markers::ToolReason;

under_both! {
    fn paused_time_is_one_recorder_event(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "pauses")).ranks(2).record();
        recorded.expect_code(0);
        for rank in recorded.trace().ranks {
            let thread = &rank.threads[0];
            assert_eq!(
                thread.calls(),
                [
                    "MPI_Init",
                    "MPI_Comm_rank",
                    "MPI_Pcontrol",
                    "MPI_Pcontrol",
                    "MPI_Barrier",
                    "MPI_Pcontrol",
                    "MPI_Finalize",
                ]
            );
            assert_eq!(rank.tool_events(ToolReason::Paused), 2);
            assert!(rank.is_finalized());
        }
    }

    // Events of the recorder itself begin before they are written. One that needs a new window must not
    // begin before it: clock exchanges, call paths and pauses all come to stand there.
    fn every_window_begins_with_its_first_event(mpi) {
        const TURNS: usize = 3000;
        for before in 0..8 {
            let job = Job::new(mpi, &victim(mpi, "fills_windows")).argument(before.to_string()).ranks(2);
            let job = job.environment("GAMMACHI_LEVEL", "2").environment("GAMMACHI_PATHS_FROM", "0");
            let recorded = job.environment("GAMMACHI_CLOCK_EVERY", "0.000001").record();
            recorded.expect_code(0);
            for rank in recorded.trace().ranks {
                assert!(rank.tool_events(ToolReason::Window) > 2);
                assert!(rank.tool_events(ToolReason::Clock) > TURNS / 2);
                assert_eq!(rank.tool_events(ToolReason::Paused), TURNS);
                assert_eq!((rank.count("MPI_Barrier"), rank.count("MPI_Pcontrol")), (TURNS, 2 * TURNS));
                assert!(rank.is_finalized());
            }
        }
    }

    fn child_of_a_paused_process_writes_nothing(mpi) {
        let job = Job::new(mpi, &victim(mpi, "forks_while_paused")).without_launcher();
        let recorded = job.record();
        recorded.expect_code(3);
        let trace = recorded.trace();
        let thread = &trace.rank(0).threads[0];
        assert_eq!(
            thread.calls(),
            ["MPI_Init", "MPI_Comm_rank", "MPI_Comm_rank", "MPI_Pcontrol", "MPI_Pcontrol", "MPI_Comm_rank"]
        );
    }

    // From MPI_Init on, time spent on finding MPI's functions is tool time.
    fn time_before_a_first_call_is_recorder_time(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "ring")).ranks(2).record();
        recorded.expect_code(0);
        for rank in recorded.trace().ranks {
            let mut called = std::collections::BTreeSet::from(["MPI_Init"]);
            for pair in rank.threads[0].events.windows(2) {
                let first = pair[1].is_call() && called.insert(&pair[1].name);
                let tool = pair[0].event.function == TOOL
                    && pair[0].event.peer == ToolReason::Entries as i32;
                assert!(!first || tool || pair[1].name == "MPI_Finalize", "{pair:?}");
            }
        }
    }
}
