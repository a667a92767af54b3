//! Finds the MPI libraries and launchers of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use serde_json::json;

use super::finding::{Finding, Mark};
use crate::cli::program_search::find_executable;

/// Sonames of MPI libraries and the families that use them.
const SONAMES: [(&str, &str); 4] = [
    ("libmpi.so.40", "Open MPI"),
    ("libmpich.so.12", "MPICH"),
    ("libmpi.so.12", "MPICH family (MPICH, Intel MPI, MVAPICH, Cray)"),
    ("libmpi_abi.so.1", "MPI-5 ABI"),
];

/// Names of launchers; suffixes such as `.openmpi` are allowed.
const LAUNCHERS: [&str; 7] = ["mpirun", "mpiexec", "orterun", "prterun", "srun", "aprun", "jsrun"];

/// How long a launcher may take to print its version.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn findings() -> Vec<Finding> {
    vec![libraries(), launchers()]
}

fn libraries() -> Finding {
    let mut found: Vec<(&str, PathBuf)> = Vec::new();
    let search_path = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    for (soname, family) in SONAMES {
        for folder in env::split_paths(&search_path) {
            let path = folder.join(soname);
            if path.is_file() {
                found.push((family, path));
            }
        }
    }
    found.extend(parse_cache(&linker_cache()));
    if found.is_empty() {
        return Finding::new(
            "libraries",
            Mark::Note,
            "none known to the dynamic linker",
            "A program that brings its own (by RPATH, a module to be loaded, a container) is \
             recorded all the same; the recorder links to no MPI.",
        )
        .with("libraries", json!([]));
    }
    let shown: Vec<String> =
        found.iter().map(|(family, path)| format!("{family} ({})", path.display())).collect();
    let data: Vec<_> = found
        .iter()
        .map(|(family, path)| json!({ "family": family, "path": path.to_string_lossy() }))
        .collect();
    Finding::new("libraries", Mark::Ok, shown.join(", "), "The same recorder serves all of them.")
        .with("libraries", data)
}

fn linker_cache() -> String {
    let output = ["/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"]
        .iter()
        .find_map(|program| Command::new(program).arg("-p").stdin(Stdio::null()).output().ok());
    output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()
}

/// Lines such as `libmpi.so.40 (libc6,x86-64) => /lib/x86_64-linux-gnu/libmpi.so.40`.
fn parse_cache(text: &str) -> Vec<(&'static str, PathBuf)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((name, path)) = line.split_once(" => ") else { continue };
        let name = name.split_whitespace().next().unwrap_or_default();
        if let Some((_, family)) = SONAMES.iter().find(|(soname, _)| *soname == name) {
            found.push((*family, PathBuf::from(path.trim())));
        }
    }
    found
}

fn launchers() -> Finding {
    let found = launchers_in_path();
    if found.is_empty() {
        return Finding::new(
            "launchers",
            Mark::Note,
            "none in PATH",
            "Load the module that brings one, or start the program by itself as one rank.",
        )
        .with("launchers", json!([]));
    }
    let versions: Vec<(String, PathBuf, String)> = found
        .into_iter()
        .map(|(names, path)| {
            let version = version(&path).unwrap_or_else(|| "version unknown".into());
            (names.join(", "), path, version)
        })
        .collect();
    let shown: Vec<String> =
        versions.iter().map(|(names, _, version)| format!("{names}: {version}")).collect();
    let data: Vec<_> = versions
        .iter()
        .map(|(names, path, version)| {
            json!({ "names": names.split(", ").collect::<Vec<_>>(),
                    "path": path.to_string_lossy(), "version": version })
        })
        .collect();
    Finding::new("launchers",
        Mark::Ok,
        shown.join("; "),
        "A program must be started by the launcher of the MPI that it is linked with; under another one it runs as \
         many separate single-rank jobs.",
    )
    .with("launchers", data)
}

/// Launchers in PATH, grouped by the file that their names lead to.
fn launchers_in_path() -> BTreeMap<Vec<String>, PathBuf> {
    let mut by_file: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for folder in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let stem = name.split('.').next().unwrap_or_default();
            let path = entry.path();
            if !LAUNCHERS.contains(&stem) || find_executable(path.as_os_str()).is_err() {
                continue;
            }
            let file = fs::canonicalize(&path).unwrap_or(path);
            let names = by_file.entry(file).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let sorted = |(file, mut names): (PathBuf, Vec<String>)| {
        names.sort();
        (names, file)
    };
    by_file.into_iter().map(sorted).collect()
}

/// The version that a launcher reports, on one line.
fn version(path: &Path) -> Option<String> {
    let mut child = Command::new(path)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().ok()?;
    version_line(&String::from_utf8_lossy(&output.stdout))
}

/// The first line, or for MPICH's Hydra, whose first line is a heading, the line with the version.
fn version_line(text: &str) -> Option<String> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    if first.starts_with("HYDRA build details") {
        let version = text.lines().find_map(|line| line.trim().strip_prefix("Version:"))?;
        return Some(format!("MPICH Hydra {}", version.trim()));
    }
    Some(first.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_linker_cache() {
        let found = parse_cache(
            "3 libs found in cache `/etc/ld.so.cache'\n\
             \tlibmpi.so.40 (libc6,x86-64) => /lib/libmpi.so.40\n\
             \tlibmpi_cxx.so.40 (libc6,x86-64) => /lib/libmpi_cxx.so.40\n\
             \tlibmpich.so.12 (libc6,x86-64) => /lib/libmpich.so.12\n",
        );
        let families: Vec<&str> = found.iter().map(|(family, _)| *family).collect();
        assert_eq!(families, ["Open MPI", "MPICH"]);
    }

    #[test]
    fn reads_version_of_launchers() {
        let line = |text| version_line(text).unwrap();
        assert_eq!(
            line("mpirun (Open MPI) 4.1.4\n\nReport bugs to …\n"),
            "mpirun (Open MPI) 4.1.4"
        );
        assert_eq!(
            line("HYDRA build details:\n    Version:        4.0.2\n    CC: gcc\n"),
            "MPICH Hydra 4.0.2"
        );
        assert_eq!(version_line("\n"), None);
    }
}
