//! `gammachi top`: what ranks of a running job do, against what is known of the program and against the report.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use system_tests::directories::TempDir;
use system_tests::{Job, Recording, command, under_both, under_mpich, victim};

fn gammachi(arguments: &[&str], run: &Path) -> Value {
    let output = Command::new(command()).args(arguments).arg(run).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn top(run: &Path) -> Value {
    gammachi(&["top", "--once", "--json"], run)
}

/// States of the ranks, and whom they wait for.
fn states(top: &Value) -> Vec<(&str, &Value)> {
    let ranks = top["ranks"].as_array().expect("ranks");
    ranks.iter().map(|rank| (rank["state"].as_str().expect("text"), &rank["waits_for"])).collect()
}

fn alarms(top: &Value) -> Vec<(&str, u64)> {
    let alarms = top["alarms"].as_array().expect("alarms").iter();
    alarms
        .map(|of| (of["kind"].as_str().expect("text"), of["rank"].as_u64().expect("a rank")))
        .collect()
}

fn end(running: Recording) {
    running.signal_all(libc::SIGKILL);
    assert_ne!(running.end().output.code(), 0);
}

under_both! {
    fn names_deadlock(mpi) {
        let job = Job::new(mpi, &victim(mpi, "deadlock_recv_recv")).ranks(3);
        let mut running = job.start_recording();
        running.wait_for(|trace| {
            let open: Vec<_> = trace.ranks.iter().flat_map(|rank| rank.open_calls()).collect();
            (open == ["MPI_Recv", "MPI_Recv", "MPI_Barrier"]).then_some(())
        });
        let found = top(&running.directory());
        let waits = [[1].as_slice(), &[0], &[0, 1]].map(|ranks| serde_json::json!(ranks));
        assert_eq!(states(&found), waits.each_ref().map(|ranks| ("in_mpi", ranks)), "{found}");
        assert_eq!(found["ranks"][2]["call"], "MPI_Barrier");
        assert_eq!(alarms(&found), [("deadlock", 0)], "{found}");
        end(running);
    }

    fn names_rank_that_others_wait_for_until_it_is_stopped_and_killed(mpi) {
        let job = Job::new(mpi, &victim(mpi, "never_reaches_barrier")).ranks(3);
        let mut running = job.start_recording();
        let process = running.wait_for(|trace| {
            let inside = |rank: usize| trace.rank(rank).open_calls() == ["MPI_Barrier"]
                && trace.rank(rank).count("MPI_Barrier") == 6;
            let outside = trace.rank(2).count("MPI_Barrier") == 5
                && trace.rank(2).open_calls().is_empty();
            (inside(0) && inside(1) && outside).then(|| trace.rank(2).file.fixed.pid as libc::pid_t)
        });
        let (nobody, last) = (Value::Null, serde_json::json!([2]));
        let found = top(&running.directory());
        let expected = [("in_mpi", &last), ("in_mpi", &last), ("computing", &nobody)];
        assert_eq!((states(&found), alarms(&found)), (expected.to_vec(), vec![]), "{found}");
        // SAFETY: plain numbers; the process is rank 2 of our own job.
        unsafe { libc::kill(process, libc::SIGSTOP) };
        let found = top(&running.directory());
        assert_eq!((states(&found)[2].0, alarms(&found)), ("stopped", vec![("stopped", 2)]), "{found}");
        // SAFETY: as above.
        unsafe { libc::kill(process, libc::SIGKILL) };
        let directory = running.directory();
        let dies = |found: &Value| states(found)[2].0 == "dead" && alarms(found).contains(&("dead", 2));
        assert!((0..60).any(|_| dies(&top(&directory))));
        running.signal_all(libc::SIGKILL);
        running.end();
    }

    fn figures_are_those_of_the_report_of_the_same_seconds(mpi) {
        for (program, turn_s) in [("alternates", 0.010), ("sleeps_in_turn", 0.020)] {
            let folder = TempDir::new();
            let ends = folder.join("ends");
            let mut running = Job::new(mpi, &victim(mpi, program))
                .ranks(2)
                .argument(ends.to_str().expect("text"))
                .start_recording();
            running.wait_for(|trace| (trace.rank(0).count("MPI_Barrier") > 40).then_some(()));
            let found = top(&running.directory());
            std::fs::write(&ends, "").expect("it can be written");
            let recorded = running.end();
            recorded.expect_code(0);
            let at_s = found["at_s"].as_f64().expect("a number");
            for rank in found["ranks"].as_array().expect("ranks") {
                let [efficiency, observed_s] = ["efficiency", "observed_s"]
                    .map(|key| rank[key].as_f64().unwrap_or_else(|| panic!("{key}: {found}")));
                let window = format!("{:.6},{at_s:.6}", (at_s - observed_s).max(0.0));
                let arguments = ["report", "--json", "--window", &window];
                let report = gammachi(&arguments, &recorded.directory());
                let number = rank["rank"].as_u64().expect("a number") as usize;
                let [computing_s, elapsed_s] = ["compute_s", "elapsed_s"]
                    .map(|key| report["ranks"][number][key].as_f64().expect("a number"));
                let difference = efficiency - computing_s / elapsed_s;
                println!("TOP {program} rank {number}: {efficiency:.4}, off by {difference:.5}");
                // Ranks are looked at one after the other.
                assert!(difference.abs() < 0.01, "{found}\n{}", report["ranks"][number]);
            }
            let per_s = found["iterations_per_s"].as_f64().unwrap_or_else(|| panic!("{found}"));
            assert!(per_s > 0.0 && per_s <= 1.0 / turn_s, "{program}: {found}");
            let after = top(&recorded.directory());
            assert!(states(&after).iter().all(|(state, _)| *state == "finished"), "{after}");
            assert!(alarms(&after).is_empty() && after["at_s"].is_null(), "{after}");
            let watched = Command::new(command()).arg("top").arg(recorded.directory()).output();
            let stderr = String::from_utf8_lossy(&watched.expect("it starts").stderr).into_owned();
            assert!(stderr.contains("no rank of this host is running; gammachi report"), "{stderr}");
        }
    }
}

under_mpich! {
    fn knows_where_ranks_stand_whichever_window_is_in_use(mpi) {
        // A thread has two windows of some thousand calls, which it fills in turn.
        for barriers in [5_000, 8_000, 12_000] {
            let job = Job::new(mpi, &victim(mpi, "never_reaches_barrier")).ranks(2);
            let mut running = job.argument(barriers.to_string()).start_recording();
            running.wait_for(|trace| {
                let outside = trace.rank(1).count("MPI_Barrier") == barriers
                    && trace.rank(1).open_calls().is_empty();
                (outside && trace.rank(0).open_calls() == ["MPI_Barrier"]).then_some(())
            });
            let found = top(&running.directory());
            let waits = serde_json::json!([1]);
            let expected = [("in_mpi", &waits), ("computing", &Value::Null)];
            assert_eq!(states(&found), expected, "{barriers} barriers: {found}");
            end(running);
        }
    }
}

#[test]
fn refuses_what_is_no_run_or_has_ended() {
    let folder = TempDir::new();
    for (path, words) in
        [(folder.join("nothing"), "no such run directory"), (folder.path().to_owned(), "")]
    {
        let output = Command::new(command()).arg("top").arg(&path).output().expect("it starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.contains(path.to_str().expect("text")) && stderr.contains(words),
            "{stderr}"
        );
    }
}
