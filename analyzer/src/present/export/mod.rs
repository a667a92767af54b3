//! A run for other tools: a run, its timeline and its communicators come in, files of another format
//! go out.
//!
//! | file | its idea |
//! |---|---|
//! | [`content`] | the one source: who took part, and every call, one by one |
//! | [`traffic`] | messages and collective operations, in order of time |
//! | [`steps`] | calls and regions as begins and ends that nest |
//! | [`linked`] | those with the messages that leave and arrive at them |
//! | [`spill`] | sorting what memory does not hold |
//! | [`perfetto`], [`paje`], [`paraver`] | timelines of other viewers; [`extrae`]: the numbers of Paraver's files |
//! | [`otf2`] | an archive, by OTF2's own library |
//! | [`tables`] | the run as tables, for [`csv`] and [`parquet`] |
//!
//! Calls are read from the mapped files as they are written; memory is bounded by ranks, threads,
//! communicators and what matching has in flight, not by events.

pub mod content;
pub mod csv;
pub mod extrae;
pub mod linked;
pub mod otf2;
pub mod paje;
pub mod paraver;
pub mod parquet;
pub mod perfetto;
pub mod spill;
pub mod steps;
pub mod tables;
pub mod traffic;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use content::Content;

/// A format to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated tables.
    Csv,
    /// Parquet tables.
    Parquet,
    /// Perfetto's protocol buffers.
    Perfetto,
    /// Paje's text.
    Paje,
    /// Paraver's three files.
    Paraver,
    /// An OTF2 archive.
    Otf2,
}

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
    /// Something else, as a sentence that says what to do.
    #[error("{0}")]
    Other(String),
}

impl ExportError {
    /// A failure to write a file.
    pub fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io { path: path.to_owned(), source }
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

/// Writes a run to `path`, which does not exist yet; `scratch` is a directory for files without a
/// name.
///
/// # Errors
/// What cannot be written: no space, for one. Half of what was to be written may be left at `path`.
pub fn write(
    content: &Content,
    format: Format,
    path: &Path,
    scratch: &Path,
    progress: &dyn Progress,
) -> Result<Written, ExportError> {
    match format {
        Format::Csv => tables::write(content, &mut csv::CsvTables::new(path), scratch, progress),
        Format::Parquet => {
            tables::write(content, &mut parquet::ParquetTables::new(path), scratch, progress)
        }
        Format::Perfetto => perfetto::write(content, path, scratch, progress),
        Format::Paje => paje::write(content, path, scratch, progress),
        Format::Otf2 => otf2::write(content, path, scratch, progress),
        Format::Paraver => paraver::write(content, path, scratch, progress),
    }
}
