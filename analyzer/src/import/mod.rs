//! Traces of other tools as runs: a file comes in, a run directory goes out, and [`Imported`] says what
//! the file did not hold or the run cannot.
//!
//! | file | its idea |
//! |---|---|
//! | [`rank`] | one rank's calls become event slots |
//! | [`otf2`] | OTF2 archives, by OTF2's own library |
//! | [`paraver`] | Paraver's `.prv`, `.pcf` and `.row` |
//!
//! Times are the other tool's, in nanoseconds; nothing is known of how its clocks were aligned unless
//! the file says so. Memory is bounded by threads, requests in flight and definitions, not by events.

pub mod otf2;
pub mod paraver;
pub mod rank;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a file could not be made into a run.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{path}: cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The run cannot be written.
    #[error("{path}: cannot be written: {source}")]
    Write {
        /// The run directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what it should be.
    #[error("{path}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        what: String,
    },
    /// Something else, as a sentence that says what to do.
    #[error("{0}")]
    Other(String),
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// Ranks.
    pub ranks: u32,
    /// Calls.
    pub calls: u64,
    /// What is missing, by what it is, and how often.
    pub missing: BTreeMap<&'static str, u64>,
    /// What a reader of the run should know.
    pub notes: Vec<String>,
}

impl Imported {
    fn miss(&mut self, what: &'static str) {
        *self.missing.entry(what).or_default() += 1;
    }
}

/// Makes a run of a file; `run` is a directory that does not exist yet. Half of it may be left when
/// that fails.
///
/// # Errors
/// The file is of no known format, damaged, or cannot be read; the run cannot be written.
pub fn import(file: &Path, run: &Path) -> Result<Imported, ImportError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if let Err(source) = std::fs::File::open(file) {
        return Err(ImportError::Read { path: file.to_owned(), source });
    }
    if name.ends_with(".otf2") {
        otf2::import(file, run)
    } else if name.ends_with(".prv") || name.ends_with(".prv.gz") {
        paraver::import(file, run)
    } else {
        Err(ImportError::Damaged {
            path: file.to_owned(),
            what: "is neither .otf2 (the anchor file of an OTF2 archive) nor .prv or .prv.gz (Paraver)"
                .into(),
        })
    }
}
