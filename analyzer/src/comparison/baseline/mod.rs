//! A baseline: a folder with one small document per run, which can be kept in git.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;
use trace_format::files::rank_file_path;
use trace_format::regular_file;

use super::public_arguments::public;
use super::record::{RecordError, RunRecord};
use crate::trace::run_json::{Instant, RUN_JSON};
use crate::whole_file::{self, SHARED};

/// Suffix of the documents' names.
const SUFFIX: &str = ".gammachi.json";
/// Longest document that is read; usual ones have some kilobytes.
const MAX_BYTES: u64 = 64 << 20;

/// Why a baseline cannot be used.
#[derive(Debug, Error)]
pub enum BaselineError {
    /// It does not exist.
    #[error("{0}: no such baseline; `gammachi check --add RUN… --baseline {0}` creates one")]
    Missing(PathBuf),
    /// It is not a folder.
    #[error("{0}: is a file; a baseline is a folder")]
    NotAFolder(PathBuf),
    /// It is the directory of a run.
    #[error("{0}: is a run; a baseline is a folder of its own")]
    IsARun(PathBuf),
    /// It has no documents.
    #[error("{0}: no run in it yet; `gammachi check --add RUN… --baseline {0}` adds one")]
    Empty(PathBuf),
    /// The system reported an error.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A document cannot be read.
    #[error("{path}: {source}")]
    Record {
        /// The document.
        path: PathBuf,
        /// Why it cannot be read.
        source: RecordError,
    },
}

/// A run in a baseline: a document and its file.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The file.
    pub path: PathBuf,
    pub record: RunRecord,
}

/// The result of adding a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// It was written to this file.
    New(PathBuf),
    /// It already had this file.
    Already(PathBuf),
}

fn failed(path: &Path) -> impl Fn(io::Error) -> BaselineError {
    let path = path.to_owned();
    move |source| BaselineError::Io { path: path.clone(), source }
}

/// The files of the documents, sorted by name.
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
/// It cannot be read, or is not a document.
pub fn read_file(path: &Path) -> Result<RunRecord, BaselineError> {
    let text = regular_file::read(path, MAX_BYTES).map_err(failed(path))?;
    let text = String::from_utf8_lossy(&text);
    let wrong = |source| BaselineError::Record { path: path.to_owned(), source };
    RunRecord::parse(&text).map_err(wrong)
}

/// Reads all documents, the oldest run first.
///
/// # Errors
/// There is no folder or no document, or one cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Entry>, BaselineError> {
    let mut all = Vec::new();
    for path in files(folder)? {
        let record = read_file(&path)?;
        all.push(Entry { path, record });
    }
    if all.is_empty() {
        return Err(BaselineError::Empty(folder.to_owned()));
    }
    all.sort_by(|a, b| (a.record.begun_ns, &a.path).cmp(&(b.record.begun_ns, &b.path)));
    Ok(all)
}

/// The file name of a run's document: always the same for the same run.
fn name_of(record: &RunRecord) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let program: String = record.program.chars().map(plain).take(40).collect();
    let begun = record.begun_ns.map(|ns| Instant::from_unix_ns(ns).utc).unwrap_or_default();
    let date: String = begun.chars().filter(char::is_ascii_alphanumeric).take(15).collect();
    // Runs that began at the same moment differ in their durations.
    let bytes = record.begun_ns.unwrap_or(0).to_le_bytes();
    let bytes = bytes.into_iter().chain(record.elapsed_ns.to_le_bytes());
    let digest =
        bytes.fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{program}-p{}-{date}-{digest:08x}{SUFFIX}", record.ranks)
}

/// Adds a run to a folder, which is created if missing.
pub fn add(folder: &Path, record: &RunRecord) -> Result<Added, BaselineError> {
    if folder.join(RUN_JSON).exists() || folder.join(rank_file_path(0, 0)).exists() {
        return Err(BaselineError::IsARun(folder.to_owned()));
    }
    if folder.is_file() {
        return Err(BaselineError::NotAFolder(folder.to_owned()));
    }
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let path = folder.join(name_of(record));
    if path.exists() {
        return Ok(Added::Already(path));
    }
    let arguments = public(&record.arguments);
    // What makes no figure invalid is not needed, and may name paths in the code.
    let doubts = record.findings.iter().filter(|finding| !finding.invalidates().is_empty());
    let findings = doubts.cloned().collect();
    let text = RunRecord { arguments, findings, ..record.clone() }.text();
    let text = text.map_err(|error| failed(&path)(error.into()))?;
    let written = whole_file::write(&path, SHARED, |file| file.write_all(text.as_bytes()));
    written.map_err(failed(&path))?;
    Ok(Added::New(path))
}

/// All documents except for the newest `keep` of each work on each machine: those that trimming
/// removes.
pub fn surplus(all: &[Entry], keep: usize) -> Vec<&Entry> {
    let mut surplus = Vec::new();
    let mut groups: Vec<Vec<&Entry>> = Vec::new();
    for entry in all.iter().rev() {
        let group = groups.iter_mut().find(|group| group[0].record.is_alike(&entry.record));
        match group {
            Some(group) if group.len() >= keep => surplus.push(entry),
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    surplus
}

/// Removes documents.
///
/// # Errors
/// One cannot be removed.
pub fn remove(all: &[&Entry]) -> Result<(), BaselineError> {
    all.iter().try_for_each(|entry| fs::remove_file(&entry.path).map_err(failed(&entry.path)))
}
