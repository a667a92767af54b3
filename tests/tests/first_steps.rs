//! A user's first steps: record, look at the report, without naming anything.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use system_tests::library::library;
use system_tests::place::Fresh;
use system_tests::victim::victim;
use system_tests::{Mpi, command, under_both};

fn gammachi(folder: &Path, mpi: Mpi) -> Command {
    let mut command = Command::new(command());
    command.current_dir(folder).env("GAMMACHI_LIBRARY", library()).stdin(Stdio::null());
    command.envs(mpi.environment().iter().copied());
    command
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

under_both! {
    fn a_run_is_recorded_and_its_report_is_shown_without_naming_it(mpi) {
        let fresh = Fresh::new();
        let folder = fresh.path();
        let launcher = mpi.launcher();
        let mut run = gammachi(folder, mpi);
        run.args(["run", "--report", "--"]).arg(launcher.get_program()).args(launcher.get_args());
        run.args(["-n", "2"]).arg(victim(mpi, "shares_sleeps")).arg("20");
        let (shown, said) = text(&run.output().expect("the command starts"));
        assert!(said.contains("run recorded in shares_sleeps"), "{said}");
        for label in ["EFFICIENCY", "REGIONS", "RANKS", "TRUST", "NEXT", "CALLS"] {
            assert!(shown.lines().any(|line| line.starts_with(label)), "no {label}: {shown}{said}");
        }
        let output = gammachi(folder, mpi).arg("report").output().expect("the command starts");
        let (again, said) = text(&output);
        assert!(said.contains(": the newest run here"), "{said}");
        assert!(again.contains("efficient") && shown.ends_with(&again), "{again}{shown}");

        let narrow = gammachi(folder, mpi).arg("report").env("COLUMNS", "80").output();
        let (narrow, _) = text(&narrow.expect("the command starts"));
        // Commands are not broken.
        let lines = narrow.lines().filter(|line| !line.contains("gammachi "));
        let wide: Vec<&str> = lines.filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");

        let mut wrong = gammachi(folder, mpi);
        let output = wrong.args(["report", "--region", "slove"]).output().expect("the command starts");
        let (_, said) = text(&output);
        assert!(said.contains("did you mean solve?"), "{said}");
    }
}
