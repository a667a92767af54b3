//! A user's first steps: record a program and read the report, without naming a run.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use system_tests::directories::TempDir;
use system_tests::library::library;
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
    fn records_and_reports_without_naming_the_run(mpi) {
        let temp = TempDir::new();
        let folder = temp.path();
        let launcher = mpi.launcher();
        let mut run = gammachi(folder, mpi);
        run.args(["run", "--report", "--"]).arg(launcher.get_program()).args(launcher.get_args());
        run.args(["-n", "2"]).arg(victim(mpi, "shares_sleeps")).arg("20");
        let (shown, stderr) = text(&run.output().expect("the command starts"));
        assert!(stderr.contains("run recorded in shares_sleeps"), "{stderr}");
        for label in ["EFFICIENCY", "REGIONS", "RANKS", "TRUST", "NEXT", "CALLS"] {
            assert!(shown.lines().any(|line| line.starts_with(label)), "no {label}: {shown}{stderr}");
        }
        let output = gammachi(folder, mpi).arg("report").output().expect("the command starts");
        let (again, stderr) = text(&output);
        assert!(stderr.contains(": the newest run here"), "{stderr}");
        assert!(again.contains("efficient") && shown.ends_with(&again), "{again}{shown}");

        let narrow = gammachi(folder, mpi).arg("report").env("COLUMNS", "80").output();
        let (narrow, _) = text(&narrow.expect("the command starts"));
        // Lines with commands are not broken.
        let lines = narrow.lines().filter(|line| !line.contains("gammachi "));
        let wide: Vec<&str> = lines.filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");

        let mut wrong = gammachi(folder, mpi);
        let output = wrong.args(["report", "--region", "slove"]).output().expect("the command starts");
        let (_, stderr) = text(&output);
        assert!(stderr.contains("did you mean solve?"), "{stderr}");
    }
}

under_both! {
    fn a_launcher_of_another_mpi_is_suspected(mpi) {
        let temp = TempDir::new();
        let other = if mpi == Mpi::Mpich { Mpi::OpenMpi } else { Mpi::Mpich };
        let launcher = other.launcher();
        let mut run = gammachi(temp.path(), mpi);
        run.envs(other.environment().iter().copied());
        run.args(["run", "--out", "run", "--"]).arg(launcher.get_program()).args(launcher.get_args());
        run.args(["-n", "2"]).arg(victim(mpi, "shares_sleeps")).arg("20");
        let (_, stderr) = text(&run.output().expect("the command starts"));
        assert!(stderr.contains("run (1 rank), run-2 (1 rank)"), "{stderr}");
        assert!(stderr.contains("belongs to a different MPI from the program"), "{stderr}");
    }
}
