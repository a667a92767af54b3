//! Every call of the program is recorded once, by name and in order, and nothing else is.

use system_tests::directories::TempDir;
use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, sequence, under_both, victim};
use trace_format::markers::ToolReason;

/// The calls of `victims/counts.c` on a rank.
fn calls_of_counts(rank: usize) -> Vec<&'static str> {
    sequence(&[
        ("MPI_Init", 1),
        ("MPI_Comm_rank", 1),
        ("MPI_Comm_size", 1),
        ("MPI_Comm_dup", 1),
        ("MPI_Type_contiguous", 1),
        ("MPI_Type_commit", 1),
        (if rank == 0 { "MPI_Send" } else { "MPI_Recv" }, 5),
        ("MPI_Irecv", 1),
        ("MPI_Isend", 1),
        ("MPI_Waitall", 1),
        ("MPI_Irecv", 1),
        ("MPI_Isend", 1),
        ("MPI_Waitall", 1),
        ("MPI_Irecv", 1),
        ("MPI_Isend", 1),
        ("MPI_Waitall", 1),
        ("MPI_Irecv", 1),
        ("MPI_Isend", 1),
        ("MPI_Wait", 2),
        ("MPI_Sendrecv", 1),
        ("MPI_Allreduce", 4),
        ("MPI_Barrier", 1),
        ("MPI_Bcast", 2),
        ("MPI_Reduce", 1),
        ("MPI_Allgather", 1),
        ("MPI_Iprobe", 1),
        ("MPI_Type_free", 1),
        ("MPI_Comm_free", 1),
        ("MPI_Finalize", 1),
    ])
}

under_both! {
    fn records_exactly_the_calls_of_the_program(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "counts")).ranks(2).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        for rank in 0..2 {
            let of_rank = trace.rank(rank);
            assert_eq!(of_rank.threads.len(), 1, "threads of rank {rank}");
            assert_eq!(of_rank.calls(), calls_of_counts(rank), "rank {rank}");
            assert!(of_rank.is_finalized() && of_rank.open_calls().is_empty(), "rank {rank}");
            assert_eq!(of_rank.stopped(), None, "rank {rank}");
            assert_eq!(of_rank.file.fixed.rank as usize, rank);
            assert_eq!(of_rank.file.fixed.world_size, 2);
        }
    }

    fn alternating_polls_become_one_record_per_kind(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "polls_in_turn")).ranks(2).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let rank = trace.rank(0);
        let events = rank.threads.iter().flat_map(|thread| &thread.events);
        let mut polls: Vec<_> = events
            .filter_map(|named| {
                let (count, inside) = named.event.polls?;
                assert!(inside > 0, "{named:?}");
                Some((named.name.as_str(), named.event.communicator, count))
            })
            .collect();
        // Tool events divide a run of polls.
        let reasons = [ToolReason::Window, ToolReason::Clock, ToolReason::Entries];
        let others: usize = reasons.iter().map(|&reason| rank.tool_events(reason)).sum();
        assert!(polls.len() <= 3 * (1 + others), "{polls:?}");
        polls.sort_unstable();
        let mut sums: Vec<(&str, u64)> = Vec::new();
        for kind in polls.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            sums.push((kind[0].0, kind.iter().map(|run| run.2).sum()));
        }
        assert_eq!(sums, [("MPI_Iprobe", 10_000), ("MPI_Iprobe", 10_000), ("MPI_Testall", 10_000)]);
    }

    fn does_not_record_calls_inside_calls(mpi) {
        let job = Job::new(mpi, &victim(mpi, "callbacks")).ranks(2);
        let recorded = job.record();
        recorded.expect_code(0).output.expect_same(&job.bare());
        for rank in recorded.trace().ranks {
            assert_eq!(
                rank.calls(),
                [
                    "MPI_Init",
                    "MPI_Op_create",
                    "MPI_Allreduce",
                    "MPI_Reduce_local",
                    "MPI_Op_free",
                    "MPI_Comm_create_keyval",
                    "MPI_Comm_set_attr",
                    "MPI_Comm_dup",
                    "MPI_Comm_create_errhandler",
                    "MPI_Comm_set_errhandler",
                    "MPI_Send",
                    "MPI_Comm_free",
                    "MPI_Errhandler_free",
                    "MPI_Comm_delete_attr",
                    "MPI_Grequest_start",
                    "MPI_Grequest_complete",
                    "MPI_Wait",
                    "MPI_Comm_rank",
                    "MPI_Finalize",
                ]
            );
        }
    }

    fn records_parallel_io_once(mpi) {
        let temp = TempDir::new();
        let recorded =
            Job::new(mpi, &victim(mpi, "files")).ranks(2).argument(temp.join("data")).record();
        recorded.expect_code(0);
        for rank in recorded.trace().ranks {
            assert_eq!(
                rank.calls(),
                [
                    "MPI_Init",
                    "MPI_Comm_rank",
                    "MPI_File_open",
                    "MPI_File_set_view",
                    "MPI_File_write_at_all",
                    "MPI_File_write_at",
                    "MPI_File_sync",
                    "MPI_Barrier",
                    "MPI_File_sync",
                    "MPI_File_read_at_all",
                    "MPI_File_close",
                    "MPI_Finalize",
                ]
            );
        }
    }

    fn records_pmpi_calls_of_the_program(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "pmpi_direct")).ranks(2).record();
        recorded.expect_code(0);
        assert_eq!(recorded.output.stdout, "2 of 2\n");
        for rank in recorded.trace().ranks {
            assert_eq!(
                rank.calls(),
                [
                    "MPI_Init",
                    "MPI_Comm_rank",
                    "MPI_Comm_size",
                    "MPI_Allreduce",
                    "MPI_Barrier",
                    "MPI_Finalize",
                ]
            );
        }
    }

    fn other_tool_sees_every_call_and_recorder_records_it_once(mpi) {
        let tool = built(mpi, "other_tool", Build::Shared);
        let job = Job::new(mpi, &victim(mpi, "sends_to_self")).argument("20");
        for (order, job) in [
            ("before", job.clone().preload_before(&tool)),
            ("after", job.clone().preload_after(&tool)),
        ] {
            let recorded = job.record();
            recorded.expect_code(0);
            assert_eq!(recorded.output.stdout, "the other tool saw 20 sends\n", "{order} ours");
            let once = [("MPI_Irecv", 1), ("MPI_Send", 1), ("MPI_Wait", 1)].repeat(20);
            let expected = [&[("MPI_Init", 1)], &once[..], &[("MPI_Finalize", 1)]].concat();
            let trace = recorded.trace();
            assert_eq!(trace.rank(0).calls(), sequence(&expected), "the other tool {order} ours");
            assert!(trace.rank(0).is_finalized(), "the other tool {order} ours");
        }
    }
}

#[test]
fn one_library_records_the_same_calls_under_both_mpis() {
    let calls = |mpi| {
        let recorded = Job::new(mpi, &victim(mpi, "counts")).ranks(2).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let own = |rank: usize| -> Vec<String> {
            trace.rank(rank).calls().into_iter().map(str::to_owned).collect()
        };
        [own(0), own(1)]
    };
    assert_eq!(calls(Mpi::OpenMpi), calls(Mpi::Mpich));
}

/// Not under Open MPI: version 4 has no procedures with large counts.
#[test]
fn large_counts_are_recorded_under_the_base_name() {
    let job = Job::new(Mpi::Mpich, &victim(Mpi::Mpich, "large_counts"));
    let recorded = job.record();
    recorded.expect_code(0).output.expect_same(&job.bare());
    assert_eq!(recorded.output.stdout, "3 4 4 count 2 bytes 8\n");
    assert_eq!(
        recorded.trace().rank(0).calls(),
        [
            "MPI_Init",
            "MPI_Type_contiguous",
            "MPI_Type_commit",
            "MPI_Irecv",
            "MPI_Send",
            "MPI_Wait",
            "MPI_Type_size",
            "MPI_Allreduce",
            "MPI_Bcast",
            "MPI_Type_free",
            "MPI_Finalize",
        ]
    );
}
