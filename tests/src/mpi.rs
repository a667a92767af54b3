//! The MPIs that tests run under.
//!
//! In: what Debian installs. Out: compiler and launcher of each, as commands ready for arguments.

use std::process::{Command, Stdio};

/// A real MPI of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mpi {
    /// Debian's Open MPI.
    OpenMpi,
    /// Debian's MPICH.
    Mpich,
}

/// Languages that victims are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// C, by `mpicc`.
    C,
    /// C++, by `mpicxx`.
    Cpp,
}

impl Mpi {
    /// Ending of its commands' names and of the files built for it.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
        }
    }

    /// The Debian packages that hold compiler and launcher.
    pub fn packages(self) -> &'static str {
        match self {
            Self::OpenMpi => "libopenmpi-dev openmpi-bin",
            Self::Mpich => "libmpich-dev mpich",
        }
    }

    /// Its compiler, which knows where headers and libraries are.
    ///
    /// # Panics
    /// When it is not installed; the message names the package.
    pub fn compiler(self, language: Language) -> Command {
        let stem = match language {
            Language::C => "mpicc",
            Language::Cpp => "mpicxx",
        };
        self.installed(&format!("{stem}.{}", self.suffix()))
    }

    /// Its launcher with what tests need everywhere: root allowed, more ranks than cores allowed,
    /// waiting ranks give the core away.
    ///
    /// # Panics
    /// When it is not installed; the message names the package.
    pub fn launcher(self) -> Command {
        let mut command = self.installed(&format!("mpirun.{}", self.suffix()));
        if self == Self::OpenMpi {
            command.arg("--oversubscribe");
        }
        command
    }

    /// Environment that this MPI's programs need on a small machine and as root.
    pub fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::OpenMpi => &[
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
                ("OMPI_MCA_mpi_yield_when_idle", "1"),
                // Containers forbid what it tries first; the fallback is the same and quiet.
                ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
            ],
            Self::Mpich => &[],
        }
    }

    fn installed(self, name: &str) -> Command {
        let found = Command::new(name)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(
            found.is_ok(),
            "{name} is not installed; on Debian: apt-get install {}",
            self.packages()
        );
        Command::new(name)
    }
}
