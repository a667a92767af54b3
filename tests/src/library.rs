//! Finds the recorder (`GAMMACHI_LIBRARY`) or builds it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::directories::{repository, target_directory};
use crate::mpi::Mpi;

/// Path of `libgammachi.so`: `GAMMACHI_LIBRARY` if it is set, otherwise
/// `<target>/release/libgammachi.so`, brought up to date once by `cargo build`.
///
/// # Panics
/// If the file does not exist or cannot be built.
pub fn library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| named("GAMMACHI_LIBRARY").unwrap_or_else(build)).clone()
}

/// Path of `libgammachi_io.so`, beside [`library`].
///
/// # Panics
/// As [`library`]; also if it is not there.
pub fn io_library() -> PathBuf {
    let path = library().with_file_name("libgammachi_io.so");
    assert!(path.is_file(), "{} is not there; build gammachi-io-shim", path.display());
    path
}

/// The recorder for the programs of an MPI: [`library`] or, for another architecture, the file that
/// `GAMMACHI_LIBRARY_AARCH64` names (`scripts/mpi-matrix` builds it).
///
/// # Panics
/// As [`library`]; for another architecture also if the variable is not set.
pub fn library_for(mpi: Mpi) -> PathBuf {
    match mpi {
        Mpi::MpichAarch64 => named("GAMMACHI_LIBRARY_AARCH64")
            .expect("GAMMACHI_LIBRARY_AARCH64 names the recorder built for AArch64"),
        _ => library(),
    }
}

fn named(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable).filter(|value| !value.is_empty())?;
    let path = std::path::absolute(PathBuf::from(value)).expect("there is a working directory");
    assert!(path.is_file(), "{variable} names {}, which is not a file", path.display());
    Some(path)
}

fn build() -> PathBuf {
    let target = target_directory();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--release", "-p", "gammachi-pmpi-shim"])
        .args(["-p", "gammachi-io-shim", "--target-dir"])
        .arg(&target)
        .current_dir(repository())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "the recorder does not build:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    target.join("release").join("libgammachi.so")
}
