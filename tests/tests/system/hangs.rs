//! Which rank waits for which: reports of jobs that hang, while they run and after their end.

use gammachi_analyzer::diagnosis::{Diagnosis, Evidence};
use gammachi_analyzer::metrics::{CauseKind, Metrics, Selection, Unfinished};
use gammachi_analyzer::present::{Report, report as presented};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::{ProcessState, Run};
use system_tests::{Job, Recording, under_both, victim};

/// The screen, and the figures of the ranks that did not finish.
fn report(directory: &std::path::Path) -> (String, Unfinished) {
    let run = Run::open(directory).expect("it can be read");
    assert_eq!(run.diagnoses, []);
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("it has figures");
    let diagnosis = Diagnosis::new(Evidence::of_metrics(&run, &timeline, &metrics));
    let screen = presented::screen(&Report::new(&diagnosis, &[]), false);
    (screen, metrics.unfinished.expect("some rank did not finish"))
}

/// Ends a job that hangs.
fn end(running: Recording) {
    running.signal_all(libc::SIGKILL);
    assert_ne!(running.end().output.code(), 0);
}

under_both! {
    fn names_deadlock_during_and_after_the_job(mpi) {
        let job = Job::new(mpi, &victim(mpi, "deadlock_recv_recv")).ranks(3);
        let mut running = job.start_recording();
        let processes = running.wait_for(|trace| {
            let open: Vec<_> = trace.ranks.iter().flat_map(|rank| rank.open_calls()).collect();
            let pid = |rank: usize| trace.rank(rank).file.fixed.pid as libc::pid_t;
            (open == ["MPI_Recv", "MPI_Recv", "MPI_Barrier"]).then(|| [0, 1, 2].map(pid))
        });
        let (screen, found) = report(&running.directory());
        assert_eq!(found.deadlocks.len(), 1, "{screen}");
        assert_eq!(found.deadlocks[0].ranks, [0, 1]);
        assert!(found.deadlocks[0].certain && found.running && !found.at_least, "{screen}");
        assert!(found.ranks.iter().all(|rank| rank.stuck && rank.process.runs()), "{screen}");
        let [open] = &found.collectives[..] else { panic!("{screen}") };
        assert_eq!((open.function.as_str(), open.number), ("MPI_Barrier", Some(0)));
        assert_eq!((&open.inside.0[..], &open.missing.0[..]), (&[2][..], &[0, 1][..]));
        assert!(screen.contains("in MPI_Recv from 1, tag 7"), "{screen}");
        running.signal_all(libc::SIGKILL);
        for process in processes {
            // SAFETY: plain numbers; the processes are ranks of our own job.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
        let recorded = running.end();
        // The processes may take a moment to disappear.
        for _ in 0..6000 {
            if !report(&recorded.directory()).1.running {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let (screen, found) = report(&recorded.directory());
        assert_eq!(found.deadlocks[0].ranks, [0, 1], "{screen}");
        assert!(!found.running && found.at_least, "{screen}");
        assert!(found.ranks.iter().all(|rank| rank.process == ProcessState::Gone), "{screen}");
    }

    fn names_rank_that_never_reaches_a_barrier(mpi) {
        let job = Job::new(mpi, &victim(mpi, "never_reaches_barrier")).ranks(3);
        let mut running = job.start_recording();
        running.wait_for(|trace| {
            let inside = |rank: usize| trace.rank(rank).open_calls() == ["MPI_Barrier"];
            let last = trace.rank(2);
            let outside = last.count("MPI_Barrier") == 5 && last.open_calls().is_empty();
            (inside(0) && inside(1) && outside && trace.rank(0).count("MPI_Barrier") == 6
                && trace.rank(1).count("MPI_Barrier") == 6).then_some(())
        });
        let (screen, found) = report(&running.directory());
        assert_eq!(found.deadlocks, [], "{screen}");
        let [cause] = &found.causes[..] else { panic!("{screen}") };
        assert_eq!((cause.rank, cause.kind), (2, CauseKind::OutsideMpi), "{screen}");
        assert_eq!(cause.waiting.0, [0, 1]);
        assert!(screen.contains("missing: 2"), "{screen}");
        assert!(screen.contains("collective #5 of MPI_COMM_WORLD"), "{screen}");
        end(running);
    }

    fn reports_rank_that_died(mpi) {
        let mut running = Job::new(mpi, &victim(mpi, "blocks_in_recv")).ranks(2).start_recording();
        let process = running.wait_for(|trace| {
            let waits = trace.rank(0).open_calls() == ["MPI_Recv"];
            let outside = trace.rank(1).count("MPI_Comm_rank") == 100
                && trace.rank(1).open_calls().is_empty();
            (waits && outside).then(|| trace.rank(1).file.fixed.pid)
        });
        // SAFETY: plain numbers; the process is rank 1 of our own job, which does not end by
        // itself.
        unsafe { libc::kill(process as libc::pid_t, libc::SIGKILL) };
        let recorded = running.end();
        let (screen, found) = report(&recorded.directory());
        let dead = found.rank(1).expect("it did not finish");
        assert_eq!(dead.process, ProcessState::Gone, "{screen}");
        assert!(dead.is_outside(), "{screen}");
        let last = &dead.threads[0].last_calls;
        assert_eq!(last.last().map(|call| call.function.as_str()), Some("MPI_Comm_rank"));
        let [cause] = &found.causes[..] else { panic!("no cause is named\n{screen}") };
        assert_eq!((cause.rank, cause.kind), (1, CauseKind::OutsideMpi), "{screen}");
        assert_eq!(cause.waiting.0, [0], "{screen}");
        assert!(screen.contains("in MPI_Recv from 1"), "{screen}");
    }
}
