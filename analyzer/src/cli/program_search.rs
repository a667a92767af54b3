//! Finds the launcher and the measured program in the words of a command, and executable files as
//! the system would find them.
//!
//! The result is a guess. It names the run directory and fills `program` in `run.json`; nothing
//! that is executed depends on it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, io};

use super::error::{CommandError, eprint_message};

/// Positions of launcher and program in the words of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandParts {
    pub launcher: Option<usize>,
    pub program: Option<usize>,
}

/// Programs that start the program named in their arguments and are not MPI launchers.
const WRAPPERS: [&str; 20] = [
    "env", "time", "timeout", "nice", "ionice", "nohup", "setsid", "stdbuf", "numactl", "taskset",
    "chrt", "setarch", "prlimit", "sudo", "unshare", "strace", "ltrace", "perf", "xargs",
    "gammachi",
];

/// Launchers, by the beginning of their names: `mpirun.openmpi`, `mpiexec.hydra` …
const LAUNCHERS: [&str; 9] =
    ["mpirun", "mpiexec", "orterun", "oshrun", "prterun", "prun", "srun", "aprun", "jsrun"];

/// Options of launchers that are followed by one word; without dashes. Words that are not listed
/// here and are not executable files are skipped, too; the list is for values that look like
/// programs (`--map-by node`, `-x PATH`).
const ONE_WORD: &str = "n np c N p t J A o e q w x f H s host hosts hostfile machinefile machine rf rankfile \
    map-by bind-to rank-by ppr npernode ppn wd wdir wdir= path prefix output output-filename \
    stdin timeout tune am iface launcher launcher-exec bootstrap bootstrap-exec rmk genvlist \
    envlist configfile cpu-bind mpi export chdir nodelist partition account job-name";
/// Options of launchers that are followed by two words.
const TWO_WORDS: [&str; 9] =
    ["mca", "gmca", "omca", "prtemca", "pmixmca", "gpmixmca", "genv", "env", "pmca"];

/// Finds launcher and program in a command: skips wrappers (`env`, `time` …), launchers and their
/// options. The first other word that is an executable file is the program.
pub fn split_command(words: &[OsString], is_executable: impl Fn(&OsStr) -> bool) -> CommandParts {
    let mut parts = CommandParts::default();
    let mut at = 0;
    let mut in_launcher = false;
    let Some(first) = words.first() else { return parts };
    if !starts_others(first) {
        return CommandParts { program: Some(0), ..parts };
    }
    while let Some(word) = words.get(at) {
        if let Some(option) = option_name(word) {
            let values = match option {
                _ if !in_launcher => 0,
                option if TWO_WORDS.contains(&option) => 2,
                option if ONE_WORD.split(' ').any(|name| name == option) => 1,
                _ => 0,
            };
            at += 1 + values;
            continue;
        }
        if is_launcher(word) {
            parts.launcher = parts.launcher.or(Some(at));
            in_launcher = true;
        } else if is_wrapper(word) {
            in_launcher = false;
        } else if is_executable(word) {
            parts.program = Some(at);
            return parts;
        }
        at += 1;
    }
    parts
}

/// The measured programs of a command: one, or one per part separated by `:` (MPMD).
pub fn programs(
    words: &[OsString],
    parts: CommandParts,
    is_executable: impl Fn(&OsStr) -> bool,
) -> Vec<OsString> {
    let Some(launcher) = parts.launcher else {
        return parts.program.map(|at| words[at].clone()).into_iter().collect();
    };
    let mut programs = Vec::new();
    for part in words[launcher + 1..].split(|word| word == ":") {
        let part: Vec<OsString> = [&words[launcher..=launcher], part].concat();
        let program = split_command(&part, &is_executable).program.map(|at| part[at].clone());
        programs.extend(program.filter(|program| !programs.contains(program)));
    }
    programs
}

/// Whether the word names an MPI launcher.
pub fn is_launcher(word: &OsStr) -> bool {
    base_name(word)
        .to_str()
        .is_some_and(|name| LAUNCHERS.iter().any(|launcher| name.starts_with(launcher)))
}

/// The last component of a path, or the word itself.
pub fn base_name(word: &OsStr) -> &OsStr {
    Path::new(word).file_name().unwrap_or(word)
}

fn is_wrapper(word: &OsStr) -> bool {
    base_name(word).to_str().is_some_and(|name| WRAPPERS.contains(&name))
}

fn starts_others(word: &OsStr) -> bool {
    is_launcher(word) || is_wrapper(word)
}

/// `--map-by` and `-map-by` give `map-by`; `-mca=x` and a lone dash give a name that is in no list.
fn option_name(word: &OsStr) -> Option<&str> {
    let dashed = word.as_bytes().strip_prefix(b"-")?;
    Some(std::str::from_utf8(dashed.strip_prefix(b"-").unwrap_or(dashed)).unwrap_or(""))
}

/// The file that the system would execute for a word: the word itself if it contains a slash,
/// otherwise the first match in `PATH`.
///
/// # Errors
/// `NotFound` if there is no such file, `PermissionDenied` if there is one that may not be
/// executed.
pub fn find_executable(word: &OsStr) -> io::Result<PathBuf> {
    find_executable_in(word, env::var_os("PATH").as_deref())
}

fn find_executable_in(word: &OsStr, path: Option<&OsStr>) -> io::Result<PathBuf> {
    if word.as_bytes().contains(&b'/') {
        return executable(PathBuf::from(word));
    }
    let mut denied = None;
    for folder in env::split_paths(path.unwrap_or(OsStr::new("/usr/local/bin:/bin:/usr/bin"))) {
        match executable(folder.join(word)) {
            Ok(found) => return Ok(found),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => denied = Some(error),
            Err(_) => {}
        }
    }
    Err(denied.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

fn executable(path: PathBuf) -> io::Result<PathBuf> {
    let metadata = path.metadata()?;
    if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
        return Ok(path);
    }
    Err(io::ErrorKind::PermissionDenied.into())
}

/// Prints why a program cannot be started. Exit code 127 if it does not exist, otherwise 126, as in
/// a shell.
pub(super) fn cannot_start(word: &OsStr, error: &io::Error) -> CommandError {
    let word = word.to_string_lossy();
    if error.kind() == io::ErrorKind::NotFound {
        let place = if word.contains('/') { "no such file" } else { "not found in PATH" };
        eprint_message(&format!(
            "{word}: {place}; check the name, or load the module that provides it"
        ));
        return CommandError::Exit(127);
    }
    let reason = match error.kind() {
        io::ErrorKind::PermissionDenied => "it is not an executable file".to_owned(),
        _ => error.to_string(),
    };
    eprint_message(&format!("{word}: cannot be started: {reason}"));
    CommandError::Exit(126)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a command in which words that begin with `./`, and `node`, `sort` and `sh`, are
    /// executable.
    fn parts(command: &str) -> (Option<String>, Option<String>) {
        let words: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
        let known = |word: &OsStr| {
            let word = word.to_str().unwrap();
            word.starts_with("./") || ["node", "sort", "sh"].contains(&word)
        };
        let parts = split_command(&words, known);
        let word = |at: Option<usize>| at.map(|at| words[at].to_str().unwrap().to_owned());
        (word(parts.launcher), word(parts.program))
    }

    fn program(command: &str) -> String {
        parts(command).1.unwrap_or_default()
    }

    #[test]
    fn finds_program_without_launcher() {
        assert_eq!(parts("./app sort"), (None, Some("./app".into())));
        assert_eq!(parts("nowhere sort"), (None, Some("nowhere".into())));
    }

    #[test]
    fn finds_program_after_launchers_and_wrappers() {
        assert_eq!(parts("mpirun -n 2 ./app sort"), (Some("mpirun".into()), Some("./app".into())));
        assert_eq!(program("env A=./b mpirun.openmpi -n 2 ./app"), "./app");
        assert_eq!(program("/usr/bin/time -v timeout 60 srun -n 2 ./app"), "./app");
        assert_eq!(program("mpirun --map-by node -x sort --bind-to core ./app"), "./app");
        assert_eq!(program("mpirun --mca plm_rsh_agent ./rsh -n 1 ./app"), "./app");
        assert_eq!(program("mpiexec.hydra -genv sort ./x -launcher-exec ./rsh ./app"), "./app");
        assert_eq!(program("mpirun -n 4 gammachi exec -- ./app"), "./app");
        assert_eq!(program("mpirun --oversubscribe -n 1 ./a : -n 1 ./b"), "./a");
        assert_eq!(program("mpirun --unknown 7 sh -c date"), "sh");
    }

    #[test]
    fn finds_programs_of_all_parts() {
        let words: Vec<OsString> = "mpirun -n 1 ./a x : -n 3 -x A env B=1 ./b : ./a"
            .split_whitespace()
            .map(OsString::from)
            .collect();
        let known = |word: &OsStr| word.to_str().unwrap().starts_with("./");
        let found = programs(&words, split_command(&words, known), known);
        assert_eq!(found, ["./a", "./b"]);
    }

    #[test]
    fn missing_program_is_not_found() {
        assert_eq!(parts("mpirun -n 2 only-on-the-nodes"), (Some("mpirun".into()), None));
        assert_eq!(split_command(&[], |_| true), CommandParts::default());
    }

    #[test]
    fn finds_executables_as_the_system_does() {
        let find =
            |word: &str, path: &str| find_executable_in(OsStr::new(word), Some(OsStr::new(path)));
        assert_eq!(find("sh", "/nowhere:/bin").unwrap(), Path::new("/bin/sh"));
        assert_eq!(find("/bin/sh", "").unwrap(), Path::new("/bin/sh"));
        assert_eq!(find("sh", "/nowhere").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(find("/etc/passwd", "").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(find("/etc", "").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
