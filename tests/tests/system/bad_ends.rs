//! Jobs under `gammachi run` that end badly: who died first, how, and who waited for it until when.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use system_tests::directories::TempDir;
use system_tests::library::library;
use system_tests::{Mpi, command, under_both, victim};

/// Runs three ranks, of which rank 1 ends in this way.
fn run(mpi: Mpi, how: &str, out: &Path) -> Output {
    let launcher = mpi.launcher();
    let mut run = Command::new(command());
    run.args(["run", "--out"]).arg(out).arg("--");
    run.arg(launcher.get_program()).args(launcher.get_args()).args(["-n", "3"]);
    run.arg(victim(mpi, "dies_as_told")).arg(how);
    run.env("GAMMACHI_LIBRARY", library());
    run.envs(mpi.environment().iter().copied()).stdin(Stdio::null());
    run.output().expect("it starts")
}

fn output_of(arguments: &[&str], run: &Path) -> String {
    let output = Command::new(command()).args(arguments).arg(run).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn report(run: &Path) -> Value {
    serde_json::from_str(&output_of(&["report", "--json"], run)).expect("JSON")
}

fn run_json(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("run.json")).expect("a file")).expect("JSON")
}

/// Whether this kernel tells how a process ended that somebody else has collected (Linux 6.15).
fn kernel_tells_exit_codes() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a file");
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(15))
}

under_both! {
    fn first_rank_that_died_is_named_with_how_and_when(mpi) {
        let folder = TempDir::new();
        for (how, code, signal, words) in [
            ("kill", None, Some(9), "killed by SIGKILL"),
            ("segv", None, Some(11), "killed by SIGSEGV"),
            ("exit", Some(3), None, "with exit code 3, before MPI_Finalize"),
        ] {
            let directory = folder.join(how);
            let output = run(mpi, how, &directory);
            assert!(!output.status.success());
            let ended = run_json(&directory)["ended_ranks"].clone();
            let ended = ended.as_array().expect("a list");
            let of_rank = |rank: u64| ended.iter().find(|of| of["rank"] == rank);
            let first = of_rank(1).unwrap_or_else(|| panic!("{how}: {ended:?}"));
            if kernel_tells_exit_codes() {
                assert_eq!((first["code"].as_u64(), first["signal"].as_u64()), (code, signal), "{how}");
            }
            // Where the machine is busy, the others may be gone before anybody looks.
            let moments: Vec<&Value> = ended.iter().map(|of| &of["at"]["unix_ns"]).collect();
            if moments.iter().filter(|at| **at == moments[0]).count() > 1 || !kernel_tells_exit_codes() {
                continue;
            }
            assert_eq!(ended[0]["rank"], 1, "{how}: {ended:?}");
            let document = report(&directory);
            let finding = &document["findings"][0];
            assert_eq!((&finding["kind"], &finding["rank"]), (&"died".into(), &1.into()), "{how}: {document}");
            assert_eq!(finding["first"], true, "{how}: {ended:?}");
            for name in ["report", "why"] {
                let shown = output_of(&[name], &directory);
                let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
                let verb = if signal.is_some() { "died" } else { "ended" };
                assert!(shown.contains(&format!("Rank 1 {verb} first, at ")), "{how}: {shown}");
                assert!(shown.contains(words) && shown.contains("2 ranks waited for rank 1."), "{how}: {shown}");
            }
            // It slept for a second before, and the others waited until their own end.
            let end_s = |rank: usize| document["ranks"][rank]["end_s"].as_f64().expect("a number");
            let died_s = finding["at_s"].as_f64().expect("a number");
            assert!((died_s - end_s(1)).abs() < 1e-3 && died_s > 0.9, "{how}: {document}");
            for other in [0, 2] {
                assert!(end_s(other) >= died_s - 1e-3, "{how}: {document}");
                assert_eq!(document["ranks"][other]["ending"], "last sign of life");
            }
            assert_eq!(document["unfinished"]["causes"][0]["kind"], "died", "{how}: {document}");
        }
    }

    fn rank_that_aborts_is_named_and_not_those_that_the_launcher_ends(mpi) {
        let folder = TempDir::new();
        let directory = folder.join("abort");
        let output = run(mpi, "abort", &directory);
        assert!(!output.status.success());
        let document = report(&directory);
        let finding = &document["findings"][0];
        assert_eq!((&finding["kind"], &finding["rank"]), (&"aborted".into(), &1.into()), "{document}");
        assert!(document["findings"].as_array().expect("a list").iter().all(|of| of["kind"] != "died"));
    }
}
