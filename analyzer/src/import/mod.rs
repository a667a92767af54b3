//! What all readers of other tools' traces share: [`rank`] writes the rank files, and [`Imported`]
//! lists what the trace did not contain or the run cannot represent. The readers are in
//! [`crate::formats`].
//!
//! Times are those of the other tool, in nanoseconds. How its clocks were aligned is not known
//! unless the file states it. Memory is bounded by threads, requests in flight and definitions, not
//! by events.

pub mod rank;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a file could not be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{path}: cannot be read: {source}")]
    Read {
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
        path: PathBuf,
        /// What is wrong and where.
        what: String,
    },
    /// The reader of the format failed or is missing.
    #[error("{0}")]
    Format(Box<dyn std::error::Error + Send + Sync>),
}

impl ImportError {
    /// Wraps an error of the reader of a format.
    pub fn format(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Format(source.into())
    }
}

/// What a reader of an imported run should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportNote {
    /// Locations of OTF2 that are not CPU threads were left out.
    OtherLocations {
        /// Number of such locations.
        count: u64,
    },
    /// OTF2's MPI records do not contain wildcards, sizes of posted buffers, datatypes, windows and
    /// files.
    LacksOfOtf2,
    /// Paraver does not contain the communicators and requests of messages.
    LacksOfParaver,
    /// Time outside MPI in Paraver states other than Running: state, and nanoseconds over all
    /// ranks.
    OtherStates(Vec<(u32, u64)>),
}

/// Summary of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    pub ranks: u32,
    /// Number of calls.
    pub calls: u64,
    /// What was left out, with how often.
    pub missing: BTreeMap<&'static str, u64>,
    /// What a reader of the run should know.
    pub notes: Vec<ImportNote>,
}

impl Imported {
    /// Counts something that was left out.
    pub fn miss(&mut self, what: &'static str) {
        *self.missing.entry(what).or_default() += 1;
    }
}

/// An id for the files of this import, derived from the time and the process so that it is
/// practically unique.
pub fn run_id(file: &Path) -> [u8; 16] {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let now = std::time::SystemTime::now();
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (file, now, std::process::id(), salt).hash(&mut hasher);
        hasher.finish().to_le_bytes()
    };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&half(0));
    id[8..].copy_from_slice(&half(1));
    id
}
