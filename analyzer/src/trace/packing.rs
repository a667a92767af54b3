//! Runs at rest: a run directory comes in; its rank files are packed, or unpacked, each beside its place,
//! read back and compared, and only then given its name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use trace_format::pack::{self, UnpackError};
use trace_format::private_directory;
use trace_format::reader::RankFile;

use super::run_json::RUN_JSON;
use super::{ProcessState, RankFacts, TraceError, directory};

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To columns.
    Pack,
    /// Back to what was recorded.
    Unpack,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Packing<'a> {
    /// Which way.
    pub direction: Direction,
    /// The run directory.
    pub run: &'a Path,
    /// Where the files go; `None`: in the place of those that are there.
    pub out: Option<&'a Path>,
    /// Whether files of ranks that did not finish, and whose process cannot be asked for, may be replaced.
    pub ended: bool,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packed {
    /// Files written.
    pub files: u64,
    /// Files that were as wanted already.
    pub already: u64,
    /// Bytes of the files as they were recorded.
    pub original_bytes: u64,
    /// Bytes of the packed files.
    pub packed_bytes: u64,
    /// Events (records of calls, markers and tool time) in them; counted while packing.
    pub events: u64,
}

impl Packed {
    fn add(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            already: self.already + other.already,
            original_bytes: self.original_bytes + other.original_bytes,
            packed_bytes: self.packed_bytes + other.packed_bytes,
            events: self.events + other.events,
        }
    }
}

/// Why a run was not packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum PackingError {
    /// The directory cannot be read.
    #[error(transparent)]
    Run(#[from] TraceError),
    /// A file stands in the way; the others are done or as they were.
    #[error("{path}: {what}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
}

impl Packing<'_> {
    /// Bytes of the rank files, for a progress bar.
    ///
    /// # Errors
    /// When there is no run directory.
    pub fn bytes(&self) -> Result<u64, TraceError> {
        let sizes = directory::list(self.run)?.files.into_iter().map(|path| match self.direction {
            Direction::Pack => fs::metadata(path).map_or(0, |metadata| metadata.len()),
            Direction::Unpack => original_bytes(&path),
        });
        Ok(sizes.sum())
    }

    /// Does it, files in parallel; `progress` is told how many bytes of the original were done since it
    /// was told last.
    ///
    /// # Errors
    /// At the first file that cannot be done. No file is ever left half written under its name.
    pub fn run(&self, progress: impl Fn(u64) + Sync) -> Result<Packed, PackingError> {
        let listing = directory::list(self.run)?;
        if let Some(out) = self.out {
            private_directory::make(out).map_err(|error| PackingError::File {
                path: out.to_owned(),
                what: format!("cannot be made: {error}"),
            })?;
            copy_description(self.run, out)?;
        }
        let results: Vec<Result<Packed, PackingError>> =
            listing.files.par_iter().map(|path| self.file(path, &progress)).collect();
        results.into_iter().try_fold(Packed::default(), |sum, one| Ok(sum.add(one?)))
    }

    fn file(&self, path: &Path, progress: &impl Fn(u64)) -> Result<Packed, PackingError> {
        let wrong = |what: String| PackingError::File { path: path.to_owned(), what };
        let io = |error: io::Error| wrong(error.to_string());
        let file = RankFile::open(path).map_err(|error| match error {
            trace_format::reader::OpenError::Io { source, .. } => io(source),
            trace_format::reader::OpenError::Header { what, .. } => wrong(what),
        })?;
        let is_packed = file.packed().is_some();
        if is_packed == (self.direction == Direction::Pack) {
            let packed_bytes = file.packed().map_or(0, pack::PackedFile::packed_bytes);
            progress(file.file_bytes());
            if let Some(out) = self.out {
                let target = self.target(path, out);
                write_beside(&target, |part| copy(path, part)).map_err(io)?;
            }
            return Ok(Packed {
                already: 1,
                original_bytes: file.file_bytes(),
                packed_bytes,
                ..Packed::default()
            });
        }
        let target = self.out.map_or_else(|| path.to_owned(), |out| self.target(path, out));
        let mut told = 0;
        let mut tell = |done: u64| progress(done - std::mem::replace(&mut told, done));
        match self.direction {
            Direction::Pack => {
                if self.out.is_none() {
                    self.may_replace(&file).map_err(&wrong)?;
                }
                let mut sizes = (0, 0);
                write_beside(&target, |part| {
                    let mut out = BufWriter::with_capacity(1 << 20, part);
                    sizes = pack::pack(&file, &mut out, &mut tell)?;
                    out.flush()
                })
                .map_err(io)?;
                Ok(Packed {
                    files: 1,
                    original_bytes: file.file_bytes(),
                    packed_bytes: sizes.0,
                    events: sizes.1,
                    ..Packed::default()
                })
            }
            Direction::Unpack => {
                let packed_bytes = file.packed().map_or(0, pack::PackedFile::packed_bytes);
                let mut outcome = Ok(0);
                let written = write_beside(&target, |part| {
                    let mut out = BufWriter::with_capacity(1 << 20, part);
                    outcome = pack::unpack(path, &mut out, &mut tell);
                    match &outcome {
                        Ok(_) => out.flush(),
                        Err(_) => Err(io::Error::other("not whole")),
                    }
                });
                let original_bytes = outcome.map_err(|error| match error {
                    UnpackError::Io(error) => io(error),
                    UnpackError::Damaged(what) => wrong(format!(
                        "{what}; it stays as it is, and every command reads what is left of it"
                    )),
                })?;
                written.map_err(io)?;
                Ok(Packed { files: 1, original_bytes, packed_bytes, ..Packed::default() })
            }
        }
    }

    fn target(&self, path: &Path, out: &Path) -> PathBuf {
        out.join(path.strip_prefix(self.run).unwrap_or(path))
    }

    /// A file that a process still writes must keep its place.
    fn may_replace(&self, file: &RankFile) -> Result<(), String> {
        if RankFacts::from_definitions(&file.definitions).finalized() {
            return Ok(());
        }
        match ProcessState::of(file) {
            ProcessState::Runs(_) => {
                Err(format!("process {} still writes it; pack it when it ended", file.fixed.pid))
            }
            ProcessState::Unknown if !self.ended => Err(format!(
                "its rank did not finish, and whether process {} on {} still writes it cannot be told from \
                 here; if it does not, give --ended",
                file.fixed.pid, file.header.host
            )),
            _ => Ok(()),
        }
    }
}

fn original_bytes(path: &Path) -> u64 {
    let packed = File::open(path).ok().and_then(|file| pack::PackedFile::open(&file).ok());
    packed.map_or(0, |packed| packed.original_bytes)
}

fn copy(from: &Path, to: &mut File) -> io::Result<()> {
    io::copy(&mut File::open(from)?, to).map(|_| ())
}

/// Writes a file beside its place, has it reach the disk, and gives it its name.
fn write_beside(target: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let parent = target.parent().unwrap_or(Path::new("."));
    private_directory::make(parent)?;
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let part = parent.join(format!(".{name}.{}.part", std::process::id()));
    let mut options = OpenOptions::new();
    let written = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&part)
        .and_then(|mut file| write(&mut file).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&part, target));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

fn copy_description(run: &Path, out: &Path) -> Result<(), PackingError> {
    let (from, to) = (run.join(RUN_JSON), out.join(RUN_JSON));
    let wrong = |error: io::Error| PackingError::File { path: to.clone(), what: error.to_string() };
    if fs::canonicalize(run).ok() == fs::canonicalize(out).ok() {
        let what = "is the run directory itself: leave --out away".to_owned();
        return Err(PackingError::File { path: out.to_owned(), what });
    }
    match from.exists() {
        true => write_beside(&to, |part| copy(&from, part)).map_err(wrong),
        false => Ok(()),
    }
}

#[cfg(test)]
#[path = "packing_tests.rs"]
mod tests;
