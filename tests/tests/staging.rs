//! Rank files on storage of their host until MPI is finalized.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gammachi_analyzer::trace::Run;
use system_tests::place::Fresh;
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
    let done = Command::new(command()).args(arguments).output().expect("the command runs");
    (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
}

under_both! {
    fn at_the_end_the_files_are_in_the_run_directory_and_nowhere_else(mpi) {
        let stage = Fresh::new();
        let recorded = job(mpi, stage.path()).record();
        recorded.expect_code(0);
        assert_eq!(recorded.output.own_lines(), [] as [&str; 0]);
        assert!(calls(&recorded.directory()) > 2 * MESSAGES);
        let names: Vec<PathBuf> = files(&recorded.directory());
        assert_eq!(names.len(), 2, "{names:?}");
        assert_eq!(fs::read_dir(stage.path()).expect("listed").count(), 0);
    }

    fn what_a_kill_left_is_named_and_can_be_collected(mpi) {
        let stage = Fresh::new();
        let recorded = job(mpi, stage.path()).argument("die").record();
        let directory = recorded.directory();
        let (done, said) = gammachi(&[Path::new("report"), &directory]);
        assert!(!done && said.contains("staging directories"), "{said}");
        assert!(said.contains(&stage.path().display().to_string()), "{said}");
        let (done, said) = gammachi(&[Path::new("collect"), &directory, stage.path()]);
        assert!(done && said.contains("2 of 2 ranks"), "{said}");
        assert!(calls(&directory) > 2 * MESSAGES);
        let (done, said) = gammachi(&[Path::new("report"), &directory]);
        assert!(done, "{said}");
    }

    fn a_directory_that_is_taken_meanwhile_stays_the_others(mpi) {
        let stage = Fresh::new();
        let out = Fresh::new();
        let run = out.join("run.gammachi");
        let first = job(mpi, stage.path()).argument("die").record_to(&run);
        let second = job(mpi, stage.path()).record_to(&run);
        assert_eq!(second.code(), 0);
        assert!(first.own_lines().is_empty(), "{:?}", first.own_lines());
        assert!(calls(&out.join("run.gammachi-2")) > 2 * MESSAGES);
        assert_eq!(files(&run).len(), 1, "the killed run keeps its directory");
        assert_eq!(files(stage.path()).len(), 2, "and its data");
    }

    fn without_a_usable_stage_the_run_directory_is_written_at_once(mpi) {
        let stage = Fresh::new();
        let file = stage.join("a-file");
        fs::write(&file, "").expect("written");
        let recorded = job(mpi, &file).record();
        recorded.expect_code(0);
        assert!(calls(&recorded.directory()) > 2 * MESSAGES);
        assert!(recorded.output.own_lines().iter().any(|line| line.contains("not staged")));
    }

    fn what_cannot_be_moved_stays_and_is_named(mpi) {
        let stage = Fresh::new();
        let out = Fresh::new();
        let run = out.join("run.gammachi");
        let output = Job::new(mpi, &victim(mpi, "takes_folder"))
            .argument(run.join("ranks-000"))
            .ranks(2)
            .environment("GAMMACHI_STAGE", stage.path())
            .record_to(&run);
        assert_eq!(output.code(), 0);
        let said = output.own_lines();
        assert_eq!(said.iter().filter(|line| line.contains("remains in")).count(), 2, "{said:?}");
        assert_eq!(files(stage.path()).len(), 2);
        fs::remove_file(run.join("ranks-000")).expect("removed");
        let (done, said) = gammachi(&[Path::new("collect"), &run, stage.path()]);
        assert!(done && said.contains("2 of 2 ranks"), "{said}");
        assert!(calls(&run) >= 2 * 13);
    }
}
