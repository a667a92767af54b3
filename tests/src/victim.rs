//! Builds the programs that are measured.
//!
//! A program of `tests/victims` is built by an MPI's compiler, once for each [`Build`], and again
//! when its source is newer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use crate::directories::{build_directory, repository};
use crate::mpi::{Language, Mpi};

/// How a victim is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Build {
    /// C, position-independent executable.
    C,
    /// C, executable at a fixed address.
    CNoPie,
    /// C with optimisation; functions keep no frame pointer.
    Optimised,
    /// C with optimisation and frame pointers.
    FramePointers,
    /// C++, position-independent executable.
    Cpp,
    /// C++, executable at a fixed address.
    CppNoPie,
    /// C, shared library for preloading.
    Shared,
    /// C with OpenBLAS.
    Blas,
    /// C with OpenMP.
    OpenMp,
    /// C with OpenMP, by Clang: its runtime tells tools what it does.
    OpenMpClang,
    /// C with OpenMP, shared library to be opened.
    OpenMpShared,
    /// C++ with OpenMP.
    OpenMpCpp,
    /// Fortran with OpenMP.
    OpenMpFortran,
    /// C by the system's compiler, without MPI.
    WithoutMpi,
    /// Fortran.
    Fortran,
    /// C with AddressSanitizer.
    Asan,
    /// C with UndefinedBehaviorSanitizer.
    Ubsan,
    /// C with ThreadSanitizer.
    Tsan,
}

impl Build {
    fn suffix(self) -> &'static str {
        match self {
            Self::C => "",
            Self::CNoPie => "-no-pie",
            Self::Optimised => "-o2",
            Self::FramePointers => "-o2-frame-pointers",
            Self::Cpp => "-cpp",
            Self::CppNoPie => "-cpp-no-pie",
            Self::Shared => ".so",
            Self::Blas => "-blas",
            Self::OpenMp => "-openmp",
            Self::OpenMpClang => "-openmp-clang",
            Self::OpenMpShared => "-openmp.so",
            Self::OpenMpCpp => "-openmp-cpp",
            Self::OpenMpFortran => "-openmp-fortran",
            Self::WithoutMpi => "-without-mpi",
            Self::Fortran => "-fortran",
            Self::Asan => "-asan",
            Self::Ubsan => "-ubsan",
            Self::Tsan => "-tsan",
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::C | Self::Cpp | Self::Blas | Self::WithoutMpi | Self::Fortran => {
                &["-fPIE", "-pie"]
            }
            Self::OpenMp | Self::OpenMpCpp | Self::OpenMpFortran => &["-fPIE", "-pie", "-fopenmp"],
            // Of GCC's warnings that are turned off it does not know all, and what it makes of a taskloop has signs mixed.
            Self::OpenMpClang => {
                &["-fPIE", "-pie", "-fopenmp", "-Wno-unknown-warning-option", "-Wno-sign-compare"]
            }
            Self::CNoPie | Self::CppNoPie => &["-fno-pie", "-no-pie"],
            Self::Optimised => &["-fPIE", "-pie", "-O2"],
            Self::FramePointers => &["-fPIE", "-pie", "-O2", "-fno-omit-frame-pointer"],
            Self::Shared => &["-fPIC", "-shared"],
            Self::OpenMpShared => &["-fPIC", "-shared", "-fopenmp"],
            Self::Asan => &["-fPIE", "-pie", "-fsanitize=address"],
            Self::Ubsan => &["-fPIE", "-pie", "-fsanitize=undefined"],
            Self::Tsan => &["-fPIE", "-pie", "-fsanitize=thread"],
        }
    }

    fn libraries(self) -> &'static [&'static str] {
        match self {
            Self::Blas => &["-lopenblas"],
            _ => &[],
        }
    }

    fn compiler(self, mpi: Mpi) -> Command {
        match self {
            Self::C
            | Self::CNoPie
            | Self::Optimised
            | Self::FramePointers
            | Self::Shared
            | Self::Blas
            | Self::OpenMp
            | Self::OpenMpShared
            | Self::Asan
            | Self::Ubsan
            | Self::Tsan => mpi.compiler(Language::C),
            Self::OpenMpClang => {
                let mut command = mpi.compiler(Language::C);
                command.env("MPICH_CC", "clang").env("OMPI_CC", "clang");
                command
            }
            Self::Cpp | Self::CppNoPie | Self::OpenMpCpp => {
                let mut command = mpi.compiler(Language::Cpp);
                // A C file, too, is compiled as C++.
                command.args(["-x", "c++"]);
                command
            }
            Self::WithoutMpi => Command::new("cc"),
            Self::Fortran | Self::OpenMpFortran => mpi.compiler(Language::Fortran),
        }
    }
}

/// Builds `victims/NAME.c` as C for this MPI.
///
/// # Panics
/// As [`built`].
pub fn victim(mpi: Mpi, name: &str) -> PathBuf {
    built(mpi, name, Build::C)
}

/// Builds `victims/NAME.c` (or `.cc`, `.f`, `.f90`) in this way for this MPI.
///
/// # Panics
/// If the compiler is missing or fails; the message is the compiler's.
pub fn built(mpi: Mpi, name: &str, build: Build) -> PathBuf {
    type Made = Arc<OnceLock<PathBuf>>;
    type AllMade = Mutex<HashMap<(Mpi, String, Build), Made>>;
    static BUILT: OnceLock<AllMade> = OnceLock::new();
    let once = {
        let mut all =
            BUILT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        all.entry((mpi, name.to_owned(), build)).or_default().clone()
    };
    once.get_or_init(|| make(mpi, name, build)).clone()
}

fn source_of(name: &str) -> PathBuf {
    let folder = repository().join("tests").join("victims");
    let found =
        ["c", "cc", "f", "f90"].into_iter().map(|ending| folder.join(format!("{name}.{ending}")));
    let mut found = found.filter(|path| path.is_file());
    found.next().unwrap_or_else(|| panic!("there is no victim {name} in {}", folder.display()))
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

fn make(mpi: Mpi, name: &str, build: Build) -> PathBuf {
    let source = source_of(name);
    let include = repository().join("pmpi-shim").join("include");
    let shared = ["victim.h", "dies.h", "longjmp.h"].map(|name| source.with_file_name(name));
    let program = build_directory().join(format!("{name}-{}{}", mpi.suffix(), build.suffix()));
    let own = [source.clone(), include.join("gammachi.h")];
    let inputs = shared.iter().chain(&own);
    let newest = inputs.filter_map(|input| changed(input)).max();
    if changed(&program).is_some_and(|made| newest.is_some_and(|newest| made > newest)) {
        return program;
    }
    // Another test program may build the same victim: the finished file is renamed in one step.
    let unfinished = program.with_added_process_id();
    let mut command = build.compiler(mpi);
    command.args(["-g", "-O1"]);
    if matches!(build, Build::Fortran | Build::OpenMpFortran) {
        // Two simultaneous builds must not write the same module file.
        let mut modules = unfinished.clone().into_os_string();
        modules.push(".modules");
        std::fs::create_dir_all(&modules).expect("the build directory is writable");
        // A buffer argument takes integers in one call and reals in another.
        command.arg("-fallow-argument-mismatch").arg("-w").arg("-J").arg(modules);
    } else {
        command
            .args(["-Wall", "-Wextra", "-Werror"])
            // gcc 12 mistakes MPI_STATUSES_IGNORE for an array, and some victims are wrong on
            // purpose.
            .args(["-Wno-stringop-overflow", "-Wno-stringop-overread", "-Wno-nonnull"])
            // As `puts`, a line leaves in two pieces where MPICH has turned buffering off, and lines
            // of two ranks mix.
            .arg("-fno-builtin-printf")
            // The C++ bindings are unused, and their headers cause warnings.
            .args(["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]);
    }
    command
        .arg("-I")
        .arg(&include)
        .args(build.arguments())
        .arg(&source)
        .arg("-o")
        .arg(&unfinished)
        .args(["-pthread", "-lm"])
        .args(build.libraries());
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{} does not build:\n{command:?}\n{}",
        source.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::rename(&unfinished, &program).expect("the build directory is writable");
    program
}

/// Derives a file name that no other process uses.
trait ProcessPath {
    fn with_added_process_id(&self) -> PathBuf;
}

impl ProcessPath for PathBuf {
    fn with_added_process_id(&self) -> PathBuf {
        let mut name = self.clone().into_os_string();
        name.push(format!(".{}", std::process::id()));
        PathBuf::from(name)
    }
}
