//! The recorder never changes the behaviour of the program; a process without MPI is unaffected.

use std::process::{Command, Stdio};

use system_tests::directories::TempDir;
use system_tests::library::library;
use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, under_both, under_mpich, victim};

/// Standard output, standard error and exit code of a command, recorded to `out` if given.
fn run(command: &[&str], out: Option<&std::path::Path>) -> (String, String, Option<i32>) {
    let mut process = Command::new(command[0]);
    process.args(&command[1..]).stdin(Stdio::null()).env("LC_ALL", "C");
    process.env_remove("LD_PRELOAD");
    if let Some(out) = out {
        process.env("LD_PRELOAD", library()).env("GAMMACHI_OUT", out);
    }
    let output = process.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

under_both! {
    fn keeps_results_errors_statuses_and_errno(mpi) {
        let program = built(mpi, "results", Build::CNoPie);
        let job = Job::new(mpi, &program).ranks(2);
        job.bare().expect_code(0);
        job.record().expect_code(0);
        // A launcher may mix the lines of two ranks: let one print at a time.
        for rank in ["0", "1"] {
            let only = format!(
                "if [ \"${{PMI_RANK-$OMPI_COMM_WORLD_RANK}}\" = {rank} ]; then exec \"$0\"; \
                 else exec \"$0\" >/dev/null; fi"
            );
            let job = Job::new(mpi, "/bin/sh".as_ref())
                .argument("-c")
                .argument(&only)
                .argument(&program)
                .ranks(2);
            let (bare, recorded) = (job.bare(), job.record());
            assert!(bare.stdout.lines().count() > 10, "{bare}");
            recorded.expect_code(0).output.expect_same(&bare);
            assert_eq!(recorded.trace().rank(0).count("MPI_Pcontrol"), 3);
        }
    }

    fn does_not_read_insignificant_arguments(mpi) {
        check_insignificant_arguments(mpi, "1");
    }

    fn does_not_read_insignificant_arguments_at_level_0(mpi) {
        check_insignificant_arguments(mpi, "0");
    }

    fn wrong_arguments_give_the_same_errors(mpi) {
        check_wrong_arguments(mpi, "1");
    }

    fn keeps_exit_code_after_finalize(mpi) {
        let job = Job::new(mpi, &victim(mpi, "returns_3")).ranks(2);
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        recorded.expect_code(3);
        let trace = recorded.trace();
        for rank in &trace.ranks {
            assert_eq!(rank.calls().len(), 12);
            // The launcher may kill a rank that is still in MPI_Finalize when another has returned 3.
            assert!(rank.is_finalized() || rank.open_calls() == ["MPI_Finalize"]);
        }
        assert!(trace.ranks.iter().any(|rank| rank.is_finalized()));
    }

    fn second_mpi_init_gives_the_same_error(mpi) {
        let job = Job::new(mpi, &victim(mpi, "initialises_twice"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).count("MPI_Comm_rank"), if recorded.output.code() == 0 { 5 } else { 0 });
    }

    fn launcher_alone_is_unaffected(mpi) {
        let temp = TempDir::new();
        let launcher = format!("mpirun.{}", mpi.suffix());
        for command in [&[launcher.as_str(), "--version"][..], &[&launcher, "--help"]] {
            assert_eq!(run(command, Some(&temp.join("run"))), run(command, None), "{command:?}");
        }
        assert!(!temp.join("run").exists(), "a run directory was made");
    }

    fn ranks_without_mpi_are_unaffected(mpi) {
        let temp = TempDir::new();
        let job = Job::new(mpi, "/bin/sh".as_ref()).argument("-c").argument("echo hi; exit 5").ranks(2);
        let recorded = job.record_to(&temp.join("run"));
        recorded.expect_same(&job.bare());
        recorded.expect_code(5);
        assert!(!temp.join("run").exists(), "a run directory was made");
    }

    fn program_without_mpi_init_makes_no_run_directory(mpi) {
        let temp = TempDir::new();
        let job = Job::new(mpi, &victim(mpi, "never_initialises")).without_launcher();
        let recorded = job.record_to(&temp.join("run"));
        recorded.expect_same(&job.bare());
        recorded.expect_code(4);
        assert!(!temp.join("run").exists(), "a run directory was made");
    }

    fn records_program_started_without_launcher(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "returns_3")).without_launcher().record();
        recorded.expect_code(3);
        assert_eq!(recorded.trace().rank(0).count("MPI_Comm_rank"), 10);
    }

    fn records_with_few_file_descriptors(mpi) {
        let job = Job::new(mpi, "/bin/sh".as_ref())
            .argument("-c")
            .argument("ulimit -n 128; exec \"$0\" 100000")
            .argument(victim(mpi, "many_calls"));
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        assert_eq!(recorded.trace().rank(0).count("MPI_Comm_rank"), 100_000);
    }
}

under_mpich! {
    fn wrong_arguments_give_the_same_errors_at_level_0(mpi) {
        check_wrong_arguments(mpi, "0");
    }
}

#[test]
fn processes_without_mpi_are_unaffected() {
    let temp = TempDir::new();
    let program = built(Mpi::OpenMpi, "without_mpi", Build::WithoutMpi);
    let program = program.to_str().expect("paths of this repository are text");
    for command in [
        &["/bin/sh", "-c", "echo hi; exit 5"][..],
        &["/bin/sh", "-c", "echo to standard error >&2; kill -9 $$"],
        &[program, "argument"],
        &["/bin/true"],
        &["/bin/false"],
    ] {
        assert_eq!(run(command, Some(&temp.join("run"))), run(command, None), "{command:?}");
    }
    assert!(!temp.join("run").exists(), "a run directory was made");
}

fn check_insignificant_arguments(mpi: Mpi, level: &str) {
    let job = Job::new(mpi, &victim(mpi, "insignificant_arguments"))
        .ranks(3)
        .environment("GAMMACHI_LEVEL", level);
    job.bare().expect_code(0);
    let recorded = job.record();
    recorded.expect_code(0);
    assert_eq!(recorded.output.stdout, "alive\n");
    assert!(recorded.output.recorder_lines().is_empty(), "{}", recorded.output);
    assert!(recorded.trace().ranks.iter().all(|rank| rank.is_finalized()));
}

/// Makes each wrong call of the victim in its own process; one failure lists all differences.
fn check_wrong_arguments(mpi: Mpi, level: &str) {
    let mut different = Vec::new();
    for call in 0..=25 {
        let job = Job::new(mpi, &victim(mpi, "wrong_arguments"))
            .without_launcher()
            .environment("GAMMACHI_LEVEL", level)
            .argument(call.to_string());
        let bare = job.bare();
        assert_ne!(bare.code(), 77, "there is no call {call}");
        if bare.code() != 0 {
            continue; // This MPI ends the bare program, too.
        }
        let recorded = job.record();
        if (&recorded.output.stdout, recorded.output.code()) != (&bare.stdout, bare.code()) {
            different.push(format!("call {call}: {}", recorded.output));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
