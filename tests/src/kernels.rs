//! Builds the kernels and `gammachi-mpi`, once for each MPI, and the command; makes synthetic runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::directories::{repository, target_directory};
use crate::mpi::Mpi;

/// Path of the program `kernels` for this MPI, brought up to date once by `scripts/build-kernels`.
///
/// # Panics
/// If it does not build; the message is cargo's.
pub fn kernels(mpi: Mpi) -> PathBuf {
    static KERNELS: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    built_once(&KERNELS, "build-kernels", mpi)
}

/// Path of the program `gammachi-mpi` for this MPI, brought up to date once by
/// `scripts/build-parallel`.
///
/// # Panics
/// If it does not build; the message is cargo's.
pub fn parallel(mpi: Mpi) -> PathBuf {
    static PARALLEL: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    built_once(&PARALLEL, "build-parallel", mpi)
}

fn built_once(programs: &[OnceLock<PathBuf>; 2], script: &str, mpi: Mpi) -> PathBuf {
    let once = &programs[usize::from(mpi == Mpi::Mpich)];
    once.get_or_init(|| {
        let mut command = Command::new(repository().join("scripts").join(script));
        command.arg(mpi.suffix()).env("CARGO_TARGET_DIR", target_directory());
        PathBuf::from(last_line(command))
    })
    .clone()
}

/// Makes a run directory with `synthetic-run`, which explains the arguments: ranks, calls, options.
///
/// # Panics
/// If that fails.
pub fn synthetic_run(directory: &Path, arguments: &[&str]) {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        // As `cargo test --workspace` compiles it, so that nothing is compiled twice.
        build.args(["build", "--quiet", "--workspace", "--all-features", "--example"]);
        build.args(["synthetic-run", "--target-dir"]);
        build.arg(target_directory()).current_dir(repository());
        last_line(build);
        target_directory().join("debug").join("examples").join("synthetic-run")
    });
    let mut make = Command::new(program);
    make.arg(directory).args(arguments);
    last_line(make);
}

/// Path of the command `gammachi`: `GAMMACHI_COMMAND` if it is set, otherwise built here.
///
/// # Panics
/// If it cannot be built.
pub fn command() -> PathBuf {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    COMMAND
        .get_or_init(|| {
            if let Some(named) = std::env::var_os("GAMMACHI_COMMAND") {
                return PathBuf::from(named);
            }
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            build.args(["build", "--quiet", "-p", "gammachi", "--bin", "gammachi", "--target-dir"]);
            build.arg(target_directory()).current_dir(repository());
            last_line(build);
            target_directory().join("debug").join("gammachi")
        })
        .clone()
}

fn last_line(mut command: Command) -> String {
    let output = command.output().expect("the build can be started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} fails:\n{stderr}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().last().unwrap_or_default().to_owned()
}
