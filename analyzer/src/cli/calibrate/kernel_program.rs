//! Finds the program `kernels` that was built for the MPI of a launcher.
//!
//! `kernels` (package gammachi-bench-kernels) is an ordinary MPI program, so there is one per MPI;
//! `scripts/build-kernels` builds them.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use crate::cli::error::CommandError;
use crate::cli::program_search::{base_name, find_executable};
use crate::shell_word::shell_word;

/// The option of the commands that start a kernel.
#[derive(Debug, Clone, Default, Args)]
pub struct KernelOptions {
    /// Program `kernels` built for the launcher's MPI [default: beside gammachi, in
    /// ../libexec/gammachi, or where scripts/build-kernels puts it]
    #[arg(long, value_name = "PATH")]
    pub kernels: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelMpi {
    OpenMpi,
    /// MPICH and libraries with its ABI.
    Mpich,
}

impl KernelMpi {
    /// The name that files and `scripts/build-kernels` use.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
        }
    }

    /// The MPI of a launcher: by the suffix of its name, otherwise by its `--version`. `None` for
    /// launchers that belong to no MPI (srun) and for programs that cannot be started.
    pub fn of_launcher(launcher: &OsStr) -> Option<Self> {
        let resolved = find_executable(launcher).and_then(|path| path.canonicalize());
        let names = [Some(launcher.to_owned()), resolved.ok().map(PathBuf::into_os_string)];
        let by_name = names.iter().flatten().find_map(|path| Self::by_name(base_name(path)));
        by_name.or_else(|| {
            let output =
                Command::new(launcher).arg("--version").stdin(Stdio::null()).output().ok()?;
            let text = [output.stdout, output.stderr].concat();
            Self::by_version(&String::from_utf8_lossy(&text))
        })
    }

    fn by_name(name: &OsStr) -> Option<Self> {
        let name = name.to_str()?;
        let contains = |words: &[&str]| words.iter().any(|word| name.contains(word));
        match () {
            () if contains(&["openmpi", "orterun", "prterun"]) => Some(Self::OpenMpi),
            () if contains(&["mpich", "hydra"]) => Some(Self::Mpich),
            () => None,
        }
    }

    fn by_version(text: &str) -> Option<Self> {
        let contains = |words: &[&str]| words.iter().any(|word| text.contains(word));
        match () {
            () if contains(&["Open MPI", "OpenRTE", "PRRTE", "PRTE"]) => Some(Self::OpenMpi),
            () if contains(&["HYDRA", "Intel(R) MPI", "MVAPICH"]) => Some(Self::Mpich),
            () => None,
        }
    }
}

/// Finds the kernels for a launcher: at the given path; else beside the command, in
/// `../libexec/gammachi`, and where `scripts/build-kernels` puts them.
pub fn kernel_program(options: &KernelOptions, launcher: &OsStr) -> Result<PathBuf, CommandError> {
    if let Some(named) = &options.kernels {
        let path = std::path::absolute(named).unwrap_or_else(|_| named.clone());
        return find_executable(path.as_os_str()).map_err(|_| {
            CommandError::usage(format!(
                "--kernels {}: it is not an executable file; `{} openmpi` (or mpich) builds one and \
                 prints its path",
                named.display(),
                build_script(env::current_exe().ok().as_deref())
            ))
        });
    }
    let Some(mpi) = KernelMpi::of_launcher(launcher) else {
        return Err(CommandError::usage(format!(
            "{}: it is not known which MPI this launcher belongs to; name the program built for it \
             with --kernels PATH (`{} openmpi` or mpich builds it)",
            launcher.to_string_lossy(),
            build_script(env::current_exe().ok().as_deref())
        )));
    };
    let target = env::var_os("CARGO_TARGET_DIR").filter(|path| !path.is_empty());
    find(mpi, env::current_exe().ok().as_deref(), target.as_deref().map(Path::new))
}

fn find(
    mpi: KernelMpi,
    executable: Option<&Path>,
    target: Option<&Path>,
) -> Result<PathBuf, CommandError> {
    let places = places(mpi, executable, target);
    if let Some(found) = places.iter().find(|place| find_executable(place.as_os_str()).is_ok()) {
        return Ok(found.clone());
    }
    let places: Vec<String> = places.iter().map(|place| format!("  {}", place.display())).collect();
    let name = mpi.name();
    Err(CommandError::Program(format!(
        "the program kernels for {name} was not found; looked at\n{}\nbuild it (needs Rust and \
         libclang), after that it is found: {} {name}",
        places.join("\n"),
        build_script(executable)
    )))
}

/// Where a release archive keeps the kernels' source, below the folder with `bin`.
const SOURCE: &str = "share/gammachi/kernels";

/// The script that builds the kernels, as a word for a shell: that of the archive in which the
/// command lies, or that of a checkout.
fn build_script(executable: Option<&Path>) -> String {
    let script = Path::new("scripts/build-kernels");
    let above = executable.and_then(Path::parent).and_then(Path::parent);
    let installed = above.map(|above| above.join(SOURCE).join(script));
    let script = installed.filter(|path| path.is_file()).unwrap_or_else(|| script.to_owned());
    shell_word(&script.to_string_lossy())
}

fn places(mpi: KernelMpi, executable: Option<&Path>, target: Option<&Path>) -> Vec<PathBuf> {
    let file = format!("kernels-{}", mpi.name());
    let built = |target: &Path| target.join(&file).join("release").join("kernels");
    let mut places = Vec::new();
    if let Some(folder) = executable.and_then(Path::parent) {
        places.push(folder.join(&file));
        if let Some(above) = folder.parent() {
            places.push(above.join("libexec").join("gammachi").join(&file));
            places.push(built(above));
            places.push(built(&above.join(SOURCE).join("target")));
        }
    }
    if let Some(target) = target {
        let path = std::path::absolute(built(target)).unwrap_or_else(|_| built(target));
        if !places.contains(&path) {
            places.push(path);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn make_program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn nearest_place_takes_precedence() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let executable = root.join("release").join("gammachi");
        let other = root.join("other");
        let found = || find(KernelMpi::Mpich, Some(&executable), Some(&other));

        let error = found().unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("scripts/build-kernels mpich"), "{error}");

        // In the archive, the message names the command that works there.
        let script = root.join("share/gammachi/kernels/scripts/build-kernels");
        make_program(&script);
        let error = found().unwrap_err().to_string();
        assert!(error.ends_with(&format!("{} mpich", script.display())), "{error}");

        let places = places(KernelMpi::Mpich, Some(&executable), Some(&other));
        assert_eq!(places.len(), 5);
        for place in places.iter().rev() {
            make_program(place);
            assert_eq!(found().unwrap(), *place);
        }
        let named = KernelOptions { kernels: Some(root.join("nowhere")) };
        let refused = kernel_program(&named, OsStr::new("mpirun")).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
    }

    #[test]
    fn recognises_mpi_of_launchers() {
        use KernelMpi::{Mpich, OpenMpi};
        for (name, mpi) in [
            ("mpirun.openmpi", Some(OpenMpi)),
            ("mpiexec.hydra", Some(Mpich)),
            ("mpirun", None),
            ("srun", None),
        ] {
            assert_eq!(KernelMpi::by_name(OsStr::new(name)), mpi, "{name}");
        }
        for (text, mpi) in [
            ("mpirun (Open MPI) 4.1.4", Some(OpenMpi)),
            ("HYDRA build details:\n    Version: 4.0.2", Some(Mpich)),
            ("Intel(R) MPI Library for Linux* OS, Version 2021.18", Some(Mpich)),
            ("slurm-wlm 22.05.8", None),
        ] {
            assert_eq!(KernelMpi::by_version(text), mpi, "{text}");
        }
    }
}
