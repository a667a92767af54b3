//! Other programs read in our exports what was recorded; imports keep every call and message; a
//! failed export leaves no files.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use system_tests::conformity::{PROGRAMS, program, record};
use system_tests::directories::{TempDir, repository};
use system_tests::kernels::command;
use system_tests::library::io_library;
use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, Recorded, under_both, under_mpich, victim};
use trace_format::settings::SAMPLE;

/// Programs that together send, receive, wait, test, poll, call collectives and make communicators;
/// under Open MPI (with `scripts/test --all`) all of them, else the first.
const EXPORTED: [&str; 6] = [
    "many_requests",
    "collectives_non_blocking",
    "communicators",
    "send_and_receive",
    "waits",
    "polls",
];

fn gammachi(arguments: &[&str], paths: &[&Path]) -> Output {
    let mut command = Command::new(command());
    command.args(arguments).args(paths).stdin(Stdio::null());
    command.output().expect("the command starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn sends_sizes(mpi: Mpi, messages: u32) -> Recorded {
    let job = Job::new(mpi, &victim(mpi, "sends_sizes")).argument(messages.to_string()).ranks(2);
    let recorded = job.record();
    recorded.expect_code(0);
    recorded
}

fn polls_in_turn(mpi: Mpi) -> Recorded {
    let recorded = Job::new(mpi, &victim(mpi, "polls_in_turn")).ranks(2).record();
    recorded.expect_code(0);
    recorded
}

/// Programs with parallel regions and calls on files.
fn works_in_teams_and_on_files(mpi: Mpi, folder: &Path) -> [Recorded; 2] {
    let teams = Job::new(mpi, &built(mpi, "works_in_teams", Build::OpenMp)).ranks(2);
    let files = Job::new(mpi, &victim(mpi, "works_on_files")).ranks(2).argument(folder);
    let files = files.preload_after(&io_library()).environment("GAMMACHI_IO", "1");
    let jobs = [teams.argument("2").environment("GAMMACHI_OPENMP", "1"), files];
    jobs.map(|job| {
        let recorded = job.record();
        recorded.expect_code(0);
        recorded
    })
}

under_mpich! {
    fn other_readers_find_what_was_recorded(mpi) {
        let folder = TempDir::new();
        let exported = if mpi == Mpi::OpenMpi { &EXPORTED[..] } else { &EXPORTED[..3] };
        let recorded: Vec<Recorded> = exported
            .iter()
            .map(|name| {
                let ranks = PROGRAMS.iter().find(|(of, _)| of == name).map_or(2, |(_, ranks)| *ranks);
                record(Job::new(mpi, &program(mpi, name, Build::C)).ranks(ranks))
            })
            .chain([sends_sizes(mpi, 300), polls_in_turn(mpi)])
            .chain(works_in_teams_and_on_files(mpi, folder.path()))
            .collect();
        let mut check = Command::new(repository().join("experiments/accuracy/check-exports"));
        check.arg("--command").arg(command());
        check.args(recorded.iter().map(Recorded::directory));
        let output = check.output().expect("the script starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{}", stderr(&output));
    }
}

under_both! {
    /// Threads without MPI calls, too. An import skips the samples and keeps the rest.
    fn otf2_has_samples_as_calling_contexts(mpi) {
        let program = built(mpi, "computes_in_functions", Build::Optimised);
        let job = Job::new(mpi, &program).environment(SAMPLE.name, "99").ranks(2);
        let recorded = job.argument("1").argument("1").record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let threads = [0, 1].map(|rank| trace.rank(rank).file.sampled_threads());
        let samples: usize = threads.iter().flatten().map(|of| of.samples.len()).sum();
        assert!(samples > 0 && threads[0].iter().any(|of| of.thread.is_none()), "{threads:?}");

        let folder = TempDir::new();
        let out = folder.join("otf2");
        let exported = gammachi(&["export", "--to", "otf2", "--out"], &[&out, &recorded.directory()]);
        assert!(exported.status.success(), "{}", stderr(&exported));
        let archive = out.join("traces.otf2");
        let printed = |options: &[&str]| {
            let output = Command::new("otf2-print").args(options).arg(&archive).output();
            let output = output.expect("otf2-print is installed");
            assert!(output.status.success(), "{}", stderr(&output));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let events = printed(&[]);
        let written = events.matches("CALLING_CONTEXT_SAMPLE").count();
        // Those after MPI_Finalize are not of the run.
        assert!((samples * 9 / 10..=samples).contains(&written), "{written} of {samples}");
        let definitions = printed(&["-G"]);
        let heavy = definitions.lines().find(|line| line.contains("\"heavy\""));
        assert!(heavy.is_some(), "{definitions}");
        let has = |what: &str| definitions.lines().any(|line| line.starts_with(what));
        assert!(has("CALLING_CONTEXT ") && has("INTERRUPT_GENERATOR "), "{definitions}");

        let imported = folder.join("imported");
        let import = gammachi(&["import", "--out"], &[&imported, &archive]);
        assert!(import.status.success(), "{}", stderr(&import));
        let calls = [recorded.directory(), imported].map(|run| {
            let report = gammachi(&["report", "--json"], &[&run]);
            assert!(report.status.success(), "{}", stderr(&report));
            let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
            let counts = report["calls"].as_array().expect("a list").iter();
            let counts = counts.map(|call| (call["function"].to_string(), call["count"].to_string()));
            counts.collect::<BTreeMap<_, _>>()
        });
        assert_eq!(calls[0], calls[1]);
    }
}

#[test]
fn failed_export_leaves_no_files() {
    let recorded = sends_sizes(Mpi::OpenMpi, 300);
    let run = recorded.directory();
    let folder = TempDir::new();
    let out = folder.join("out");
    let left = || std::fs::read_dir(folder.path()).expect("the folder exists").count();

    let unknown = gammachi(&["export", "--to", "xlsx", "--out"], &[&out, &run]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    let nowhere = folder.join("missing").join("out");
    let unwritable = gammachi(&["export", "--to", "csv", "--out"], &[&nowhere, &run]);
    assert_eq!(unwritable.status.code(), Some(2));
    assert!(stderr(&unwritable).contains("there is no directory"), "{}", stderr(&unwritable));
    let empty = TempDir::new();
    let nothing = gammachi(&["export", "--to", "csv", "--out"], &[&out, empty.path()]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(stderr(&nothing).contains("no rank file"), "{}", stderr(&nothing));
    assert_eq!(left(), 0);

    // A limit on the file size replaces a full disk: both make a write fail.
    for to in ["csv", "parquet", "perfetto", "paje", "paraver", "otf2"] {
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -f 1; trap '' XFSZ; exec \"$@\"", "sh"]).arg(command());
        limited.arg("export").arg(&run).args(["--to", to, "--out"]).arg(&out);
        let output = limited.output().expect("sh starts");
        assert_eq!(output.status.code(), Some(1), "{to}: {}", stderr(&output));
        assert!(stderr(&output).contains("out"), "{to}: {}", stderr(&output));
        assert_eq!(left(), 0, "{to}: {}", stderr(&output));
    }
}

#[test]
fn interrupted_export_is_whole_or_leaves_no_files() {
    // One rank, many calls: no waiting, however busy the machine is.
    let job = Job::new(Mpi::OpenMpi, &victim(Mpi::OpenMpi, "long_calls")).argument("200000");
    let recorded = job.record();
    recorded.expect_code(0);
    let whole = TempDir::new();
    let run = recorded.directory();
    let exported = gammachi(&["export", "--to", "csv", "--out"], &[&whole.join("out"), &run]);
    assert!(exported.status.success(), "{}", stderr(&exported));
    // At once and later; on a busy machine the signal may come after everything is written: then try again.
    let mut removed = 0;
    for attempt in 0..20 {
        let folder = TempDir::new();
        let code = interrupted_export(&run, folder.path(), Duration::from_millis(20) * attempt);
        let left = files_in(folder.path());
        if left.is_empty() {
            assert_eq!(code, Some(130));
            removed += 1;
        } else {
            // It may also come between the last file's move and the end of the command.
            assert!(matches!(code, Some(0 | 130)), "{code:?}");
            assert_eq!(left, files_in(whole.path()), "exit code {code:?}");
        }
        if removed == 4 {
            return;
        }
    }
    assert!(removed > 0, "no signal came in time");
}

/// All files below a folder, also empty directories, and their sizes.
fn files_in(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("the folder exists") {
            let entry = entry.expect("the folder is readable");
            let about = entry.metadata().expect("nobody removes it");
            let path = entry.path();
            let name = path.strip_prefix(folder).expect("it lies in the folder").to_owned();
            found.insert(name, if about.is_dir() { 0 } else { about.len() });
            if about.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

/// Exit code of an export that receives SIGINT so long after something is in the folder.
fn interrupted_export(run: &Path, folder: &Path, later: Duration) -> Option<i32> {
    let mut export = Command::new(command());
    export.arg("export").arg(run).args(["--to", "csv", "--out"]);
    export.arg(folder.join("out")).stderr(Stdio::null());
    // SAFETY: `signal` may be called between fork and exec. (A script's background jobs ignore
    // SIGINT.)
    unsafe {
        export.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    };
    let mut child = export.spawn().expect("the command starts");
    let is_empty = || std::fs::read_dir(folder).expect("the folder exists").next().is_none();
    while is_empty() && child.try_wait().expect("our own child").is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(later);
    if child.try_wait().expect("our own child").is_none() {
        // SAFETY: plain numbers; the process is our own child, which was not yet reaped.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    }
    child.wait().expect("our own child").code()
}

/// EZTrace's OTF2 is unusual: no MPI_Init, no MPI_Finalize, gaps in the numbers of definitions.
#[test]
fn imports_archive_of_another_tool_with_its_messages() {
    let folder = TempDir::new();
    let mut eztrace = Mpi::OpenMpi.launcher();
    eztrace.args(["-n", "2", "eztrace", "-t", "openmpi", "-o"]).arg(folder.path());
    eztrace.arg(victim(Mpi::OpenMpi, "sends_sizes")).arg("300").current_dir(folder.path());
    eztrace.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    let traced = eztrace.output().expect("the launcher starts");
    assert!(traced.status.success(), "{}", stderr(&traced));
    // EZTrace names the folder after the program's file.
    let entries = std::fs::read_dir(folder.path()).expect("the folder exists").flatten();
    let archives = entries.map(|entry| entry.path().join("eztrace_log.otf2"));
    let archive = archives.into_iter().find(|file| file.is_file());
    let archive =
        archive.unwrap_or_else(|| panic!("no archive; is eztrace installed? {}", stderr(&traced)));

    let run = folder.join("imported");
    let imported = gammachi(&["import", "--out"], &[&run, &archive]);
    assert!(imported.status.success(), "{}", stderr(&imported));
    let report = gammachi(&["report", "--json"], &[&run]);
    assert!(report.status.success(), "{}", stderr(&report));
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let bytes: u64 = (0..300).sum();
    assert_eq!(report["messages"]["matched"], 300, "{report}");
    assert_eq!(report["messages"]["bytes"], bytes, "{report}");
    assert_eq!(report["messages"]["unmatched"], 0, "{report}");
    let calls = report["calls"].as_array().expect("a list");
    let count =
        |name: &str| calls.iter().find(|call| call["function"] == name).map(|c| &c["count"]);
    for (name, expected) in [("MPI_Send", 300), ("MPI_Recv", 300), ("MPI_Barrier", 6)] {
        assert_eq!(count(name), Some(&expected.into()), "{name}: {report}");
    }
    assert_eq!(report["diagnoses"].as_array().map(Vec::len), Some(0), "{report}");
}

#[test]
fn rejects_damaged_imports() {
    let folder = TempDir::new();
    let out = folder.join("run");
    for (name, text, what) in [
        ("a.otf2", "not an archive", "OTF2"),
        ("a.prv", "no header", "#Paraver"),
        (
            "b.prv",
            "#Paraver (1/1/26 at 10:00):100_ns:1(1):1:1(1:1),0\n2:1:1:9:1:5:50000001:1\n",
            "line 2",
        ),
        ("c.prv.gz", "not compressed", "cannot be read"),
        ("a.txt", "something else", "neither"),
    ] {
        let file = folder.join(name);
        std::fs::write(&file, text).expect("the folder is writable");
        let output = gammachi(&["import", "--out"], &[&out, &file]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", stderr(&output));
        assert!(stderr(&output).contains(what), "{name}: {}", stderr(&output));
        assert!(stderr(&output).contains(name), "{name}: {}", stderr(&output));
        std::fs::remove_file(file).expect("removable");
        let left = std::fs::read_dir(folder.path()).expect("the folder exists").count();
        assert_eq!(left, 0, "{name}");
    }
    let missing = gammachi(&["import", "--out"], &[&out, &folder.join("missing.prv")]);
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn exports_the_recorded_part_of_a_killed_run() {
    let mpi = Mpi::OpenMpi;
    let job = Job::new(mpi, &victim(mpi, "dies_sigkill")).ranks(2);
    let recorded = job.record();
    let folder = TempDir::new();
    for to in ["csv", "perfetto", "paje", "paraver", "otf2"] {
        let out = folder.join(to);
        let output = gammachi(&["export", "--to", to, "--out"], &[&out, &recorded.directory()]);
        assert_eq!(output.status.code(), Some(0), "{to}: {}", stderr(&output));
    }
    let calls = std::fs::read_to_string(folder.join("csv").join("calls.csv")).expect("a table");
    assert!(calls.contains("MPI_Init"), "{calls}");
}
