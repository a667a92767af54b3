//! `--from-start`: figures from the start of the processes.

use std::process::{Command, Stdio};

use system_tests::kernels::command;
use system_tests::{Job, Recorded, under_both, victim};

fn report(recorded: &Recorded, more: &[&str]) -> serde_json::Value {
    let mut command = Command::new(command());
    command.arg("report").arg(recorded.directory()).arg("--json").args(more).stdin(Stdio::null());
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

under_both! {
    fn includes_time_before_mpi_init(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "starts_late")).ranks(2).record();
        recorded.expect_code(0);
        let (usual, whole) = (report(&recorded, &[]), report(&recorded, &["--from-start"]));
        let elapsed = |report: &serde_json::Value| report["elapsed_s"].as_f64().expect("a number");
        assert_eq!(usual["from_start"], false, "{usual}");
        assert_eq!(whole["from_start"], true, "{whole}");
        // The kernel gives the start time of a process in steps of 10 ms.
        assert!(elapsed(&whole) >= elapsed(&usual) + 0.29, "{whole}\n{usual}");
        let ranks = whole["ranks"].as_array().expect("a list");
        assert_eq!(ranks.len(), 2);
        for rank in ranks {
            assert!(rank["compute_s"].as_f64().expect("a number") >= 0.29, "{rank}");
        }
    }
}
