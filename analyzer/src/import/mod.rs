//! What all readers of other tools' traces share: [`rank`] makes event slots of one rank's calls, [`Imported`]
//! says what the trace did not hold or the run cannot. The readers are in [`crate::formats`].
//!
//! Times are the other tool's, in nanoseconds; nothing is known of how its clocks were aligned unless
//! the file says so. Memory is bounded by threads, requests in flight and definitions, not by events.

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
    /// What reads the format is not there.
    #[error("{0}")]
    Format(Box<dyn std::error::Error + Send + Sync>),
}

impl ImportError {
    /// A failure of what reads the format.
    pub fn format(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Format(source.into())
    }
}

/// What a reader of an imported run should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportNote {
    /// Locations of OTF2 that are no threads of a processor are not kept.
    OtherLocations {
        /// How many.
        count: u64,
    },
    /// OTF2's MPI records lack wildcards, sizes of posted buffers, datatypes, windows and files.
    LacksOfOtf2,
    /// Paraver names neither communicators nor requests of messages.
    LacksOfParaver,
    /// Time outside MPI in other states of Paraver than Running: state and nanoseconds, all ranks together.
    OtherStates(Vec<(u32, u64)>),
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
    pub notes: Vec<ImportNote>,
}

impl Imported {
    /// Counts something that the run does not keep.
    pub fn miss(&mut self, what: &'static str) {
        *self.missing.entry(what).or_default() += 1;
    }
}

/// An id that the files of this import share, and hardly any other: of the time and the process.
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
