//! What all writers of formats share: a run, its timeline and its communicators come in; calls, messages
//! and tables go out. The writers are in [`crate::formats`].
//!
//! | file | its idea |
//! |---|---|
//! | [`content`] | the one source: who took part, and every call, one by one |
//! | [`traffic`] | messages and collective operations, in order of time |
//! | [`steps`] | calls and regions as begins and ends that nest |
//! | [`linked`] | those with the messages that leave and arrive at them |
//! | [`tables`] | the run as tables |
//!
//! Calls are read from the mapped files as they are written; memory is bounded by ranks, threads,
//! communicators and what matching has in flight, not by events.

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

/// Why a run could not be written.
#[derive(Debug, Error)]
pub enum ExportError {
    /// A file cannot be written, or what was set aside for sorting cannot be read again.
    #[error("{path}: cannot be written: {source}")]
    Io {
        /// The file, or the directory of files without a name.
        path: PathBuf,
        /// What the system said.
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
    /// What writes the format is not there.
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

    /// A failure of what writes the format.
    pub fn format(source: impl Into<FormatError>) -> Self {
        Self::Format(source.into())
    }
}

/// Hears how far it has come.
pub trait Progress {
    /// Something begins that takes so many steps, where that is known.
    fn stage(&self, what: &str, steps: Option<u64>);
    /// Some of them are done.
    fn advance(&self, steps: u64);
}

/// What was written, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Calls; runs of polls count once.
    pub calls: u64,
    /// Messages with both ends.
    pub messages: u64,
    /// Collective operations.
    pub collectives: u64,
}
