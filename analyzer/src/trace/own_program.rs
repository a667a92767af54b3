//! Tells a user's own program from the libraries that it calls.

use std::path::{Component, Path, PathBuf};

use trace_format::header::FileHeader;

/// Detail level from which call paths are recorded.
pub const PATHS_LEVEL: u8 = 2;
/// Programs that run a program in another language, whose lines are not in their code. Only Python's
/// functions are on call paths.
const INTERPRETERS: [&str; 9] =
    [PYTHON, "perl", "ruby", "julia", "R", "octave-cli", "octave-gui", "lua", "java"];
const PYTHON: &str = "python";
/// Folders whose content is installed by the system.
const SYSTEM_FOLDERS: [&str; 8] =
    ["/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix", "/gnu"];
/// Folders of installed Python packages.
const PACKAGE_FOLDERS: [&str; 2] = ["site-packages", "dist-packages"];
/// Names of code that comes with Python but is in no file.
const FROZEN: &str = "<frozen ";

/// What belongs to a rank's own program.
#[derive(Debug)]
pub struct OwnProgram {
    executable: PathBuf,
    /// Folders whose shared libraries belong to the program, too.
    folders: Vec<PathBuf>,
    /// Whether the executable is an interpreter.
    is_interpreted: bool,
    /// Whether call paths have functions of the program.
    pub has_call_paths: bool,
}

impl OwnProgram {
    /// The executable and what lies below its folder (`bin` and `lib` beside each other count as
    /// one) or below the working directory. An interpreter is not the user's program.
    pub fn new(header: &FileHeader) -> Self {
        let executable = PathBuf::from(&header.program);
        let interpreter = interpreter(&executable);
        let is_interpreted = interpreter.is_some();
        let has_call_paths = interpreter.is_none_or(|name| name == PYTHON);
        let folder = executable.parent().filter(|_| !is_interpreted).map(|folder| {
            let above = folder.parent().filter(|above| is_of_user(above));
            above.filter(|_| folder.ends_with("bin")).unwrap_or(folder)
        });
        let directory = Path::new(&header.directory);
        let folders = folder.into_iter().chain([directory]).filter(|folder| is_of_user(folder));
        Self {
            folders: folders.map(Path::to_owned).collect(),
            executable,
            is_interpreted,
            has_call_paths,
        }
    }

    /// Whether a module is the executable or one of the program's own libraries, or a Python file of
    /// the program. If the path of the executable is not known, as in imported and anonymised runs,
    /// every module may be.
    pub fn contains(&self, module: &str) -> bool {
        if module.ends_with(".py") || module.starts_with('<') {
            return !comes_with_python(module);
        }
        let path = Path::new(module);
        if !self.executable.is_absolute() {
            return true;
        }
        if path == self.executable {
            return !self.is_interpreted;
        }
        self.folders.iter().any(|folder| path.starts_with(folder)) && !is_in_package(path)
    }
}

fn is_in_package(path: &Path) -> bool {
    let is_package =
        |part: Component| PACKAGE_FOLDERS.iter().any(|folder| part.as_os_str() == *folder);
    path.components().any(is_package)
}

/// Whether a Python file belongs to Python itself (`lib/python3.11/json/decoder.py`) or to an
/// installed package.
fn comes_with_python(file: &str) -> bool {
    let is_standard = |(folder, rest): (&str, &str)| {
        rest.split('/').next().is_some_and(|version| version.starts_with('3')) && !folder.is_empty()
    };
    let standard = ["/lib/python", "/lib64/python"];
    let mut found = standard.iter().filter_map(|folder| file.split_once(folder));
    file.starts_with(FROZEN) || found.any(is_standard) || is_in_package(Path::new(file))
}

/// Whether a folder may hold a user's program with its libraries.
fn is_of_user(folder: &Path) -> bool {
    let is_shared = folder.parent().is_none() || folder == Path::new("/opt");
    folder.is_absolute()
        && !is_shared
        && !SYSTEM_FOLDERS.iter().any(|system| folder.starts_with(system))
}

/// The interpreter that a program is, by its name without the version: `python3.11`.
fn interpreter(executable: &Path) -> Option<&'static str> {
    let name = executable.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.into_iter().find(|known| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic_trace::SyntheticRank;

    fn own(program: &str, directory: &str) -> OwnProgram {
        let mut header = SyntheticRank::new(0, 1).header;
        (header.program, header.directory) = (program.into(), directory.into());
        OwnProgram::new(&header)
    }

    #[test]
    fn own_libraries_lie_beside_the_program() {
        let app = own("/home/ada/flow/build/flow", "/scratch/job");
        for module in
            ["/home/ada/flow/build/flow", "/home/ada/flow/build/libmesh.so", "/scratch/job/udf.so"]
        {
            assert!(app.contains(module), "{module}");
        }
        for module in ["/usr/lib/libpetsc.so.3.18", "/home/ada/petsc/lib/libpetsc.so", ""] {
            assert!(!app.contains(module), "{module}");
        }
        let installed = own("/home/ada/flow/bin/flow", "/");
        assert!(installed.contains("/home/ada/flow/lib/libmesh.so"));
        let of_system = own("/usr/bin/pw.x", "/usr/share");
        assert!(of_system.contains("/usr/bin/pw.x"));
        assert!(!of_system.contains("/usr/lib/libscalapack.so"));
        let unknown = own("", "/");
        assert!(unknown.contains("/usr/lib/libpetsc.so"));
    }

    #[test]
    fn interpreter_is_not_the_users_program() {
        let script = own("/home/ada/env/bin/python3.11", "/home/ada/jobs");
        assert!(script.is_interpreted);
        assert!(!script.contains("/home/ada/env/bin/python3.11"));
        let package = "/home/ada/jobs/.venv/lib/python3.11/site-packages/mpi4py/MPI.so";
        assert!(!script.contains(package));
        assert!(script.contains("/home/ada/jobs/kernels.so"));
        assert!(!own("/home/ada/Rheo", "/").is_interpreted);
    }

    #[test]
    fn python_files_are_the_users_unless_they_come_with_python_or_are_installed() {
        let script = own("/usr/bin/python3.11", "/scratch/job");
        for file in ["/home/ada/heat.py", "/scratch/job/lib/grid.py", "<string>", "<stdin>"] {
            assert!(script.contains(file), "{file}");
        }
        for file in [
            "/usr/lib/python3.11/json/decoder.py",
            "/home/ada/env/lib/python3.12/site-packages/numpy/linalg/_linalg.py",
            "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
            "<frozen importlib._bootstrap>",
        ] {
            assert!(!script.contains(file), "{file}");
        }
    }
}
