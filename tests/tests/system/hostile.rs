//! Hostile programs: legal but unusual behaviour. They run as without the recorder.

use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, skip, under_both, victim};

/// Checks that a program built with a sanitizer ends as the bare one does, and that the sanitizer
/// reports nothing about the recorder.
fn check_sanitized(mpi: Mpi, build: Build) {
    let program = built(mpi, "many_threads", build);
    // GCC 12's ThreadSanitizer does not support all address layouts that newer kernels choose.
    let fixed = build == Build::Tsan && can_disable_address_randomisation();
    let job = match fixed {
        true => Job::new(mpi, "setarch".as_ref()).argument("-R").argument(program),
        false => Job::new(mpi, &program),
    };
    let job = job
        .ranks(2)
        // MPI libraries leak memory themselves.
        .environment("ASAN_OPTIONS", "detect_leaks=0")
        .environment("TSAN_OPTIONS", "report_bugs=0");
    let bare = job.bare();
    if bare.code() != 0 {
        // ThreadSanitizer and Debian's MPICH are incompatible: nothing to compare.
        assert!(build == Build::Tsan, "{bare}");
        let why = format!("the bare program ends with {}", bare.code());
        return skip(&format!("thread-sanitizer/{}", mpi.suffix()), &why);
    }
    let recorded = job.record();
    recorded.output.expect_same(&bare);
    assert!(!recorded.output.stderr.contains("Sanitizer"), "{}", recorded.output);
    for rank in &recorded.trace().ranks {
        assert_eq!(rank.count("MPI_Sendrecv"), 3 * 500 + 3 * 50);
        assert!(rank.is_finalized());
    }
}

/// Whether address space layout randomisation can be turned off; some containers forbid it.
fn can_disable_address_randomisation() -> bool {
    let tried = std::process::Command::new("setarch").args(["-R", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// Checks that a handler that calls MPI at any instruction blocks nothing, and that every event
/// that it may interrupt is recorded: `per_round` events in each of the rounds that the victim
/// prints.
fn check_handler(mpi: Mpi, kind: &str, event: &str, per_round: usize) {
    let job = Job::new(mpi, &victim(mpi, "marks_under_signals")).argument(kind);
    let recorded = job.environment("GAMMACHI_FLOPS", "1").record();
    recorded.expect_code(0);
    let rounds = recorded.output.stdout.split(' ').next().and_then(|word| word.parse().ok());
    let rounds: usize = rounds.unwrap_or_else(|| panic!("{}", recorded.output));
    let trace = recorded.trace();
    let rank = trace.rank(0);
    let events = rank.threads.iter().flat_map(|thread| &thread.events);
    assert_eq!(events.filter(|named| named.name == event).count(), rounds * per_round, "{kind}");
    assert!(rank.is_finalized());
}

under_both! {
    fn address_sanitizer(mpi) {
        check_sanitized(mpi, Build::Asan);
    }

    fn undefined_behaviour_sanitizer(mpi) {
        check_sanitized(mpi, Build::Ubsan);
    }

    fn thread_sanitizer(mpi) {
        check_sanitized(mpi, Build::Tsan);
    }

    fn signal_handler_calls_mpi_during_region_markers(mpi) {
        check_handler(mpi, "regions", "BEGIN dense", 1);
    }

    fn signal_handler_calls_mpi_during_declared_work(mpi) {
        check_handler(mpi, "work", "gammachi_work", 1);
    }

    fn signal_handler_calls_mpi_during_compute_calls(mpi) {
        check_handler(mpi, "blas", "cblas_ddot", 1);
        check_handler(mpi, "transforms", "fftw_execute", 1);
    }

    fn signal_handler_calls_mpi_while_threads_end(mpi) {
        check_handler(mpi, "threads", "MPI_Comm_rank", 3000);
    }

    fn allocates_nothing_from_the_programs_heap(mpi) {
        let job = Job::new(mpi, &victim(mpi, "counts_allocations"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(0);
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).count("MPI_Comm_rank"), 100_000);
    }

    fn records_calls_from_destructors_and_atexit(mpi) {
        let job = Job::new(mpi, &victim(mpi, "calls_from_atexit"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(0);
        assert!(recorded.output.stdout.contains("finalized 1"), "{}", recorded.output);
        let trace = recorded.trace();
        let rank = trace.rank(0);
        assert!(rank.is_finalized());
        assert_eq!(rank.threads[0].count("MPI_Comm_rank"), 3 + 11);
        // The order of destructors of thread-specific data is undefined: calls after the recorder's
        // own destructor are recorded as those of another thread.
        let others = rank.threads[1..].iter().map(|thread| thread.count("MPI_Comm_rank"));
        assert_eq!(others.sum::<usize>(), 5 + 7, "calls of the ending thread");
    }

    fn calls_after_finalize(mpi) {
        let job = Job::new(mpi, &victim(mpi, "calls_after_finalize"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(3);
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).calls().last(), Some(&"MPI_Finalize"));
        let job = job.argument("wrong");
        let (bare, recorded) = (job.bare(), job.record());
        assert_eq!(recorded.output.code(), bare.code(), "{}", recorded.output);
        assert!(recorded.trace().rank(0).is_finalized());
    }

    fn children_that_exec_other_programs(mpi) {
        let job = Job::new(mpi, &victim(mpi, "forks_and_execs"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(0);
        assert!(recorded.output.stdout.contains("vfork and exec 12"), "{}", recorded.output);
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).count("MPI_Comm_rank"), 30);
        let files = std::fs::read_dir(trace.directory.join("ranks-000")).expect("the directory exists");
        assert_eq!(files.count(), 1, "files of the run");
    }

    fn library_that_called_mpi_is_closed(mpi) {
        let library = built(mpi, "called_and_closed", Build::Shared);
        let job = Job::new(mpi, &victim(mpi, "closes_library")).argument(&library);
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(0);
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).count("MPI_Comm_rank"), 3 * 21);
        assert_eq!(trace.rank(0).threads.len(), 2);
    }

    fn threads_of_both_ranks_at_once(mpi) {
        let job = Job::new(mpi, &victim(mpi, "many_threads")).ranks(2);
        let recorded = job.record();
        recorded.expect_code(0);
        for rank in &recorded.trace().ranks {
            assert_eq!(rank.threads.len(), 7);
            let mut counts: Vec<usize> =
                rank.threads.iter().map(|thread| thread.count("MPI_Sendrecv")).collect();
            counts.sort_unstable();
            assert_eq!(counts, [0, 50, 50, 50, 500, 500, 500]);
        }
        check_threads_in_report(&recorded.directory());
    }
}

/// γ_i is the union of the threads' useful intervals: not less than any thread's, not more than all.
fn check_threads_in_report(directory: &std::path::Path) {
    use gammachi_analyzer::metrics::{Metrics, Selection};
    use gammachi_analyzer::timeline::GlobalTimeline;
    let run = gammachi_analyzer::trace::Run::open(directory).expect("it can be read");
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("it has figures");
    for rank in &metrics.ranks {
        assert_eq!((rank.threads, rank.by_thread.len()), (7, 7));
        let useful: Vec<f64> = rank.by_thread.iter().map(|thread| thread.compute_s).collect();
        let (most, sum) = (useful.iter().copied().fold(0.0, f64::max), useful.iter().sum::<f64>());
        assert!(rank.compute_s >= most * 0.999_999 && rank.compute_s <= sum, "{rank:?}");
        assert!(rank.compute_s <= rank.elapsed_s * 1.000_001);
        let calls: u64 = rank.by_thread.iter().map(|thread| thread.calls).sum();
        assert_eq!(calls, rank.events);
        assert!(rank.by_thread.iter().filter(|thread| thread.number > 0).all(|t| t.mpi_s > 0.0));
    }
    assert_eq!(metrics.messages.expect("level 1").total.count, 2 * 1650);
}
