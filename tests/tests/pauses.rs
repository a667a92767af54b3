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
