//! Callers from hell: what a program may do and few do. It behaves as without the recorder.

use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, skip, under_both, victim};

/// A program that a sanitizer watches ends as the bare one does, and the sanitizer has nothing to say of
/// the recorder.
fn check_sanitized(mpi: Mpi, build: Build) {
    let program = built(mpi, "many_threads", build);
    // GCC 12's ThreadSanitizer knows fewer places that a kernel may choose than newer kernels have.
    let fixed = build == Build::Tsan && places_can_be_fixed();
    let job = match fixed {
        true => Job::new(mpi, "setarch".as_ref()).argument("-R").argument(program),
        false => Job::new(mpi, &program),
    };
    let job = job
        .ranks(2)
        // What the MPI libraries leak at their end is theirs.
        .environment("ASAN_OPTIONS", "detect_leaks=0")
        .environment("TSAN_OPTIONS", "report_bugs=0");
    let bare = job.bare();
    if bare.code() != 0 {
        // ThreadSanitizer and Debian's MPICH do not go together: nothing to compare.
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
fn places_can_be_fixed() -> bool {
    let tried = std::process::Command::new("setarch").args(["-R", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// A handler that calls MPI at any instruction holds nothing up, and what it interrupts is all recorded.
fn check_handler(mpi: Mpi, kind: &str, event: &str, a_time: usize) {
    let job = Job::new(mpi, &victim(mpi, "marks_under_signals")).argument(kind);
    let recorded = job.environment("GAMMACHI_FLOPS", "1").record();
    recorded.expect_code(0);
    let times = recorded.output.stdout.split(' ').next().and_then(|word| word.parse().ok());
    let times: usize = times.unwrap_or_else(|| panic!("{}", recorded.output));
    let trace = recorded.trace();
    let rank = trace.rank(0);
    let events = rank.threads.iter().flat_map(|thread| &thread.events);
    assert_eq!(events.filter(|named| named.name == event).count(), times * a_time, "{kind}");
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

    fn a_signal_handler_calls_mpi_among_region_marks(mpi) {
        check_handler(mpi, "regions", "BEGIN dense", 1);
    }

    fn a_signal_handler_calls_mpi_among_declared_work(mpi) {
        check_handler(mpi, "work", "gammachi_work", 1);
    }

    fn a_signal_handler_calls_mpi_among_compute_calls(mpi) {
        check_handler(mpi, "blas", "cblas_ddot", 1);
        check_handler(mpi, "transforms", "fftw_execute", 1);
    }

    fn a_signal_handler_calls_mpi_while_threads_end(mpi) {
        check_handler(mpi, "threads", "MPI_Comm_rank", 3000);
    }

    fn nothing_is_allocated_from_the_programs_memory(mpi) {
        let job = Job::new(mpi, &victim(mpi, "counts_allocations"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(0);
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).count("MPI_Comm_rank"), 100_000);
    }

    fn calls_from_destructors_and_atexit(mpi) {
        let job = Job::new(mpi, &victim(mpi, "calls_from_atexit"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(0);
        assert!(recorded.output.stdout.contains("finalized 1"), "{}", recorded.output);
        let trace = recorded.trace();
        let rank = trace.rank(0);
        assert!(rank.is_finalized());
        assert_eq!(rank.threads[0].count("MPI_Comm_rank"), 3 + 11);
        // In which order destructors of thread-specific data run is not defined: calls behind the
        // recorder's own are those of a further thread.
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

    fn children_that_become_other_programs(mpi) {
        let job = Job::new(mpi, &victim(mpi, "forks_and_execs"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(0);
        assert!(recorded.output.stdout.contains("vfork and exec 12"), "{}", recorded.output);
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).count("MPI_Comm_rank"), 30);
        let files = std::fs::read_dir(trace.directory.join("ranks-000")).expect("it is there");
        assert_eq!(files.count(), 1, "files of the run");
    }

    fn a_library_that_called_mpi_is_closed(mpi) {
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
