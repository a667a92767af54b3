//! Every way to die: the trace contains each call that had returned and shows the others as open,
//! and the job ends as it would without the recorder.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;

use system_tests::exit_codes::{MIN_PROBABILITY, probability_of_one_distribution};
use system_tests::{Job, Mpi, Recorded, Recording, sequence, under_both, victim};
use trace_format::header::{Definition, Phase, UsageReading};

/// Bare and recorded runs of each if all exit codes are equal.
const MIN_RUNS: usize = 2;
/// Bare and recorded runs of each if exit codes vary and are compared as distributions.
const MAX_RUNS: usize = 12;

/// Runs a victim whose rank 1 dies after 1000 calls, a barrier, and calls that `check` checks. The
/// process itself has to end as the bare one does, every time; the launcher's exit codes need the
/// same distribution.
fn check_death_by(mpi: Mpi, name: &str, check: impl Fn(&Recorded) -> usize) {
    let program = victim(mpi, name);
    let alone = Job::new(mpi, &program).without_launcher().argument("alone");
    let (bare, recorded) = (alone.bare(), alone.record());
    assert_eq!(recorded.output.status.into_raw(), bare.status.into_raw(), "{}", recorded.output);
    assert_ne!(bare.status.into_raw(), 0, "{bare}");

    let job = Job::new(mpi, &program).ranks(2);
    let (mut bare, mut codes, mut events) = (Vec::new(), Vec::new(), 0);
    while bare.len() < MAX_RUNS {
        let recorded = job.record();
        events = check(&recorded);
        codes.push(recorded.output.code());
        bare.push(job.bare().code());
        let same = bare.iter().chain(&codes).all(|code| *code == bare[0]);
        if same && bare.len() >= MIN_RUNS {
            break;
        }
    }
    let probability = probability_of_one_distribution(&bare, &codes);
    assert!(
        probability >= MIN_PROBABILITY,
        "recorded runs end with {codes:?}, bare runs with {bare:?}"
    );
    row(mpi, name, &codes, &bare, events);
}

/// Runs a victim whose rank 1 dies after 1000 calls, a barrier and 500 calls.
fn check_death(mpi: Mpi, name: &str) {
    check_death_by(mpi, name, check_trace_of_death);
}

/// Prints a row of the table of `scripts/kill-ranks`.
fn row(mpi: Mpi, name: &str, codes: &[i32], bare_codes: &[i32], events: usize) {
    let list = |codes: &[i32]| {
        let different: BTreeSet<i32> = codes.iter().copied().collect();
        different.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
    };
    let (mpi, codes, bare) = (mpi.suffix(), list(codes), list(bare_codes));
    println!("DEATH {mpi:<8} {name:<28} {codes:>9} {bare:>9} {events:>16}");
}

/// Checks that all calls of the rank that died are in its trace, and returns their number.
fn check_trace_of_death(recorded: &Recorded) -> usize {
    assert!(recorded.output.recorder_lines().is_empty(), "{}", recorded.output);
    let trace = recorded.trace();
    let all = [("MPI_Init", 1), ("MPI_Comm_rank", 1000), ("MPI_Barrier", 1)];
    let dead = trace.rank(1);
    let expected = [&all[..], &[("MPI_Comm_rank", 500)]].concat();
    assert_eq!(dead.calls(), sequence(&expected), "the rank that died");
    assert!(dead.open_calls().is_empty() && !dead.is_finalized());
    // The other rank may be killed before it reaches MPI_Recv.
    let other = trace.rank(0);
    let calls = other.calls();
    let expected = [&all[..], &[("MPI_Recv", 1)]].concat();
    assert_eq!(calls, sequence(&expected)[..calls.len()], "the rank that waited");
    assert!(calls.len() >= 1001 && !other.is_finalized());
    dead.calls().len()
}

/// Starts ranks that wait in MPI_Recv and outside MPI, ends the job by `kill`, and checks their traces.
///
/// The exit code is printed, not checked: the exit code of a launcher that itself received the
/// signals depends on which process ends first (MPICH's: 255, and 0 once under load).
fn check_killed_job(mpi: Mpi, name: &str, kill: impl Fn(&Recording)) {
    let job = Job::new(mpi, &victim(mpi, "blocks_in_recv")).ranks(2);
    let mut running = job.start_recording();
    let processes = running.wait_for(|trace| {
        let blocked = trace.rank(0).open_calls() == ["MPI_Recv"];
        let ready = trace.rank(1).count("MPI_Comm_rank") == 100;
        let pid = |rank: usize| trace.rank(rank).file.fixed.pid as libc::pid_t;
        (blocked && ready).then(|| [pid(0), pid(1)])
    });
    kill(&running);
    let recorded = running.end();
    // A launcher that is killed may leave its ranks running.
    for process in processes {
        // SAFETY: plain numbers; the processes were ranks of our own job a moment ago.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
    let trace = recorded.trace();
    let calls = [("MPI_Init", 1), ("MPI_Comm_rank", 100)];
    assert_eq!(trace.rank(1).calls(), sequence(&calls));
    assert_eq!(trace.rank(0).calls(), [&sequence(&calls)[..], &["MPI_Recv"]].concat());
    assert_eq!(trace.rank(0).open_calls(), ["MPI_Recv"]);
    row(mpi, name, &[recorded.output.code()], &[], trace.rank(1).calls().len());
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

    fn killed_rank_leaves_what_it_used(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "dies_after_growing")).ranks(2).record();
        let trace = recorded.trace();
        for rank in [trace.rank(0), trace.rank(1)] {
            let readings: Vec<UsageReading> = rank.file.definitions.iter().filter_map(|of| match of {
                Definition::UsageReading(reading) => Some(*reading),
                _ => None,
            }).collect();
            let during = readings.iter().filter(|one| one.phase == Phase::During);
            let first = readings.iter().find(|one| one.phase == Phase::Init).expect("at its begin");
            // However long it lived, the last two are kept.
            assert_eq!(during.clone().count(), 2, "{readings:?}");
            let last = during.max_by_key(|one| one.ticks).unwrap();
            assert!(last.on_cpu_ns > first.on_cpu_ns && last.ticks > first.ticks, "{readings:?}");
            let grown = last.resident_bytes.saturating_sub(first.resident_bytes);
            assert!(grown > 64 << 20 && last.peak_resident_bytes >= last.resident_bytes);
        }
    }

    fn underscore_exit(mpi) {
        check_death(mpi, "dies_underscore_exit");
    }

    fn exit_without_finalize(mpi) {
        check_death(mpi, "dies_exit_without_finalize");
    }

    fn abort_inside_a_call(mpi) {
        check_death_by(mpi, "dies_in_callback", |recorded| {
            let trace = recorded.trace();
            let dead = trace.rank(1);
            let expected = [
                ("MPI_Init", 1),
                ("MPI_Comm_rank", 1000),
                ("MPI_Barrier", 1),
                ("MPI_Comm_rank", 499),
                ("MPI_Op_create", 1),
                ("MPI_Reduce_local", 1),
            ];
            assert_eq!(dead.calls(), sequence(&expected));
            assert_eq!(dead.open_calls(), ["MPI_Reduce_local"]);
            dead.calls().len()
        });
    }

    fn one_rank_dies_while_another_continues(mpi) {
        check_death_by(mpi, "dies_while_others_go_on", |recorded| {
            let trace = recorded.trace();
            let dead = trace.rank(1);
            assert_eq!((dead.count("MPI_Comm_rank"), dead.open_calls().len()), (1500, 0));
            let other = trace.rank(0);
            assert!(other.count("MPI_Comm_rank") >= 1000 && !other.is_finalized());
            dead.calls().len()
        });
    }

    fn launcher_is_killed(mpi) {
        check_killed_job(mpi, "launcher_killed", |job| job.signal_launcher(libc::SIGKILL));
    }

    fn job_reaches_its_time_limit(mpi) {
        check_killed_job(mpi, "wall_time", |job| {
            job.signal_all(libc::SIGTERM);
            std::thread::sleep(std::time::Duration::from_millis(300));
            job.signal_all(libc::SIGKILL);
        });
    }

    fn shows_mpi_abort_as_open_call(mpi) {
        let job = Job::new(mpi, &victim(mpi, "mpi_abort_7"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(7);
        let trace = recorded.trace();
        let expected = [("MPI_Init", 1), ("MPI_Comm_rank", 10), ("MPI_Abort", 1)];
        assert_eq!(trace.rank(0).calls(), sequence(&expected));
        assert_eq!(trace.rank(0).open_calls(), ["MPI_Abort"]);
        row(mpi, "mpi_abort_7", &[recorded.output.code()], &[7], trace.rank(0).calls().len());
        assert!(!trace.rank(0).is_finalized());
    }

    fn shows_waiting_rank_during_and_after_the_job(mpi) {
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
