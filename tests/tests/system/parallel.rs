//! `gammachi-mpi` prints and writes what `gammachi` does, to the byte, whatever the number of
//! processes; and it ends all processes with a message where it cannot.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use system_tests::directories::TempDir;
use system_tests::job::Output;
use system_tests::{Job, Mpi, command, parallel, synthetic_run, under_both, victim};
use trace_format::files::rank_file_path;

/// Runs `gammachi-mpi` in this many processes.
fn run_parallel(mpi: Mpi, processes: u32, arguments: &[&str]) -> Output {
    let job = Job::new(mpi, &parallel(mpi)).ranks(processes);
    arguments.iter().fold(job, |job, argument| job.argument(argument)).bare()
}

/// Asserts that so many processes print the same report as `gammachi`, with these options.
#[track_caller]
fn assert_same(mpi: Mpi, counts: &[u32], run: &Path, options: &[&str]) {
    assert_same_output(mpi, counts, "report", run, options);
}

/// The same for another command.
#[track_caller]
fn assert_same_output(mpi: Mpi, counts: &[u32], name: &str, run: &Path, options: &[&str]) {
    let mut arguments = vec![name, run.to_str().expect("the path is text")];
    arguments.extend(options);
    let alone = Command::new(command()).args(&arguments).output().expect("gammachi starts");
    assert!(alone.status.success(), "{alone:?}");
    let expected = String::from_utf8(alone.stdout).expect("output is text");
    for processes in counts {
        let output = run_parallel(mpi, *processes, &arguments);
        output.expect_code(0);
        assert_eq!(output.stdout, expected, "{processes} processes\n{output}");
    }
}

/// All files below a directory with their bytes, by path.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is readable") {
            let path = entry.expect("the folder is readable").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(directory).expect("it lies below").to_owned();
                    all.insert(name, fs::read(&path).expect("the file is readable"));
                }
            }
        }
    }
    all
}

/// Asserts that so many processes export the same files as `gammachi`, with these options.
#[track_caller]
fn assert_same_export(mpi: Mpi, counts: &[u32], run: &Path, options: &[&str]) {
    let folder = TempDir::new();
    let text = |path: &Path| path.to_str().expect("the path is text").to_owned();
    let (run, alone, several) = (text(run), folder.join("alone"), folder.join("several"));
    let arguments = |out: &Path| {
        let all = ["export", &run, "--to", "parquet", "--out", &text(out)].map(str::to_owned);
        all.into_iter().chain(options.iter().map(|&option| option.to_owned())).collect::<Vec<_>>()
    };
    let output = Command::new(command()).args(arguments(&alone)).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let expected = files(&alone);
    for processes in counts {
        let arguments = arguments(&several);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = run_parallel(mpi, *processes, &arguments);
        output.expect_code(0);
        let found = files(&several);
        assert!(found.keys().eq(expected.keys()), "{:?}\n{output}", found.keys());
        let differs = found.iter().find(|(name, bytes)| expected.get(*name) != Some(*bytes));
        assert_eq!(differs.map(|(name, _)| name), None, "{processes} processes\n{output}");
        fs::remove_dir_all(&several).expect("removable");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "{output}");
    }
}

under_both! {
    fn export_is_the_same_in_any_number_of_processes(mpi) {
        let folder = TempDir::new();
        let (few, many) = (folder.join("few"), folder.join("many"));
        synthetic_run(&few, &["3", "2e4"]);
        synthetic_run(&many, &["40", "4e4", "raw"]);
        assert_same_export(mpi, &[1, 4], &few, &[]);
        assert_same_export(mpi, &[2, 3, 8], &many, &["--part-calls", "4000"]);
        assert_same_export(mpi, &[3], &many, &["--part-calls", "50", "--ranks", "3-30", "--window", "0,0.003"]);
        fs::remove_file(many.join(rank_file_path(0, 7))).expect("the file exists");
        assert_same_export(mpi, &[2], &many, &["--part-calls", "4000", "--anonymise"]);
    }

    fn failed_export_is_said_once_and_leaves_nothing(mpi) {
        let folder = TempDir::new();
        let run = folder.join("run");
        synthetic_run(&run, &["8", "2e4"]);
        let text = |path: &Path| path.to_str().expect("the path is text").to_owned();
        let (run, out) = (text(&run), text(&folder.join("out")));
        let left = || fs::read_dir(folder.path()).expect("the folder exists").count();
        let output = run_parallel(mpi, 2, &["export", &run, "--to", "csv", "--out", &out]);
        assert_ne!(output.code(), 0, "{output}");
        assert!(output.stderr.contains("--to csv is not divided among processes"), "{output}");
        let output = run_parallel(mpi, 2, &["export", &run, "--to", "parquet", "--out", &run]);
        assert_ne!(output.code(), 0, "{output}");
        assert_eq!(output.stderr.matches("exists already").count(), 1, "{output}");
        // A limit on the file size replaces a full disk; only one process has it. MPICH's shared memory is
        // made of files, which it would stop, too.
        if mpi == Mpi::Mpich {
            return;
        }
        let limited = "n=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; [ $n = 1 ] && ulimit -f 1; trap '' XFSZ; exec \"$@\"";
        let job = Job::new(mpi, Path::new("/bin/sh")).ranks(3);
        let program = text(&parallel(mpi));
        let arguments = ["-c", limited, "sh", &program, "export", &run, "--to", "parquet", "--out", &out, "--part-calls", "1"];
        let output = arguments.iter().fold(job, |job, argument| job.argument(argument)).bare();
        assert_ne!(output.code(), 0, "{output}");
        assert_eq!(output.stderr.matches("cannot be written").count(), 1, "{output}");
        assert_eq!(left(), 1, "{output}");
    }

    fn report_is_the_same_in_any_number_of_processes(mpi) {
        let folder = TempDir::new();
        let (few, many) = (folder.join("few"), folder.join("many"));
        synthetic_run(&few, &["3", "2e4"]);
        synthetic_run(&many, &["200", "4e4", "raw"]);
        assert_same(mpi, &[1, 2, 4, 8], &few, &[]);
        assert_same(mpi, &[2], &few, &["--json", "--region", "part 3"]);
        assert_same(mpi, &[2, 8], &many, &["--json"]);
        assert_same(mpi, &[4], &many, &["--no-messages", "--window", "MPI_Allreduce#2,0.5"]);
    }

    fn report_of_one_rank_is_the_same(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "many_calls")).argument("10").record();
        assert_same(mpi, &[1, 2], &recorded.directory(), &["--json"]);
    }

    fn report_of_damaged_and_missing_files_is_the_same(mpi) {
        let folder = TempDir::new();
        let run = folder.join("run");
        synthetic_run(&run, &["6", "6e4"]);
        let file = |rank| run.join(rank_file_path(0, rank));
        let mut bytes = fs::read(file(1)).expect("the file exists");
        let middle = bytes.len() / 2;
        bytes[middle..middle + 64].fill(0x5a);
        fs::write(file(1), &bytes).expect("the file is writable");
        let bytes = fs::read(file(4)).expect("the file exists");
        fs::write(file(4), &bytes[..bytes.len() / 3]).expect("the file is writable");
        fs::write(file(5), b"not a rank file").expect("the file is writable");
        fs::remove_file(file(2)).expect("the file exists");
        assert_same(mpi, &[3], &run, &[]);
        assert_same(mpi, &[2, 8], &run, &["--json"]);
        assert_same_output(mpi, &[3], "why", &run, &["--json"]);
    }

    fn why_is_the_same_in_any_number_of_processes(mpi) {
        let folder = TempDir::new();
        let (few, many) = (folder.join("few"), folder.join("many"));
        synthetic_run(&few, &["3", "2e4"]);
        synthetic_run(&many, &["200", "4e4", "raw"]);
        assert_same_output(mpi, &[1, 2, 4, 8], "why", &few, &[]);
        assert_same_output(mpi, &[2, 8], "why", &many, &["--json"]);
        assert_same_output(mpi, &[4], "why", &few, &["--json", "--region", "part 3"]);
        assert_same_output(mpi, &[2], "why", &many, &["--rank", "7"]);
    }

    fn index_is_the_same_in_any_number_of_processes(mpi) {
        let folder = TempDir::new();
        let run = folder.join("run");
        synthetic_run(&run, &["9", "9e4"]);
        let (name, index) = (run.to_str().expect("the path is text"), run.join("timeline.index"));
        let alone = Command::new(command()).args(["view", name, "--index-only"]).output().expect("it starts");
        assert!(alone.status.success(), "{alone:?}");
        let expected = fs::read(&index).expect("the index is kept");
        for processes in [1, 2, 4] {
            fs::remove_file(&index).expect("removable");
            let output = run_parallel(mpi, processes, &["index", name]);
            output.expect_code(0);
            assert!(fs::read(&index).expect("the index is kept") == expected, "{processes} processes\n{output}");
            assert_eq!(output.stderr.matches("index of ").count(), 1, "{output}");
        }
    }

    fn report_of_a_killed_job_is_the_same(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "dies_sigkill")).ranks(3).record();
        assert_same_output(mpi, &[2], "why", &recorded.directory(), &["--json"]);
        assert_same(mpi, &[2], &recorded.directory(), &[]);
        assert_same(mpi, &[4], &recorded.directory(), &["--json"]);
    }

    fn errors_are_said_once_and_name_what_is_wrong(mpi) {
        let folder = TempDir::new();
        let run = folder.join("run");
        synthetic_run(&run, &["4", "1e4"]);
        let run = run.to_str().expect("the path is text");
        let output = run_parallel(mpi, 3, &["report", "/nowhere"]);
        assert_ne!(output.code(), 0, "{output}");
        assert_eq!(output.stderr.matches("/nowhere: no such run directory").count(), 1, "{output}");
        let output = run_parallel(mpi, 3, &["report", run, "--html", "page.html"]);
        assert_ne!(output.code(), 0, "{output}");
        assert!(output.stderr.contains("--html is not divided among processes"), "{output}");
        let output = run_parallel(mpi, 4, &["--deadline", "0", "report", run]);
        assert_ne!(output.code(), 0, "{output}");
        assert!(output.stderr.contains("did not come to exchange"), "{output}");
        assert_eq!(output.stdout, "", "{output}");
    }
}
