//! Why a run cannot be exported.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::processes::Processes;
use crate::trace::host_name;

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
    /// Another of several processes cannot write.
    #[error("process {process} on {host}: {what}")]
    OnProcess {
        /// Its number.
        process: usize,
        host: String,
        /// Its error.
        what: String,
    },
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

/// The values of all processes, by their numbers. All processes call this.
///
/// # Errors
/// This process's own error, or else the first of another, so that all fail together.
pub(super) fn agreed<T: Serialize + DeserializeOwned>(
    processes: &Processes,
    own: Result<T, ExportError>,
) -> Result<Vec<T>, ExportError> {
    if processes.is_alone() {
        return own.map(|value| vec![value]);
    }
    let (value, error) = match own {
        Ok(value) => (Ok(value), None),
        Err(error) => (Err((host_name(), error.to_string())), Some(error)),
    };
    let all = processes.share(value);
    if let Some(error) = error {
        return Err(error);
    }
    let all = all.into_iter().enumerate().map(|(process, value)| {
        value.map_err(|(host, what)| ExportError::OnProcess { process, host, what })
    });
    all.collect()
}
