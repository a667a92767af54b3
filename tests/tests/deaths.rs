//! Every way to die: what had returned is in the trace, what had not is shown open, and the job ends
//! as it would have ended without the recorder.

use system_tests::{Job, Mpi, Recorded, sequence, under_both, victim};

/// A launcher that sees a rank die kills the others, and which of them it reports varies: MPICH's
/// gives 5 for an `exit(5)` in 95 of 100 bare runs, else 1 or 9.
const BARE_RUNS: usize = 10;
/// Recorded runs of which one must end as a bare one did.
const RECORDED_RUNS: usize = 5;

/// Runs a victim of which rank 1 dies after 1000 calls, a barrier and 500 calls; checks what is in
/// its trace, and that the exit code is one that the bare program gives.
fn check_death(mpi: Mpi, name: &str) {
    let job = Job::new(mpi, &victim(mpi, name)).ranks(2);
    let (mut bare_codes, mut codes) = (Vec::new(), Vec::new());
    for _ in 0..RECORDED_RUNS {
        let recorded = job.record();
        check_trace_of_death(&recorded);
        let code = recorded.output.code();
        while !bare_codes.contains(&code) && bare_codes.len() < BARE_RUNS {
            bare_codes.push(job.bare().code());
        }
        if bare_codes.contains(&code) {
            return;
        }
        codes.push(code);
    }
    panic!("recorded runs end with {codes:?}, bare runs with {bare_codes:?}");
}

fn check_trace_of_death(recorded: &Recorded) {
    assert!(recorded.output.own_lines().is_empty(), "{}", recorded.output);
    let trace = recorded.trace();
    let all = [("MPI_Init", 1), ("MPI_Comm_rank", 1000), ("MPI_Barrier", 1)];
    let dead = trace.rank(1);
    let expected = [&all[..], &[("MPI_Comm_rank", 500)]].concat();
    assert_eq!(dead.calls(), sequence(&expected), "the rank that died");
    assert!(dead.open_calls().is_empty() && !dead.is_finalized());
    // The other rank may be killed before it gets to MPI_Recv.
    let other = trace.rank(0);
    let calls = other.calls();
    let expected = [&all[..], &[("MPI_Recv", 1)]].concat();
    assert_eq!(calls, sequence(&expected)[..calls.len()], "the rank that waited");
    assert!(calls.len() >= 1001 && !other.is_finalized());
}

under_both! {
    fn sigkill(mpi) {
        check_death(mpi, "dies_sigkill");
    }

    fn sigsegv(mpi) {
        check_death(mpi, "dies_sigsegv");
    }

    fn sigterm(mpi) {
        check_death(mpi, "dies_sigterm");
    }

    fn abort(mpi) {
        check_death(mpi, "dies_abort");
    }

    fn underscore_exit(mpi) {
        check_death(mpi, "dies_underscore_exit");
    }

    fn exit_without_finalize(mpi) {
        check_death(mpi, "dies_exit_without_finalize");
    }

    fn mpi_abort_is_shown_open(mpi) {
        let job = Job::new(mpi, &victim(mpi, "mpi_abort_7"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(7);
        let trace = recorded.trace();
        let expected = [("MPI_Init", 1), ("MPI_Comm_rank", 10), ("MPI_Abort", 1)];
        assert_eq!(trace.rank(0).calls(), sequence(&expected));
        assert_eq!(trace.rank(0).open_calls(), ["MPI_Abort"]);
        assert!(!trace.rank(0).is_finalized());
    }

    fn a_rank_that_waits_is_shown_while_the_job_runs_and_after_it_was_killed(mpi) {
        let mut running = Job::new(mpi, &victim(mpi, "blocks_in_recv")).ranks(2).start_recording();
        let process = running.wait_for(|trace| {
            let blocked = trace.rank(0).open_calls() == ["MPI_Recv"];
            // The other rank's last call has returned too.
            let ready = trace.rank(1).count("MPI_Comm_rank") == 100
                && trace.rank(1).open_calls().is_empty();
            (blocked && ready).then(|| trace.rank(1).file.fixed.pid)
        });
        // SAFETY: plain numbers; the process is rank 1 of our own job, which does not end by itself.
        unsafe { libc::kill(process as libc::pid_t, libc::SIGKILL) };
        let recorded = running.end();
        assert_ne!(recorded.output.code(), 0, "{}", recorded.output);
        let trace = recorded.trace();
        let calls = [("MPI_Init", 1), ("MPI_Comm_rank", 100)];
        assert_eq!(trace.rank(1).calls(), sequence(&calls));
        assert!(trace.rank(1).open_calls().is_empty());
        assert_eq!(trace.rank(0).calls(), [&sequence(&calls)[..], &["MPI_Recv"]].concat());
        assert_eq!(trace.rank(0).open_calls(), ["MPI_Recv"]);
    }
}
