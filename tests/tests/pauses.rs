//! MPI_Pcontrol: level 0 pauses recording of the calling thread, other levels go on.

use system_tests::{Job, under_both, victim};
use trace_format::layout::{TOOL, ToolReason};

under_both! {
    fn what_is_between_is_one_event_of_the_tools(mpi) {
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
            let paused = thread.events.iter().filter(|named| {
                named.event.function == TOOL && named.event.peer == ToolReason::Paused as i32
            });
            assert_eq!(paused.count(), 2);
            assert!(rank.is_finalized());
        }
    }
}
