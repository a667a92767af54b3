//! An MPI that the recorder does not know, and procedures that the loaded MPI lacks.

use std::path::{Path, PathBuf};
use std::process::Command;

use gammachi_analyzer::diagnosis::{Diagnosis, Evidence};
use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::present::{self, Report};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use system_tests::directories::{TempDir, repository};
use system_tests::{Job, Mpi, under_both, victim};

/// The screen that `gammachi report` shows for a run.
fn screen(directory: &Path) -> String {
    let run = Run::open(directory).expect("a run directory");
    let timeline = GlobalTimeline::new(&run);
    let metrics =
        Metrics::new(&run, &timeline, &Selection::Whole).expect("metrics of the whole run");
    let diagnosis = Diagnosis::new(Evidence::of_metrics(&run, &timeline, &metrics));
    present::report::screen(&Report::new(&diagnosis, &[]), false)
}

fn compile(sources: &[&str], made: &Path, more: &[&str]) {
    let folder = repository().join("tests/victims");
    let mut command = Command::new("cc");
    command.args(["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-address"]);
    command.args(sources.iter().map(|source| folder.join(source))).arg("-o").arg(made).args(more);
    let output = command.output().expect("cc can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Builds the program and its library in the same folder.
fn program(folder: &Path) -> PathBuf {
    let (library, program) = (folder.join("libnobody.so.1"), folder.join("unknown_mpi"));
    compile(
        &["unknown_mpi_library.c"],
        &library,
        &["-fPIC", "-shared", "-Wl,-soname,libnobody.so.1"],
    );
    let library = library.to_str().expect("paths of this repository are text");
    compile(&["unknown_mpi.c"], &program, &["-fPIE", "-pie", library, "-Wl,-rpath,$ORIGIN"]);
    program
}

/// The program's output with and without the recorder.
const PRINTED: &str = "before 0 0\nrank 0 got 63 ok, code 1\nafter 0 0, in a table 0 0 0\n";

#[test]
fn records_functions_and_times_and_reports_what_is_missing() {
    let temp = TempDir::new();
    let job = Job::new(Mpi::OpenMpi, &program(temp.path()))
        .without_launcher()
        .environment("PMI_RANK", "0")
        .environment("PMI_SIZE", "1");
    assert_eq!(job.bare().stdout, PRINTED);
    let recorded = job.record();
    assert_eq!(recorded.expect_code(0).output.stdout, PRINTED);
    assert!(recorded.output.recorder_lines().is_empty(), "{}", recorded.output);
    let trace = recorded.trace();
    let rank = trace.rank(0);
    let expected = [
        "MPI_Init",
        "MPI_Comm_rank",
        "MPI_Send",
        "MPI_Send",
        "MPI_Send",
        "MPI_Recv",
        "MPI_Send",
        "MPI_Finalize",
    ];
    assert_eq!(rank.calls(), expected);
    assert_eq!(rank.file.header.mpi_family, "unknown");
    assert_eq!(rank.file.header.mpi_library, "Nobody's MPI 0.1");
    assert_eq!(rank.file.fixed.level, 0);
    assert!(rank.threads[0].events.iter().all(|named| named.event.end.is_some()));

    let screen = screen(&recorded.directory());
    assert!(screen.contains("Nobody's MPI 0.1"), "{screen}");
    let note = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(note.contains("the recorder does not know the MPI library"), "{screen}");
    assert!(note.contains("communicators and messages are not"), "{screen}");
}

#[test]
fn program_continues_without_a_rank_and_one_line_says_why() {
    let temp = TempDir::new();
    let job = Job::new(Mpi::OpenMpi, &program(temp.path())).without_launcher();
    let output = job.record_to(&temp.join("run"));
    assert_eq!(output.expect_code(0).stdout, PRINTED);
    assert_eq!(output.recorder_lines().len(), 1, "{output}");
    assert!(output.stderr.contains("unknown and its launcher does not tell the rank"), "{output}");
    assert!(!temp.join("run").exists(), "a run directory was made");
}

/// Runs a program of the system's compiler with and without the recorder, checks that it behaves
/// the same and that nothing is recorded, and returns the recorder's lines.
fn run_with_and_without_recorder(
    temp: &TempDir,
    source: &str,
    library: Option<&str>,
) -> Vec<String> {
    let made = temp.join(source.trim_end_matches(".c"));
    compile(&[source], &made, &[]);
    let mut job = Job::new(Mpi::OpenMpi, &made).without_launcher();
    if let Some(library) = library {
        let made = temp.join(library.replace(".c", ".so"));
        compile(&[library], &made, &["-fPIC", "-shared"]);
        job = job.argument(made);
    }
    let (bare, output) = (job.bare(), job.record_to(&temp.join("run")));
    assert_eq!(output.stdout, bare.stdout, "{output}");
    assert_eq!(output.code(), bare.code(), "{output}");
    assert!(!temp.join("run").exists(), "a run directory was made");
    output.recorder_lines().into_iter().map(str::to_owned).collect()
}

#[test]
fn procedures_found_by_dlsym_answer_as_if_there_were_no_mpi() {
    let lines = run_with_and_without_recorder(&TempDir::new(), "probes_without_mpi.c", None);
    // Each missing procedure is named once; procedures that can answer without an MPI cause no
    // message.
    for name in ["MPI_Init,", "MPI_Is_thread_main,"] {
        assert_eq!(lines.iter().filter(|line| line.contains(name)).count(), 1, "{lines:?}");
    }
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn plugin_with_its_own_blas_is_reopened() {
    let lines = run_with_and_without_recorder(
        &TempDir::new(),
        "reopens_plugin.c",
        Some("plugin_with_blas.c"),
    );
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn mpi_library_is_reopened() {
    let lines =
        run_with_and_without_recorder(&TempDir::new(), "reopens_mpi.c", Some("small_mpi.c"));
    assert!(lines.is_empty(), "{lines:?}");
}

under_both! {
    fn program_without_blas_takes_its_fallback(mpi) {
        let job = Job::new(mpi, &victim(mpi, "falls_back_without_blas"));
        let bare = job.bare();
        let recorded = job.record();
        recorded.expect_code(0).output.expect_same(bare.expect_code(0));
    }

    fn procedure_missing_from_this_mpi_returns_an_error(mpi) {
        let job = Job::new(mpi, &victim(mpi, "probes_with_mpi"));
        let (bare, recorded) = (job.bare(), job.record());
        assert_eq!(recorded.expect_code(0).output.stdout, bare.stdout);
        let lines = recorded.output.recorder_lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("MPI_Abi_get_fortran_info"), "{lines:?}");
        assert_eq!(recorded.trace().rank(0).count("MPI_Comm_rank"), 3);
    }
}
