//! Waits in libraries are shown where the user's own program called them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use system_tests::delays::record_until;
use system_tests::directories::{TempDir, repository};
use system_tests::kernels::command;
use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, Recorded, under_both, victim};

/// The lines of calls_a_library.c that call its library.
fn calling_lines() -> BTreeSet<u64> {
    let source = repository().join("tests/victims/calls_a_library.c");
    let source = std::fs::read_to_string(source).expect("the victim's source can be read");
    let lines = (1..).zip(source.lines()).filter(|(_, line)| line.contains("is late */"));
    lines.map(|(number, _)| number).collect()
}

/// A library in a folder that has nothing to do with the program.
fn installed(mpi: Mpi, folder: &Path) -> PathBuf {
    let library = folder.join("libsum.so.2");
    std::fs::copy(built(mpi, "plugin_sum", Build::Shared), &library).expect("it can be copied");
    library
}

fn job(mpi: Mpi, library: &Path) -> Job {
    Job::new(mpi, &victim(mpi, "calls_a_library")).ranks(2).argument(library)
}

fn record(job: Job, level: &str) -> Recorded {
    let recorded = job.environment("GAMMACHI_LEVEL", level).record();
    recorded.expect_code(0);
    recorded
}

fn shown(arguments: &[&str], recorded: &Recorded) -> String {
    let mut command = Command::new(command());
    command.args(arguments).arg(recorded.directory()).env("COLUMNS", "200").stdin(Stdio::null());
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The waits in reductions for a rank, longest first.
fn reductions(recorded: &Recorded, delayed_by: u32) -> Vec<Value> {
    let why: Value = serde_json::from_str(&shown(&["why", "--json"], recorded)).expect("JSON");
    let waits = why["waits"].as_array().expect("a list").iter();
    let found =
        waits.filter(|of| of["function"] == "MPI_Allreduce" && of["delayed_by"] == delayed_by);
    found.cloned().collect()
}

/// What a rank did that caused most waiting.
fn costliest_context(recorded: &Recorded, rank: u32) -> String {
    let why: Value = serde_json::from_str(&shown(&["why", "--json"], recorded)).expect("JSON");
    let causes = why["causes"].as_array().expect("a list").iter();
    let of_rank = causes.filter(|cause| cause["rank"] == rank);
    let costliest = of_rank.max_by_key(|cause| cause["ticks"].as_i64()).expect("it was late");
    costliest["context"].as_str().expect("a text").to_owned()
}

under_both! {
    fn waits_in_a_library_name_the_line_that_called_it(mpi) {
        let folder = TempDir::new();
        let library = installed(mpi, folder.path());
        let lines: Vec<u64> = calling_lines().into_iter().collect();
        // The late rank's own call is too short for a path.
        let is_named = |recorded: &Recorded, rank: u32, line: u64| {
            let end = format!(" at calls_a_library.c:{line} (in library_sum, libsum)");
            costliest_context(recorded, rank).ends_with(&end)
        };
        let late = [(1, lines[0]), (0, lines[1])];
        // On a busy machine a rank may be delayed inside MPI for longer.
        let recorded = record_until(
            || record(job(mpi, &library), "2"),
            |recorded| late.iter().all(|&(rank, line)| is_named(recorded, rank, line)),
        );
        for (delayed_by, line) in late {
            let waits = reductions(&recorded, delayed_by);
            // The longest one may have been prolonged by the machine at the other line.
            let at = |wait: &&Value| wait["called_from"]["line"] == line;
            let count = waits.iter().filter(at).count();
            assert!(count >= 15 && count * 2 > waits.len(), "{line}: {waits:#?}");
            let wait = waits.iter().find(at).expect("counted");
            let place = format!("MPI_Allreduce at calls_a_library.c:{line} (in library_sum, libsum)");
            assert_eq!(wait["place"], place);
            assert_eq!(wait["library"]["function"], "library_sum");
            assert_eq!(wait["called_from"]["function"], "main");
        }
        for (rank, line) in late {
            let context = || costliest_context(&recorded, rank);
            assert!(is_named(&recorded, rank, line), "{line}: {}", context());
        }
        // Both lines are places of their own, on all screens.
        for screen in [shown(&["why"], &recorded), shown(&["report"], &recorded)] {
            for line in &lines {
                let place = format!("calls_a_library.c:{line} (in library_sum, libsum)");
                assert!(screen.contains(&place), "{place}: {screen}");
            }
            assert!(!screen.contains("--level 2"), "{screen}");
        }
    }

    fn short_calls_come_from_the_only_line_that_calls_their_function(mpi) {
        let folder = TempDir::new();
        let library = installed(mpi, folder.path());
        let line = calling_lines().into_iter().next().expect("two lines");
        let place = format!("at calls_a_library.c:{line} (in library_sum, libsum)");
        // Rank 1 is late before the library is called, rank 0 after that; calls of MPI_Comm_rank
        // never have a path.
        let begin = format!("between MPI_Allreduce {place} and MPI_Barrier at main");
        let end = format!("and MPI_Comm_rank {place}");
        let are_named = |recorded: &Recorded| {
            costliest_context(recorded, 0).starts_with(&begin)
                && costliest_context(recorded, 1).ends_with(&end)
        };
        let recorded =
            record_until(|| record(job(mpi, &library).argument("once"), "2"), are_named);
        assert!(are_named(&recorded), "{begin}, {end}: {:?}", [0, 1].map(|rank| costliest_context(&recorded, rank)));
    }

    fn level_2_is_proposed_where_waits_are_in_a_library(mpi) {
        let folder = TempDir::new();
        let library = installed(mpi, folder.path());
        // A busy machine makes the lack of cores more important.
        let recorded = record_until(
            || record(job(mpi, &library), "1"),
            |recorded| shown(&["report"], recorded).contains("gammachi run --level 2 -- "),
        );
        let wait = &reductions(&recorded, 1)[0];
        assert_eq!(wait["called_from"], Value::Null, "{wait:#}");
        assert_eq!(wait["library"]["function"], "library_sum", "{wait:#}");
        let report = shown(&["report"], &recorded);
        assert!(report.contains("gammachi run --level 2 -- "), "{report}");
        assert!(report.contains("lines of your program call libsum"), "{report}");
    }
}
