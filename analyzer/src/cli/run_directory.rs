//! Chooses the directory of a run, from `--out` or the program's name, and afterwards finds what
//! was recorded.
//!
//! One `gammachi run` may start several MPI jobs, one after another. The recorder puts the first
//! into the directory and the others beside it, into `DIR-2`, `DIR-3` … Other runs may have such
//! names, too, even new ones: the run ids in the rank files tell which directories belong to this
//! command.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use trace_format::fixed_header::{FixedHeader, MAGIC};
use trace_format::plain::read_plain;
use trace_format::run_id::{COMMAND_BYTES, of_command};
use trace_format::{private_directory, regular_file};

use crate::trace::run_json::RUN_JSON;
use crate::trace::staged_rank_file;

use super::error::CommandError;

/// An existing directory that was empty and is claimed by this command.
#[derive(Debug)]
pub struct RunDirectory {
    /// As the user wrote it; for messages.
    pub shown: PathBuf,
    pub path: PathBuf,
    /// Whether this command created it.
    created: bool,
    /// Keeps hold of it in case it is renamed.
    handle: Option<File>,
}

/// Ranks recorded in one directory.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordedJob {
    /// As the user would write it.
    pub shown: PathBuf,
    pub path: PathBuf,
    /// Number of rank files, including those of spawned processes.
    pub ranks: usize,
    /// Number of ranks that the job had, as its first rank file says.
    pub world_size: Option<u32>,
    /// `HOST:PATH` of a rank file that is still in a staging directory.
    pub staged: Option<String>,
}

/// Creates the directory, mode 0700, and claims it with an empty `run.json`.
///
/// The inner result is an error if the directory cannot be created, which must not keep the program
/// from running.
pub fn prepare(
    out: Option<&Path>,
    program: &OsStr,
) -> Result<Result<RunDirectory, String>, CommandError> {
    match out {
        Some(out) => prepare_named(out),
        None => Ok(prepare_default(&default_name(program, &local_time()))),
    }
}

fn prepare_named(out: &Path) -> Result<Result<RunDirectory, String>, CommandError> {
    let shown: PathBuf = out.components().collect();
    if shown.as_os_str().is_empty() {
        return Err(CommandError::usage("--out: the path is empty; name a directory"));
    }
    let refused = |what: &str| {
        CommandError::usage(format!(
            "--out {}: {what}; name a new directory, or remove it first",
            shown.display()
        ))
    };
    let created = match private_directory::make_new(&shown) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Ok(Err(cannot_make(&shown, error))),
    };
    match fs::metadata(&shown) {
        Ok(metadata) if !metadata.is_dir() => {
            return Err(refused("it exists and is not a directory"));
        }
        Ok(_) => {}
        Err(error) => return Ok(Err(cannot_make(&shown, error))),
    }
    match is_empty(&shown) {
        Ok(true) => {}
        Ok(false) => return Err(refused("the directory exists and is not empty")),
        Err(error) => return Ok(Err(cannot_make(&shown, error))),
    }
    match claim(&shown) {
        Ok(()) => Ok(RunDirectory::new(shown, created)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(CommandError::usage(format!(
                "--out {}: another gammachi run has just taken it; name another directory",
                shown.display()
            )))
        }
        Err(error) => Ok(Err(cannot_make(&shown, error))),
    }
}

/// Claims a directory: if several commands find it empty, only one of them can create the file.
fn claim(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path.join(RUN_JSON)).map(drop)
}

/// Creates `NAME-DATE.gammachi`, or with `-b`, `-c` … after the date if several runs start in the
/// same second.
fn prepare_default(stem: &str) -> Result<RunDirectory, String> {
    let mut shown = PathBuf::new();
    for suffix in std::iter::once(String::new()).chain(('b'..='z').map(|c| format!("-{c}"))) {
        shown = PathBuf::from(format!("{stem}{suffix}.gammachi"));
        match private_directory::make_new(&shown) {
            Ok(()) => {
                claim(&shown).map_err(|error| cannot_make(&shown, error))?;
                return RunDirectory::new(shown, true);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot_make(&shown, error)),
        }
    }
    Err(cannot_make(&shown, io::ErrorKind::AlreadyExists.into()))
}

fn is_empty(path: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(path)?.next().is_none())
}

fn cannot_make(path: &Path, error: io::Error) -> String {
    format!("cannot make the run directory {}: {error}", path.display())
}

impl RunDirectory {
    fn new(shown: PathBuf, created: bool) -> Result<Self, String> {
        let path = std::path::absolute(&shown).map_err(|error| cannot_make(&shown, error))?;
        let handle = File::open(&path).ok();
        Ok(Self { shown, path, created, handle })
    }

    /// Finds the directory again if it was renamed since.
    pub fn follow(&mut self) {
        let identity = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
        let Some(handle) = &self.handle else { return };
        let Ok(own) = handle.metadata() else { return };
        let is_own = |path: &Path| {
            fs::metadata(path).is_ok_and(|metadata| identity(&metadata) == identity(&own))
        };
        if !is_own(&self.path)
            && let Ok(path) = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))
            && is_own(&path)
        {
            self.shown.clone_from(&path);
            self.path = path;
        }
    }

    /// The existing directories `DIR-2`, `DIR-3` …, as shown to the user and absolute.
    fn siblings(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> {
        (2..)
            .map(|job| (numbered(&self.shown, job), numbered(&self.path, job)))
            .take_while(|(_, path)| path.is_dir())
    }

    /// Directories in which the command with this `GAMMACHI_RUN_ID` has recorded ranks, its own
    /// directory first.
    pub fn recorded_jobs(&self, command: &str) -> Vec<RecordedJob> {
        let command = of_command(command.as_bytes());
        std::iter::once((self.shown.clone(), self.path.clone()))
            .chain(self.siblings().filter(|(_, path)| is_of_command(path, command)))
            .map(|(shown, path)| {
                let (ranks, staged) = (rank_files(&path).count(), staged_rank_file(&path));
                let header = rank_files(&path).find_map(|file| fixed_header(&file));
                let world_size = header.map(|header| header.world_size);
                RecordedJob { shown, path, ranks, world_size, staged }
            })
            .filter(|job| job.ranks > 0 || job.staged.is_some())
            .collect()
    }

    /// Removes what `gammachi run` itself has made, if there is nothing else in the directory.
    /// Returns whether the directory is gone.
    pub fn discard(&self) -> bool {
        let only_ours = fs::read_dir(&self.path).is_ok_and(|mut entries| {
            entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == RUN_JSON))
        });
        if only_ours {
            let _ = fs::remove_file(self.path.join(RUN_JSON));
        }
        only_ours && self.created && fs::remove_dir(&self.path).is_ok()
    }
}

fn numbered(path: &Path, job: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!("-{job}"));
    name.into()
}

/// Rank files in a run directory, by their names (`ranks-000/rank-000000.gmc`).
fn rank_files(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    entries(path)
        .filter(|folder| folder.file_name().to_string_lossy().starts_with("ranks-"))
        .flat_map(move |folder| entries(&folder.path()))
        .filter(|file| file.file_name().to_string_lossy().ends_with(".gmc"))
        .map(|file| file.path())
}

/// Whether a run directory contains ranks recorded by this command.
fn is_of_command(path: &Path, command: [u8; COMMAND_BYTES]) -> bool {
    // A rank may have died before its header was written.
    rank_files(path)
        .find_map(|file| fixed_header(&file))
        .is_some_and(|header| header.run_id.starts_with(&command))
}

fn fixed_header(path: &Path) -> Option<FixedHeader> {
    let mut bytes = [0; size_of::<FixedHeader>()];
    regular_file::open(path).and_then(|mut file| file.read_exact(&mut bytes)).ok()?;
    read_plain::<FixedHeader>(&bytes).filter(|header| header.magic == MAGIC)
}

/// `app-20260131-120000`. Characters that would hide the file, or be awkward in a shell, are
/// replaced.
fn default_name(program: &OsStr, local: &str) -> String {
    let name: String = program
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_alphanumeric() || "._+-".contains(c) { c } else { '_' })
        .take(64)
        .collect();
    let name = name.trim_start_matches(['.', '-']);
    format!("{}-{local}", if name.is_empty() { "run" } else { name })
}

/// The wall clock in the user's time zone, `YYYYmmdd-HHMMSS`.
fn local_time() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() as libc::time_t;
    // SAFETY: zeroed is a valid `tm`, and both pointers are valid for the call. It may read the
    // environment (TZ); nothing changes that, because the command has only one thread here.
    let t = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut parts);
        parts
    };
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        t.tm_year + 1900,
        t.tm_mon + 1,
        t.tm_mday,
        t.tm_hour,
        t.tm_min,
        t.tm_sec
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_name_has_program_and_date() {
        let name = |program: &str| default_name(OsStr::new(program), "20260131-120000");
        assert_eq!(name("ocean.x"), "ocean.x-20260131-120000");
        assert_eq!(name("my app; rm"), "my_app__rm-20260131-120000");
        assert_eq!(name("..."), "run-20260131-120000");
        assert_eq!(name("-x"), "x-20260131-120000");
        let now = local_time();
        assert!(now.len() == 15 && now.as_bytes()[8] == b'-', "{now}");
    }

    #[test]
    fn runs_of_same_second_get_own_directories() {
        let root = tempfile::tempdir().unwrap();
        let stem = root.path().join("app-20260131-120000");
        let stem = stem.to_str().unwrap();
        let first = prepare_default(stem).unwrap();
        let second = prepare_default(stem).unwrap();
        assert!(first.path.ends_with("app-20260131-120000.gammachi"));
        assert!(second.path.ends_with("app-20260131-120000-b.gammachi"));
    }

    #[test]
    fn only_one_of_several_commands_claims_directory() {
        let root = tempfile::tempdir().unwrap();
        for attempt in 0..50 {
            let out = root.path().join(attempt.to_string());
            let start = std::sync::Barrier::new(4);
            let took = std::thread::scope(|scope| {
                let commands: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            start.wait();
                            prepare_named(&out).is_ok_and(|inner| inner.is_ok())
                        })
                    })
                    .collect();
                commands.into_iter().map(|c| c.join().unwrap()).filter(|took| *took).count()
            });
            assert_eq!(took, 1);
        }
    }

    #[test]
    fn counts_ranks_of_own_jobs_only() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        fs::create_dir(root.join("run-3")).unwrap();
        let directory = prepare_named(&root.join("run")).unwrap().unwrap();
        let record = |directory: &str, command: &str, files: &[&str]| {
            let folder = root.join(directory).join("ranks-000");
            fs::create_dir_all(&folder).unwrap();
            let mut run_id = [7; 16];
            run_id[..COMMAND_BYTES].copy_from_slice(&of_command(command.as_bytes()));
            let header: FixedHeader = read_plain(&[0; 64]).unwrap();
            let header = FixedHeader { magic: MAGIC, run_id, ..header };
            for file in files {
                fs::write(folder.join(file), trace_format::plain::bytes_of(&header)).unwrap();
            }
        };
        record("run", "ours", &["rank-000000.gmc", "rank-000001.gmc", "notes.txt"]);
        record("run-2", "another's", &["rank-000000.gmc"]);
        record("run-4", "ours", &["rank-000000.gmc", "world-001-rank-000000.gmc"]);
        let jobs = directory.recorded_jobs("ours").into_iter().map(|job| (job.path, job.ranks));
        assert_eq!(jobs.collect::<Vec<_>>(), [(root.join("run"), 2), (root.join("run-4"), 2)]);
        assert!(!directory.discard(), "it is not empty");
    }

    #[test]
    fn empty_directory_that_was_there_before_is_kept() {
        let theirs = tempfile::tempdir().unwrap();
        let directory = prepare_named(theirs.path()).unwrap().unwrap();
        fs::write(directory.path.join(RUN_JSON), "{}").unwrap();
        assert!(!directory.discard() && is_empty(&directory.path).unwrap());
    }
}
