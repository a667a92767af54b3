//! A baseline: a folder of small documents, one a run, that can be kept in git.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::record::{RecordError, RunRecord};
use crate::trace::run_json::Instant;

/// How the names of the documents end.
const SUFFIX: &str = ".gammachi.json";

/// Why a baseline cannot be used.
#[derive(Debug, Error)]
pub enum BaselineError {
    /// It is not there.
    #[error("{0}: no such baseline; `gammachi baseline add RUN… --baseline {0}` makes one")]
    Missing(PathBuf),
    /// It is something else.
    #[error("{0}: is a file; a baseline is a folder")]
    NotAFolder(PathBuf),
    /// It has no document.
    #[error("{0}: no run in it yet; `gammachi baseline add RUN… --baseline {0}` adds one")]
    Empty(PathBuf),
    /// The system refuses something.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A document cannot be read.
    #[error("{path}: {source}")]
    Record {
        /// The document.
        path: PathBuf,
        /// What is wrong with it.
        source: RecordError,
    },
}

/// A document and its file.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The file.
    pub path: PathBuf,
    /// The run.
    pub record: RunRecord,
}

/// What became of a run that was to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// It has this file now.
    New(PathBuf),
    /// It had this one already.
    Already(PathBuf),
}

fn failed(path: &Path) -> impl Fn(io::Error) -> BaselineError {
    let path = path.to_owned();
    move |source| BaselineError::Io { path: path.clone(), source }
}

/// The documents' files, in the order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, BaselineError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(BaselineError::Missing(folder.to_owned()));
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(BaselineError::NotAFolder(folder.to_owned()));
        }
        Err(error) => return Err(failed(folder)(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed(folder))?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(SUFFIX)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a folder is a baseline with a document.
pub fn is_one(folder: &Path) -> bool {
    files(folder).is_ok_and(|files| !files.is_empty())
}

/// Reads a document.
///
/// # Errors
/// It cannot be read, or is none.
pub fn read_file(path: &Path) -> Result<RunRecord, BaselineError> {
    let text = fs::read_to_string(path).map_err(failed(path))?;
    let wrong = |source| BaselineError::Record { path: path.to_owned(), source };
    RunRecord::parse(&text).map_err(wrong)
}

/// Reads all documents, the oldest run first.
///
/// # Errors
/// There is no folder, no document, or one that cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Kept>, BaselineError> {
    let mut all = Vec::new();
    for path in files(folder)? {
        let record = read_file(&path)?;
        all.push(Kept { path, record });
    }
    if all.is_empty() {
        return Err(BaselineError::Empty(folder.to_owned()));
    }
    all.sort_by(|a, b| (a.record.begun_ns, &a.path).cmp(&(b.record.begun_ns, &b.path)));
    Ok(all)
}

/// The name of a run's document: the same for the same run.
fn name_of(record: &RunRecord) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let program: String = record.program.chars().map(plain).take(40).collect();
    let begun = record.begun_ns.map(|ns| Instant::from_unix_ns(ns).utc).unwrap_or_default();
    let date: String = begun.chars().filter(char::is_ascii_alphanumeric).take(15).collect();
    // Runs that began at the same moment differ in their times.
    let bytes = record.begun_ns.unwrap_or(0).to_le_bytes();
    let bytes = bytes.into_iter().chain(record.elapsed_ns.to_le_bytes());
    let digest =
        bytes.fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{program}-p{}-{date}-{digest:08x}{SUFFIX}", record.ranks)
}

/// Adds a run to a folder, which is made where it is missing.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn add(folder: &Path, record: &RunRecord) -> Result<Added, BaselineError> {
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let path = folder.join(name_of(record));
    if path.exists() {
        return Ok(Added::Already(path));
    }
    let part = folder.join(format!(".{}.part", std::process::id()));
    let text = record.text().map_err(|error| failed(&path)(error.into()))?;
    let written = fs::File::create(&part).and_then(|mut file| file.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&part, &path)).map_err(|error| {
        let _ = fs::remove_file(&part);
        failed(&path)(error)
    })?;
    Ok(Added::New(path))
}

/// The documents but for the newest so many of each work on each machine: what trimming removes.
pub fn surplus(all: &[Kept], keep: usize) -> Vec<&Kept> {
    let mut surplus = Vec::new();
    let mut groups: Vec<Vec<&Kept>> = Vec::new();
    for kept in all.iter().rev() {
        let group = groups.iter_mut().find(|group| group[0].record.is_alike(&kept.record));
        match group {
            Some(group) if group.len() >= keep => surplus.push(kept),
            Some(group) => group.push(kept),
            None => groups.push(vec![kept]),
        }
    }
    surplus
}

/// Removes documents.
///
/// # Errors
/// One cannot be removed.
pub fn remove(all: &[&Kept]) -> Result<(), BaselineError> {
    all.iter().try_for_each(|kept| fs::remove_file(&kept.path).map_err(failed(&kept.path)))
}
