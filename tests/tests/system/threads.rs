//! Threads and child processes: one stream for each thread, none for a child process.

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use system_tests::{Job, sequence, under_both, victim};

under_both! {
    fn four_threads_at_once(mpi) {
        let job = Job::new(mpi, &victim(mpi, "threads"));
        let job = ["4", "1000", "8192", "1"].iter().fold(job, |job, argument| job.argument(argument));
        let recorded = job.record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let rank = trace.rank(0);
        assert_eq!(rank.threads.len(), 5);
        assert_eq!(rank.calls(), ["MPI_Init_thread", "MPI_Comm_rank", "MPI_Finalize"]);
        let round = [("MPI_Isend", 1), ("MPI_Recv", 1), ("MPI_Wait", 1)].repeat(1000);
        for thread in &rank.threads[1..] {
            assert_eq!(thread.calls(), sequence(&round), "thread {}", thread.number);
        }
        assert!(rank.is_finalized() && rank.open_calls().is_empty());
    }

    fn many_threads_that_end_before_finalize(mpi) {
        let job = Job::new(mpi, &victim(mpi, "threads"));
        let job = ["8", "5", "8192", "10"].iter().fold(job, |job, argument| job.argument(argument));
        let recorded = job.record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).threads.len(), 81);
        for thread in &trace.rank(0).threads[1..] {
            assert_eq!(thread.calls().len(), 15, "thread {}", thread.number);
        }
        assert_eq!(trace.rank(0).count("MPI_Comm_rank"), 10);
    }

    fn window_changes_on_stacks_of_64_kb(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "small_stacks")).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).threads.len(), 9);
        for thread in &trace.rank(0).threads[1..] {
            assert_eq!(thread.count("MPI_Comm_rank"), 40_000, "thread {}", thread.number);
            assert!(thread.count("TOOL") >= 2, "thread {}", thread.number);
        }
    }

    fn main_thread_asleep_in_join_does_not_compute(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "sleeps_in_join")).ranks(2).record();
        recorded.expect_code(0);
        let run = Run::open(&recorded.directory()).expect("it can be read");
        let timeline = GlobalTimeline::new(&run);
        let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("it has figures");
        for rank in &metrics.ranks {
            let cpu_time = rank.cpu_time.expect("CPU time was read");
            // Rank 0's second thread may poll all the time and occupy a core: it is in MPI.
            assert!(rank.compute_s > 0.35, "{rank:?}");
            assert!(cpu_time.asleep_s > 0.5 * rank.compute_s, "{rank:?}");
        }
    }

    fn thread_that_outlives_finalize(mpi) {
        let job = Job::new(mpi, &victim(mpi, "thread_outlives_finalize"));
        let recorded = job.record();
        recorded.expect_code(0).output.expect_same(&job.bare());
        let trace = recorded.trace();
        assert!(trace.rank(0).is_finalized());
        assert_eq!(trace.rank(0).threads[1].count("MPI_Comm_rank"), 100);
    }

    fn children_record_nothing(mpi) {
        let job = Job::new(mpi, &victim(mpi, "forks"));
        let recorded = job.record();
        recorded.expect_code(0).output.expect_same(&job.bare());
        assert!(recorded.output.stdout.contains("child 1 ends with 0xb00\n"), "{}", recorded.output);
        let expected = [("MPI_Init", 1), ("MPI_Comm_rank", 50), ("MPI_Finalize", 1)];
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).calls(), sequence(&expected));
        assert!(trace.rank(0).is_finalized());
        let files = std::fs::read_dir(trace.directory.join("ranks-000")).expect("the directory exists");
        assert_eq!(files.count(), 1, "files of the run");
    }

    // The child resolves functions that the parent never called, and so does code of its own that asks the loader.
    fn child_waits_for_no_lock_of_the_loader(mpi) {
        let program = victim(mpi, "forks_beside_loader");
        Job::new(mpi, &program).bare().expect_code(0);
        // Another thread of the program is inside the loader while the process forks.
        Job::new(mpi, &program).argument("program").record().expect_code(0);
        // A thread of the recorder is, at almost every moment.
        let job = Job::new(mpi, &program).argument("recorder");
        let job = job.environment("GAMMACHI_LEVEL", "2").environment("GAMMACHI_PATHS_FROM", "0");
        job.record().expect_code(0);
    }

    fn child_of_a_thread_records_nothing(mpi) {
        let job = Job::new(mpi, &victim(mpi, "forks_in_thread"));
        let recorded = job.record();
        recorded.expect_code(0).output.expect_same(&job.bare());
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).count("MPI_Comm_rank"), 30);
        assert_eq!(trace.rank(0).threads.len(), 2);
    }
}
