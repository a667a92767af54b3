//! Provides the writers in [`crate::formats`] with the calls, messages and tables of a run.
//!
//! | file | content |
//! |---|---|
//! | [`content`] | participants, and every call, one by one |
//! | [`traffic`] | messages and collective operations, in order of time |
//! | [`steps`] | calls and regions as nested beginnings and ends |
//! | [`linked`] | these steps with the messages that leave and arrive at them |
//! | [`tables`] | the run as tables |
//!
//! Calls are read from the mapped files while the export is written; memory is bounded by ranks,
//! threads, communicators and operations in flight during matching, not by events.

pub mod content;
pub mod linked;
pub mod steps;
pub mod tables;
pub mod traffic;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error of a format or of its library.
pub type FormatError = Box<dyn std::error::Error + Send + Sync>;

/// Why a run cannot be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// A file cannot be written, or a temporary file for sorting cannot be read.
    #[error("{path}: cannot be written: {source}")]
    Io {
        /// The file, or the directory of the temporary files.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file cannot be written for a reason of its format.
    #[error("{path}: cannot be written: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The format's own error.
        source: FormatError,
    },
    /// The format's library cannot be used.
    #[error("{0}")]
    Format(FormatError),
}

impl ExportError {
    /// A failure to write a file.
    pub fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io { path: path.to_owned(), source }
    }

    /// A failure to write a file for a reason of its format.
    pub fn of_file<E: Into<FormatError>>(path: &Path) -> impl Fn(E) -> Self + '_ {
        |source| Self::File { path: path.to_owned(), source: source.into() }
    }

    /// A failure of the format's library.
    pub fn format(source: impl Into<FormatError>) -> Self {
        Self::Format(source.into())
    }
}

/// Receives progress.
pub trait Progress {
    /// A stage begins; `steps` is its length, if known.
    fn stage(&self, what: &str, steps: Option<u64>);
    /// A number of steps is done.
    fn advance(&self, steps: u64);
}

/// Counts of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Calls; runs of polls count once.
    pub calls: u64,
    /// Messages with both ends.
    pub messages: u64,
    /// Collective operations.
    pub collectives: u64,
}
