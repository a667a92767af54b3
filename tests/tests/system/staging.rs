//! Rank files that stay in a staging directory on their host until MPI_Finalize.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gammachi_analyzer::trace::Run;
use system_tests::directories::TempDir;
use system_tests::{Job, Mpi, command, under_both, victim};

const MESSAGES: u64 = 2000;

fn job(mpi: Mpi, stage: &Path) -> Job {
    Job::new(mpi, &victim(mpi, "sends_sizes"))
        .argument(MESSAGES.to_string())
        .ranks(2)
        .environment("GAMMACHI_STAGE", stage)
}

/// Files below a directory, at any depth.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn calls(run: &Path) -> u64 {
    let run = Run::open(run).expect("the run can be read");
    assert_eq!((run.ranks.len(), &run.diagnoses[..]), (2, &[][..]));
    run.ranks.iter().map(|rank| rank.file.events(&rank.file.threads[0]).count() as u64).sum()
}

fn gammachi(arguments: &[&Path]) -> (bool, String) {
    let output = Command::new(command()).args(arguments).output().expect("the command runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

under_both! {
    fn moves_files_to_the_run_directory_at_the_end(mpi) {
        let stage = TempDir::new();
        let recorded = job(mpi, stage.path()).record();
        recorded.expect_code(0);
        assert_eq!(recorded.output.recorder_lines(), [] as [&str; 0]);
        assert!(calls(&recorded.directory()) > 2 * MESSAGES);
        let names: Vec<PathBuf> = files(&recorded.directory());
        assert_eq!(names.len(), 2, "{names:?}");
        assert_eq!(fs::read_dir(stage.path()).expect("listed").count(), 0);
    }

    fn names_files_of_killed_ranks_and_collects_them(mpi) {
        let stage = TempDir::new();
        let recorded = job(mpi, stage.path()).argument("die").record();
        let directory = recorded.directory();
        let (success, stderr) = gammachi(&[Path::new("report"), &directory]);
        assert!(!success && stderr.contains("staging directories"), "{stderr}");
        assert!(stderr.contains(&stage.path().display().to_string()), "{stderr}");
        let (success, stderr) = gammachi(&[Path::new("collect"), &directory, stage.path()]);
        assert!(success && stderr.contains("2 of 2 ranks"), "{stderr}");
        assert!(calls(&directory) > 2 * MESSAGES);
        let (success, stderr) = gammachi(&[Path::new("report"), &directory]);
        assert!(success, "{stderr}");
    }

    fn does_not_take_over_an_existing_run_directory(mpi) {
        let stage = TempDir::new();
        let out = TempDir::new();
        let run = out.join("run.gammachi");
        let first = job(mpi, stage.path()).argument("die").record_to(&run);
        let second = job(mpi, stage.path()).record_to(&run);
        assert_eq!(second.code(), 0);
        assert!(first.recorder_lines().is_empty(), "{:?}", first.recorder_lines());
        assert!(calls(&out.join("run.gammachi-2")) > 2 * MESSAGES);
        assert_eq!(files(&run).len(), 1, "the killed run keeps its directory");
        assert_eq!(files(stage.path()).len(), 2, "and its data");
    }

    fn writes_to_the_run_directory_without_a_usable_stage(mpi) {
        let stage = TempDir::new();
        let file = stage.join("a-file");
        fs::write(&file, "").expect("written");
        let recorded = job(mpi, &file).record();
        recorded.expect_code(0);
        assert!(calls(&recorded.directory()) > 2 * MESSAGES);
        assert!(recorded.output.recorder_lines().iter().any(|line| line.contains("not staged")));
    }

    fn names_files_that_cannot_be_moved(mpi) {
        let stage = TempDir::new();
        let out = TempDir::new();
        let run = out.join("run.gammachi");
        let output = Job::new(mpi, &victim(mpi, "takes_folder"))
            .argument(run.join("ranks-000"))
            .ranks(2)
            .environment("GAMMACHI_STAGE", stage.path())
            .record_to(&run);
        assert_eq!(output.code(), 0);
        let messages = output.recorder_lines();
        assert_eq!(messages.iter().filter(|line| line.contains("remains in")).count(), 2, "{messages:?}");
        assert_eq!(files(stage.path()).len(), 2);
        fs::remove_file(run.join("ranks-000")).expect("removed");
        let (success, stderr) = gammachi(&[Path::new("collect"), &run, stage.path()]);
        assert!(success && stderr.contains("2 of 2 ranks"), "{stderr}");
        assert!(calls(&run) >= 2 * 13);
    }
}
