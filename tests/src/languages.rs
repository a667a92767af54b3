//! The same small program in every language: how to build and start it under an MPI.

use std::path::PathBuf;

use crate::Job;
use crate::directories::{build_directory, repository};
use crate::mpi::{Language, Mpi};
use crate::victim::{Build, built};

/// A way to call MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// C.
    C,
    /// C++ (the C functions).
    Cpp,
    /// Fortran with `mpif.h`.
    MpifH,
    /// Fortran with `use mpi`.
    UseMpi,
    /// Fortran with `use mpi_f08`.
    UseMpiF08,
    /// Debian's mpi4py.
    DebianMpi4py,
    /// PyPI's mpi4py.
    PypiMpi4py,
    /// Rust with rsmpi.
    Rsmpi,
}

/// Without UCX and CMA, the component that Open MPI 4.1 has left for windows refuses mpi4py's
/// MPI_THREAD_MULTIPLE.
const THREAD_LEVEL: (&str, &str) = ("MPI4PY_RC_THREAD_LEVEL", "serialized");

/// Folder of the programs and their expected events, relative to `tests/victims`.
const FOLDER: &str = "../languages";

impl Binding {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::C,
        Self::Cpp,
        Self::MpifH,
        Self::UseMpi,
        Self::UseMpiF08,
        Self::DebianMpi4py,
        Self::PypiMpi4py,
        Self::Rsmpi,
    ];

    /// Its name in a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::Cpp => "C++",
            Self::MpifH => "mpif.h",
            Self::UseMpi => "use mpi",
            Self::UseMpiF08 => "mpi_f08",
            Self::DebianMpi4py => "mpi4py 3.1",
            Self::PypiMpi4py => "mpi4py 4.1",
            Self::Rsmpi => "rsmpi",
        }
    }

    /// The conditions of an `.expected` file that hold for it.
    pub fn facts(self) -> &'static [&'static str] {
        match self {
            Self::C => &["c"],
            Self::Cpp => &["c++"],
            Self::MpifH => &["fortran", "mpif.h"],
            Self::UseMpi => &["fortran", "use-mpi"],
            Self::UseMpiF08 => &["fortran", "mpi_f08"],
            Self::DebianMpi4py => &["mpi4py", "mpi4py-3"],
            Self::PypiMpi4py => &["mpi4py", "mpi4py-4"],
            Self::Rsmpi => &["rsmpi"],
        }
    }

    /// Calls that the comparison leaves out: around the program's calls, mpi4py queries handles,
    /// sizes and attributes, and each version does so differently. They are recorded like all other
    /// calls.
    pub fn left_out(self) -> &'static [&'static str] {
        match self {
            Self::DebianMpi4py | Self::PypiMpi4py => &[
                "MPI_Initialized",
                "MPI_Finalized",
                "MPI_Query_thread",
                "MPI_Comm_rank",
                "MPI_Comm_size",
                "MPI_Comm_test_inter",
                "MPI_Comm_set_errhandler",
                "MPI_Win_set_errhandler",
                "MPI_Type_get_extent",
                "MPI_Type_get_extent_x",
                "MPI_Comm_create_keyval",
                "MPI_Comm_free_keyval",
                "MPI_Comm_get_attr",
                "MPI_Comm_set_attr",
                "MPI_Comm_delete_attr",
                "MPI_Win_create_keyval",
                "MPI_Win_free_keyval",
                "MPI_Win_get_attr",
                "MPI_Win_set_attr",
            ],
            _ => &[],
        }
    }

    /// Its programs: name of the source and of the expected events.
    pub fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::C | Self::Cpp => &[("program", "program")],
            Self::MpifH => &[("program_mpif_h", "program")],
            Self::UseMpi => &[("program_use_mpi", "program")],
            Self::UseMpiF08 => &[
                ("program_use_mpi_f08", "program"),
                ("strided_use_mpi_f08", "strided_use_mpi_f08"),
            ],
            Self::DebianMpi4py | Self::PypiMpi4py => {
                &[("program_mpi4py", "program"), ("pickled_mpi4py", "pickled_mpi4py")]
            }
            Self::Rsmpi => &[("rsmpi", "program")],
        }
    }

    /// Why it cannot be used under an MPI; `None` if it can.
    pub fn not_applicable(self, mpi: Mpi) -> Option<&'static str> {
        match self {
            Self::C | Self::Cpp => None,
            _ if mpi == Mpi::MpichAarch64 => Some("only C and C++ are cross-compiled"),
            Self::PypiMpi4py => None,
            Self::Rsmpi if mpi.family() == "abi" => {
                Some("rsmpi 0.8 does not compile against the standard ABI's header (no MPI_Fint)")
            }
            Self::Rsmpi => None,
            Self::DebianMpi4py => match mpi {
                Mpi::OpenMpi => None,
                _ => Some("Debian's module is linked with Debian's Open MPI"),
            },
            Self::UseMpiF08 if mpi == Mpi::Intel => {
                Some("Intel's mpi_f08 module is for Intel's compiler only")
            }
            Self::MpifH | Self::UseMpi | Self::UseMpiF08 => {
                let missing = mpi.find_compiler(Language::Fortran).is_none();
                missing.then_some(match mpi.family() {
                    "abi" => "no Fortran module for gfortran in the standard ABI",
                    _ => "PyPI's wheel holds no Fortran bindings",
                })
            }
        }
    }

    /// A job that runs one of its [programs](Self::programs).
    ///
    /// # Panics
    /// If it does not build; the message is the compiler's.
    pub fn job(self, mpi: Mpi, program: &str) -> Job {
        let script = repository().join("tests/languages").join(format!("{program}.py"));
        match self {
            Self::C => Job::new(mpi, &build(mpi, program, Build::C)),
            Self::Cpp => Job::new(mpi, &build(mpi, program, Build::Cpp)),
            Self::MpifH | Self::UseMpi | Self::UseMpiF08 => {
                Job::new(mpi, &build(mpi, program, Build::Fortran))
            }
            Self::DebianMpi4py => Job::new(mpi, "/usr/bin/python3".as_ref())
                .environment(THREAD_LEVEL.0, THREAD_LEVEL.1)
                .argument(script),
            Self::PypiMpi4py => mpi4py(mpi).argument(script),
            Self::Rsmpi => {
                let program = build_directory().join(format!("rsmpi-{}", mpi.suffix()));
                let folder = mpi.environment_folder().map(|folder| folder.join("lib"));
                Job::new(mpi, &program).environment("LD_LIBRARY_PATH", folder.unwrap_or_default())
            }
        }
        .ranks(2)
    }
}

fn build(mpi: Mpi, program: &str, build: Build) -> PathBuf {
    std::fs::create_dir_all(build_directory().join(FOLDER)).expect("the target folder is writable");
    built(mpi, &format!("{FOLDER}/{program}"), build)
}

/// A job that runs PyPI's mpi4py under an MPI; the caller adds the script as an argument.
pub fn mpi4py(mpi: Mpi) -> Job {
    let cache = crate::mpi::cache_folder();
    let python = |name: &str| Job::new(mpi, &cache.join(name).join("bin/python"));
    match mpi {
        Mpi::OpenMpi => python("debian")
            .environment("MPI4PY_LIBMPI", "libmpi.so.40")
            .environment(THREAD_LEVEL.0, THREAD_LEVEL.1),
        Mpi::Mpich => python("debian")
            .environment("MPI4PY_LIBMPI", "libmpi.so.12")
            .environment("LD_LIBRARY_PATH", cache.join("debian/mpich")),
        Mpi::OpenMpi5 => python("openmpi5"),
        Mpi::Mpich43 => python("mpich43"),
        Mpi::Mpich5 => python("mpich5"),
        // Both of Intel's wheels contain the library. mpi4py finds the other copy first, and
        // Intel's library does not start as the second copy in a process.
        Mpi::Intel => {
            python("impi").environment("MPI4PY_LIBMPI", cache.join("impi/lib/libmpi.so.12"))
        }
        Mpi::Mpich5Abi => python("abi").environment("LD_LIBRARY_PATH", cache.join("mpich5/lib")),
        Mpi::IntelAbi => python("abi").environment("LD_LIBRARY_PATH", cache.join("impi/lib")),
        Mpi::MpichAarch64 => panic!("there is no emulated Python"),
    }
}
